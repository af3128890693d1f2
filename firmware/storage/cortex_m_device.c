/* The card of a simulated Cortex-M: the file card.img (semihosting). A command takes the time that the board's card
 * is said to take; its bytes arrive when that is over, and until then its target is poison: a program that does not
 * wait for them gets another answer. A write whose bytes change under way fails.
 *
 * On a board without a driver no card answers. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include <string.h>

#include "block_device.h"

#if defined(PORT_UART) && !defined(STORAGE_STM32F7)
storage_status_t block_device_open(void) { return STORAGE_FAILED; }
uint32_t block_device_blocks(void) { return 0; }
storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places) {
    (void)direction, (void)block, (void)count, (void)places;
    return STORAGE_FAILED;
}
storage_status_t block_device_poll(void) { return STORAGE_FAILED; }
#ifdef STORAGE_INTERRUPTS
void storage_interrupt(void) {}
#endif
#elif !defined(PORT_UART)
#include "memory_cortex_m.h"
#include "semihosting.h"

#define POISON 0xA5
#define TICK_CONTROL PORT_REGISTER(0xE000E010)
#define TICK_RELOAD PORT_REGISTER(0xE000E014)
#define TICK_VALUE PORT_REGISTER(0xE000E018)
#define TICK_MOST 0xFFFFFFu
#define TICK_ON 5u /* of the core's clock */
#define TICK_INTERRUPTS 2u
#define INTERRUPTS PORT_REGISTER(0xE000ED04)
#define PEND_TICK (1u << 26)
#define TICK_PASSED_ZERO (1u << 16)

static struct {
    int32_t file;
    uint32_t blocks, block, count; /* of the command under way; 0: there is none */
    uint32_t ticks;                /* still to be waited for, besides those that are counted down */
    uint32_t sum;                  /* of what is written */
    storage_direction_t direction;
    block_places_t places;
} device;

storage_status_t block_device_open(void) {
    device.count = 0;
    device.file = semihosting_open("card.img", sizeof "card.img" - 1, SEMIHOSTING_TO_UPDATE);
    if (device.file < 0) { /* it may only be read: what is written fails */
        device.file = semihosting_open("card.img", sizeof "card.img" - 1, SEMIHOSTING_TO_READ);
    }
    if (device.file < 0) {
        return STORAGE_FAILED;
    }
    device.blocks = semihosting_length(device.file) / BLOCK_BYTES;
    return STORAGE_OK;
}

uint32_t block_device_blocks(void) { return device.blocks; }

#ifdef STORAGE_INTERRUPTS
#define TICK (TICK_ON | TICK_INTERRUPTS)

/* SysTick's handler: the card's place is taken by what counts its time. Hints that do nothing, for who watches the
 * instructions: what is between them is no part of what was interrupted. */
void port_card_interrupt(void) {
    __asm__ volatile(".inst.n 0xBF90" ::: "memory");
    storage_interrupted();
    __asm__ volatile(".inst.n 0xBFA0" ::: "memory");
}

/* The barriers have the handler run before the next instruction does (Armv7-M ARM, B3.2.4 and A3.7.3). */
void storage_interrupt(void) {
    INTERRUPTS = PEND_TICK;
    __asm__ volatile("dsb\nisb" ::: "memory");
}
#else
#define TICK TICK_ON
#endif

/* SysTick counts to zero once: the rest of the time is for the next ones. */
static void count_down(void) {
    const uint32_t ticks = device.ticks < TICK_MOST ? device.ticks : TICK_MOST;
    device.ticks -= ticks;
    TICK_RELOAD = ticks;
    TICK_VALUE = 0;
    TICK_CONTROL = TICK;
}

static uint32_t sum_of_all(void) {
    uint32_t sum = 0;
    for (uint32_t block = 0; block < device.count; block++) {
        const uint8_t *bytes = block_place(&device.places, block, device.count);
        for (uint32_t n = 0; n < BLOCK_BYTES; n++) {
            sum = sum * 31 + bytes[n];
        }
    }
    return sum;
}

storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places) {
    if (block > device.blocks || count > device.blocks - block) {
        return STORAGE_FAILED;
    }
    device.direction = direction;
    device.block = block;
    device.count = count;
    device.places = *places;
    if (direction == STORAGE_READ) {
        for (uint32_t n = 0; n < count; n++) {
            memset(block_place(places, n, count), POISON, BLOCK_BYTES);
        }
        device.ticks = CARD_READ_COMMAND_TICKS + count * CARD_READ_BLOCK_TICKS + 1;
    } else {
        device.sum = sum_of_all();
        device.ticks = CARD_WRITE_COMMAND_TICKS + count * CARD_WRITE_BLOCK_TICKS + 1;
    }
    count_down();
    return STORAGE_BUSY;
}

/* How many bytes of blocks that lie side by side at `place` did not pass. */
static uint32_t pass(uint8_t *place, uint32_t blocks) {
    const uint32_t bytes = blocks * BLOCK_BYTES;
    if (device.direction == STORAGE_READ) {
        return semihosting_read(device.file, place, bytes);
    }
    return semihosting_write(device.file, place, bytes);
}

static uint32_t pass_all(void) {
    const uint32_t first = device.places.first ? 1 : 0, last = device.places.last ? 1 : 0;
    uint32_t left = first ? pass(device.places.first, 1) : 0;
    if (device.count > first + last) {
        left += pass(device.places.memory, device.count - first - last);
    }
    return last ? left + pass(device.places.last, 1) : left;
}

storage_status_t block_device_poll(void) {
    if (device.count == 0) {
        return STORAGE_OK;
    }
    if (!(TICK_CONTROL & TICK_PASSED_ZERO)) {
        return STORAGE_BUSY;
    }
    if (device.ticks) {
        count_down();
        return STORAGE_BUSY;
    }
    TICK_CONTROL = 0;
    const int changed = device.direction == STORAGE_WRITE && sum_of_all() != device.sum;
    const int failed = changed || semihosting_seek(device.file, device.block * BLOCK_BYTES) < 0 || pass_all();
    device.count = 0;
    return failed ? STORAGE_FAILED : STORAGE_OK;
}
#endif
#endif
