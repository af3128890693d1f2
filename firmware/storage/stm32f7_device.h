/* Registers of an STM32F7's SDMMC1 and of stream 3 of its DMA2 (RM0385, 35 and 8), at the clock that the chip has after
 * reset, 16 MHz: 8 MHz on the card's line, 4 bits. Pins of the 32F746GDISCOVERY (UM1907): PC8 to PC12, PD2. */
#ifndef THIMBLE_STM32F7_DEVICE_H
#define THIMBLE_STM32F7_DEVICE_H

#include <stdint.h>

#include "sd_commands.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define RCC_AHB1ENR REGISTER(0x40023830)
#define RCC_APB2ENR REGISTER(0x40023844)
#define RCC_DCKCFGR2 REGISTER(0x40023890)
#define RCC_PORTS_AND_DMA (1u << 2 | 1u << 3 | 1u << 22)
#define RCC_SDMMC1 (1u << 11)
#define RCC_SDMMC1_BY_SYSCLK (1u << 28)

#define GPIO(port, offset) REGISTER(0x40020000u + (port) * 0x400u + (offset))
#define PORT_C 2u
#define PORT_D 3u

#define SDMMC(offset) REGISTER(0x40012C00u + (offset))
#define SDMMC_POWER SDMMC(0x00)
#define SDMMC_CLOCK SDMMC(0x04)
#define SDMMC_ARGUMENT SDMMC(0x08)
#define SDMMC_COMMAND SDMMC(0x0C)
#define SDMMC_ANSWER(n) SDMMC(0x10u + 4u * (n))
#define SDMMC_PATIENCE SDMMC(0x24)
#define SDMMC_LENGTH SDMMC(0x28)
#define SDMMC_CONTROL SDMMC(0x2C)
#define SDMMC_STATUS SDMMC(0x34)
#define SDMMC_CLEAR SDMMC(0x38)
#define SDMMC_MASK SDMMC(0x3C)
#define SDMMC_FIFO 0x40012C80u

#define CLOCK_ON (1u << 8)
#define CLOCK_400_KHZ 38u /* 16 MHz / (38 + 2) */
#define CLOCK_8_MHZ 0u
#define CLOCK_4_BITS (1u << 11)
#define SHORT_ANSWER (1u << 6)
#define LONG_ANSWER (3u << 6)
#define COMMAND_GO (1u << 10)
#define DATA_GO (1u << 0)
#define DATA_FROM_CARD (1u << 1)
#define DATA_BY_DMA (1u << 3)
#define DATA_BLOCKS_OF_512 (9u << 4)

#define COMMAND_CRC_FAULT (1u << 0)
#define COMMAND_FAULTS (1u << 0 | 1u << 2)
#define COMMAND_OVER (1u << 6 | 1u << 7)
#define DATA_FAULTS (1u << 1 | 1u << 3 | 1u << 4 | 1u << 5)
#define DATA_OVER (1u << 8)
#define CLEAR_ALL 0x5FFu
#define DATA_PATIENCE (8000000u / 2) /* half a second of the line's clock */

#define VOLTAGES 0x00FF8000u
#define READY (1u << 31)
#define FOUR_BITS 2u
#define ANSWER_FAULTS 0xFDFFE008u /* of the card's status (4.10.1) */
#define OUT_OF_RANGE (1u << 31)   /* when the last block was the card's: read on and stopped */
#define READY_FOR_DATA (1u << 8)

#define DMA2(offset) REGISTER(0x40026400u + (offset))
#define DMA_FLAGS DMA2(0x00)
#define DMA_CLEAR DMA2(0x08)
#define DMA_CONTROL DMA2(0x58)
#define DMA_COUNT DMA2(0x5C)
#define DMA_DEVICE DMA2(0x60)
#define DMA_MEMORY DMA2(0x64)
#define DMA_FIFO DMA2(0x6C)
#define DMA_ON (1u << 0)
#define DMA_INTERRUPTS (1u << 4) /* at its end; the card's FIFO says what a fault of it leads to */
#define DMA_DEVICE_ENDS_IT (1u << 5)
#define DMA_TO_DEVICE (1u << 6)
#define DMA_MEMORY_GOES_ON (1u << 10)
#define DMA_DEVICE_WORDS (2u << 11)
#define DMA_MEMORY_WORDS (2u << 13)
#define DMA_DEVICE_FOURS (1u << 21)
#define DMA_CHANNEL_4 (4u << 25)
#define DMA_BY_FIFO (1u << 2 | 3u)
#define DMA_STREAM_3 (0x3Du << 22)
#define DMA_STREAM_3_FAULT (1u << 25)
#define DMA_STREAM_3_OVER (1u << 27)

#define SDMMC1_LINE 49u
#define DMA2_STREAM3_LINE 59u
#define NVIC_ENABLE REGISTER(0xE000E104) /* lines 32 to 63 */
#define NVIC_PEND REGISTER(0xE000E204)
#define PEND_SDMMC (NVIC_PEND = 1u << (SDMMC1_LINE - 32u))

static inline void sdmmc_pin(uint32_t port, uint32_t pin, uint32_t pulled_up) {
    const uint32_t two = 2 * pin, four = 4 * (pin & 7);
    GPIO(port, 0x00) = (GPIO(port, 0x00) & ~(3u << two)) | 2u << two;          /* alternate function */
    GPIO(port, 0x08) = (GPIO(port, 0x08) & ~(3u << two)) | 2u << two;          /* fast */
    GPIO(port, 0x0C) = (GPIO(port, 0x0C) & ~(3u << two)) | pulled_up << two;
    const uint32_t function = pin < 8 ? 0x20 : 0x24;
    GPIO(port, function) = (GPIO(port, function) & ~(15u << four)) | 12u << four;
}

static inline void sdmmc_open(void) {
    RCC_AHB1ENR |= RCC_PORTS_AND_DMA;
    RCC_APB2ENR |= RCC_SDMMC1;
    RCC_DCKCFGR2 |= RCC_SDMMC1_BY_SYSCLK;
    (void)RCC_DCKCFGR2; /* the clocks run two cycles later (RM0385, 5.2.12) */
    for (uint32_t pin = 8; pin < 12; pin++) {
        sdmmc_pin(PORT_C, pin, 1);
    }
    sdmmc_pin(PORT_C, 12, 0);
    sdmmc_pin(PORT_D, 2, 1);
    SDMMC_MASK = 0;
    SDMMC_CLOCK = CLOCK_400_KHZ | CLOCK_ON;
    SDMMC_POWER = 3;
    for (volatile uint32_t n = 0; n < 4000; n++) { /* a millisecond, and 74 clocks, before the first command */
    }
}

static inline void sdmmc_fast(void) { SDMMC_CLOCK = CLOCK_8_MHZ | CLOCK_4_BITS | CLOCK_ON; }

static inline void sdmmc_listen(void) { SDMMC_MASK = COMMAND_FAULTS | COMMAND_OVER | DATA_FAULTS | DATA_OVER; }

/* What has been heard stays until it is asked for, and would interrupt again at once. */
static inline void sdmmc_heard(void) {
    SDMMC_MASK = 0;
    DMA_CLEAR = DMA_STREAM_3_OVER;
}

static inline void sdmmc_interrupts(void) {
    SDMMC_CLEAR = CLEAR_ALL;
    NVIC_ENABLE = 1u << (SDMMC1_LINE - 32u) | 1u << (DMA2_STREAM3_LINE - 32u);
}

/* `command`: its number, and the answer that it has. */
static inline void sdmmc_command(uint32_t command, uint32_t argument) {
    SDMMC_ARGUMENT = argument;
    SDMMC_COMMAND = command | COMMAND_GO;
}

static inline void sdmmc_data(uint32_t bytes) {
    SDMMC_CLEAR = CLEAR_ALL;
    SDMMC_PATIENCE = DATA_PATIENCE;
    SDMMC_LENGTH = bytes;
}

static inline void sdmmc_move(int reads) {
    SDMMC_CONTROL = DATA_GO | (reads ? DATA_FROM_CARD : 0u) | DATA_BY_DMA | DATA_BLOCKS_OF_512;
}

static inline void sdmmc_stop(void) {
    SDMMC_CONTROL = 0;
    SDMMC_CLEAR = CLEAR_ALL;
}

/* Between the card's FIFO and `place`, in words where that begins with one; the card says when it ends. */
static inline void dma_move(const uint8_t *place, int reads) {
    const uint32_t words = (uint32_t)place % 4 ? 0 : DMA_MEMORY_WORDS;
    DMA_CLEAR = DMA_STREAM_3;
    DMA_DEVICE = SDMMC_FIFO;
    DMA_MEMORY = (uint32_t)place;
    DMA_COUNT = 0xFFFF;
    DMA_FIFO = DMA_BY_FIFO;
    DMA_CONTROL = DMA_CHANNEL_4 | DMA_DEVICE_FOURS | words | DMA_DEVICE_WORDS | DMA_MEMORY_GOES_ON |
                  (reads ? 0u : DMA_TO_DEVICE) | DMA_DEVICE_ENDS_IT | DMA_INTERRUPTS;
    DMA_CONTROL |= DMA_ON;
}

static inline int dma_busy(void) { return (DMA_CONTROL & DMA_ON) != 0; }

static inline int dma_failed(void) { return (DMA_FLAGS & DMA_STREAM_3_FAULT) != 0; }

static inline void dma_stop(void) {
    DMA_CONTROL &= ~DMA_ON;
    while (dma_busy()) { /* until what it is at has passed (RM0385, 8.3.15) */
    }
    DMA_CLEAR = DMA_STREAM_3;
}

#endif
