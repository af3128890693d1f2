/* What a card does: whole blocks, one command at a time. One file of this folder for each device, chosen by the
 * compiler that reads it. */
#ifndef THIMBLE_BLOCK_DEVICE_H
#define THIMBLE_BLOCK_DEVICE_H

#include <stdint.h>

#include "storage.h"

#define BLOCK_BYTES 512u

#ifdef __AVR__ /* a card on SPI, whose bytes pass one by one */
#define STORAGE_SD
#define STORAGE_STREAMED
#endif

#if defined(STORAGE_SD) && STORAGE_LINE_BYTES > 1
#error "sd_device.c has the core itself write what arrives: -DSTORAGE_LINE_BYTES=1"
#endif

/* Where adjacent blocks are in memory.
 *
 * A device that passes whole blocks has the first one's place and the last one's, if they are not null, and the
 * others' one after the other. With `bytes` other than 0, which only one that passes bytes one by one knows, no block
 * has a place of its own: so many bytes, from byte `skipped` of the first block on, are read to `memory`. */
typedef struct {
    uint8_t *first, *memory, *last;
    uint32_t bytes;
    uint16_t skipped;
} block_places_t;

static inline uint8_t *block_place(const block_places_t *places, uint32_t number, uint32_t count) {
    if (number == 0 && places->first) {
        return places->first;
    }
    if (number == count - 1 && places->last) {
        return places->last;
    }
    return places->memory + (number - (places->first ? 1 : 0)) * BLOCK_BYTES;
}

/* STORAGE_OK or STORAGE_FAILED. */
storage_status_t block_device_open(void);
uint32_t block_device_blocks(void);

/* Begins to move `count` adjacent blocks, with one command: STORAGE_BUSY or STORAGE_FAILED. */
storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places);

/* STORAGE_BUSY until that is done. */
storage_status_t block_device_poll(void);

#endif
