/* The card of a simulated Cortex-M: the file card.img (semihosting). A command takes the time that the board's card
 * is said to take; its bytes arrive when that is over, and until then its target is poison: a program that does not
 * wait for them gets another answer. A write whose bytes change under way fails.
 *
 * On a board there is no driver yet: no card answers. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include <string.h>

#include "block_device.h"

#ifdef PORT_UART
storage_status_t block_device_open(void) { return STORAGE_FAILED; }
uint32_t block_device_blocks(void) { return 0; }
storage_status_t block_device_read(uint32_t block, uint32_t count, uint8_t *to) {
    (void)block, (void)count, (void)to;
    return STORAGE_FAILED;
}
storage_status_t block_device_write(uint32_t block, uint32_t count, const uint8_t *from) {
    (void)block, (void)count, (void)from;
    return STORAGE_FAILED;
}
storage_status_t block_device_poll(void) { return STORAGE_FAILED; }
#else
#include "memory_cortex_m.h"
#include "semihosting.h"

#define POISON 0xA5
#define TICK_CONTROL PORT_REGISTER(0xE000E010)
#define TICK_RELOAD PORT_REGISTER(0xE000E014)
#define TICK_VALUE PORT_REGISTER(0xE000E018)
#define TICK_MOST 0xFFFFFFu
#define TICK_ON 5u /* of the core's clock, without an interrupt */
#define TICK_PASSED_ZERO (1u << 16)

static struct {
    int32_t file;
    uint32_t blocks, block, bytes;
    uint32_t ticks; /* still to be waited for, besides those that are counted down */
    uint32_t sum; /* of what is written */
    uint8_t *to;
    const uint8_t *from;
} device;

storage_status_t block_device_open(void) {
    device.bytes = 0;
    device.file = semihosting_open("card.img", sizeof "card.img" - 1, SEMIHOSTING_TO_UPDATE);
    if (device.file < 0) {
        return STORAGE_FAILED;
    }
    device.blocks = semihosting_length(device.file) / BLOCK_BYTES;
    return STORAGE_OK;
}

uint32_t block_device_blocks(void) { return device.blocks; }

/* SysTick counts to zero once: the rest of the time is for the next ones. */
static void count_down(void) {
    const uint32_t ticks = device.ticks < TICK_MOST ? device.ticks : TICK_MOST;
    device.ticks -= ticks;
    TICK_RELOAD = ticks;
    TICK_VALUE = 0;
    TICK_CONTROL = TICK_ON;
}

static uint32_t sum_of(const uint8_t *bytes, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t n = 0; n < count; n++) {
        sum = sum * 31 + bytes[n];
    }
    return sum;
}

static storage_status_t begin(uint32_t block, uint32_t count, uint32_t command_ticks, uint32_t block_ticks) {
    if (block > device.blocks || count > device.blocks - block) {
        return STORAGE_FAILED;
    }
    device.block = block;
    device.bytes = count * BLOCK_BYTES;
    device.ticks = command_ticks + count * block_ticks + 1;
    count_down();
    return STORAGE_BUSY;
}

storage_status_t block_device_read(uint32_t block, uint32_t count, uint8_t *to) {
    device.to = to;
    device.from = 0;
    memset(to, POISON, count * BLOCK_BYTES);
    return begin(block, count, CARD_READ_COMMAND_TICKS, CARD_READ_BLOCK_TICKS);
}

storage_status_t block_device_write(uint32_t block, uint32_t count, const uint8_t *from) {
    device.from = from;
    device.sum = sum_of(from, count * BLOCK_BYTES);
    return begin(block, count, CARD_WRITE_COMMAND_TICKS, CARD_WRITE_BLOCK_TICKS);
}

storage_status_t block_device_poll(void) {
    if (device.bytes == 0) {
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
    const int changed = device.from && sum_of(device.from, device.bytes) != device.sum;
    if (changed || semihosting_seek(device.file, device.block * BLOCK_BYTES) < 0) {
        return STORAGE_FAILED;
    }
    const uint32_t left = device.from ? semihosting_write(device.file, device.from, device.bytes)
                                      : semihosting_read(device.file, device.to, device.bytes);
    device.bytes = 0;
    return left ? STORAGE_FAILED : STORAGE_OK;
}
#endif
#endif
