/* What a card does: whole blocks, one command at a time. One file of this folder for each device, chosen by the
 * compiler that reads it. */
#ifndef THIMBLE_BLOCK_DEVICE_H
#define THIMBLE_BLOCK_DEVICE_H

#include <stdint.h>

#include "storage.h"

#define BLOCK_BYTES 512u

/* Of adjacent blocks: the first one's place and the last one's, if they are not null, and the others' one after the
 * other. */
typedef struct {
    uint8_t *first, *memory, *last;
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
