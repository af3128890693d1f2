/* Bytes of a card: one transfer at a time, which goes on while the caller does something else.
 *
 * Until a transfer is complete what is in `memory` may be anything, and must not be changed. */
#ifndef THIMBLE_STORAGE_H
#define THIMBLE_STORAGE_H

#include <stdint.h>

/* Bytes of a line of the core's data cache; 1: what the core writes is in memory, where a DMA reads it, and what a DMA
 * writes there is what the core reads. Else storage.c keeps the two in step (data_cache.h) as long as no line has
 * bytes of a transfer and others that the core writes meanwhile: `memory` below may begin anywhere if the rest of its
 * lines is left alone. */
#ifndef STORAGE_LINE_BYTES
#define STORAGE_LINE_BYTES 1
#endif
#define STORAGE_ALIGNED __attribute__((aligned(STORAGE_LINE_BYTES)))

typedef enum {
    STORAGE_OK,   /* nothing is under way */
    STORAGE_BUSY, /* a transfer is */
    STORAGE_FAILED
} storage_status_t;

typedef enum { STORAGE_READ, STORAGE_WRITE } storage_direction_t;

/* Finds the card: STORAGE_OK or STORAGE_FAILED. */
storage_status_t storage_open(void);

/* Of storage_open's card. */
uint32_t storage_blocks(void);

/* Begins to move `bytes` bytes between byte `at` of the card and `memory`; nothing else may be under way. */
storage_status_t storage_start(storage_direction_t direction, uint32_t at, uint8_t *memory, uint32_t bytes);

/* Where a transfer of the bytes from `at` on was one that reads, and `at` is no block's begin: the bytes of the block
 * before it, from the block's begin on. */
const uint8_t *storage_head(void);

/* Goes on with it, without waiting: to be called until it is not STORAGE_BUSY. */
storage_status_t storage_poll(void);

#ifdef STORAGE_SUMS
/* The program has this, and keeps sums of blocks: a device tells it of each block that has passed, with the sum of its
 * bytes (sd_crc16). Whether it is what was read or written last: of what was read, that fails with a command which is
 * tried again; what was written is right. */
uint8_t storage_sum(storage_direction_t direction, uint32_t block, uint16_t sum);
#else
static inline uint8_t storage_sum(storage_direction_t direction, uint32_t block, uint16_t sum) {
    (void)direction, (void)block, (void)sum;
    return 1;
}
#endif

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(STORAGE_POLLED)
/* An interrupt comes when a transfer may be over, or now, with storage_interrupt(): it is taken before that returns.
 * Its handler calls storage_interrupted(), which the program has. That asks what became of the transfer only while an
 * inference runs, so that a handler whose cause stays until block_device_poll has seen it switches its interrupt off,
 * and block_device_poll on again. */
#define STORAGE_INTERRUPTS
void storage_interrupt(void);
void storage_interrupted(void);
#endif

#endif
