/* Bytes over blocks: a transfer is one command. Whole blocks go straight to where they belong, the first and the
 * last one, of which only a part is wanted, by way of buffers; before they are written they are read. */
#include "block_device.h"
#include "data_cache.h"

#ifndef STORAGE_STREAMED
#include <string.h>

static struct {
    uint8_t *memory;
    uint32_t at, bytes;
    storage_direction_t direction;
    enum { IDLE, READING_FIRST, READING_LAST, MOVING } state;
    block_places_t places;
    uint8_t first[BLOCK_BYTES] STORAGE_ALIGNED, last[BLOCK_BYTES]; /* lines of their own */
} storage;

storage_status_t storage_open(void) {
    storage.state = IDLE;
    return block_device_open();
}

uint32_t storage_blocks(void) { return block_device_blocks(); }

const uint8_t *storage_head(void) { return storage.first; }

static uint32_t first_block(void) { return storage.at / BLOCK_BYTES; }
static uint32_t last_block(void) { return (storage.at + storage.bytes - 1) / BLOCK_BYTES; }

/* Between the buffers and the caller's bytes. */
static void copy_parts(void) {
    const uint32_t skipped = storage.at % BLOCK_BYTES, room = BLOCK_BYTES - skipped;
    const uint32_t begin = room < storage.bytes ? room : storage.bytes;
    const uint32_t end = (storage.at + storage.bytes) % BLOCK_BYTES;
    uint8_t *const tail = storage.memory + storage.bytes - end;
    const int reads = storage.direction == STORAGE_READ;
    if (storage.places.first) {
        memcpy(reads ? storage.memory : storage.first + skipped, reads ? storage.first + skipped : storage.memory, begin);
    }
    if (storage.places.last) {
        memcpy(reads ? tail : storage.last, reads ? storage.last : tail, end);
    }
}

static void in_step(uint8_t *memory, uint32_t blocks, int arrived) {
    if (blocks && arrived) {
        data_cache_discard(memory, blocks * BLOCK_BYTES);
    } else if (blocks) {
        data_cache_clean(memory, blocks * BLOCK_BYTES);
    }
}

/* Where a command moves blocks memory and cache are one before it begins, so that nothing is written over what
 * arrives, and once it has `arrived` the core reads memory. */
static void all_in_step(uint8_t state, int arrived) {
    const uint32_t first = storage.places.first != 0, last = storage.places.last != 0;
    if (state == MOVING) {
        in_step(storage.places.memory, last_block() - first_block() + 1 - first - last, arrived);
    }
    in_step(storage.first, state == MOVING ? first : state == READING_FIRST, arrived);
    in_step(storage.last, state == MOVING ? last : state == READING_LAST, arrived);
}

static storage_status_t begin(uint8_t state, uint32_t block, uint32_t count, const block_places_t *places) {
    const storage_direction_t direction = state == MOVING ? storage.direction : STORAGE_READ;
    all_in_step(state, 0);
    const storage_status_t status = block_device_start(direction, block, count, places);
    storage.state = status == STORAGE_BUSY ? state : IDLE;
    return status;
}

static storage_status_t read_one(uint8_t state, uint32_t block, uint8_t *to) {
    return begin(state, block, 1, &(block_places_t){.memory = to});
}

/* The next command: of a write those that read what is written in part come first. */
static storage_status_t next(void) {
    const int writes = storage.direction == STORAGE_WRITE;
    if (storage.state == IDLE && writes && storage.places.first) {
        return read_one(READING_FIRST, first_block(), storage.first);
    }
    if (storage.state < READING_LAST && writes && storage.places.last) {
        return read_one(READING_LAST, last_block(), storage.last);
    }
    if (writes) {
        copy_parts();
    }
    return begin(MOVING, first_block(), last_block() - first_block() + 1, &storage.places);
}

storage_status_t storage_start(storage_direction_t direction, uint32_t at, uint8_t *memory, uint32_t bytes) {
    if (bytes == 0) {
        return STORAGE_OK;
    }
    const uint32_t skipped = at % BLOCK_BYTES, end = (at + bytes) % BLOCK_BYTES;
    const int alone = at / BLOCK_BYTES == (at + bytes - 1) / BLOCK_BYTES;
    storage.direction = direction;
    storage.at = at;
    storage.memory = memory;
    storage.bytes = bytes;
    storage.places.first = skipped || (alone && end) ? storage.first : 0;
    storage.places.last = end && !alone ? storage.last : 0;
    storage.places.memory = memory + (skipped ? BLOCK_BYTES - skipped : 0);
    storage.state = IDLE;
    return next();
}

storage_status_t storage_poll(void) {
    if (storage.state == IDLE) {
        return STORAGE_OK;
    }
    const storage_status_t status = block_device_poll();
    if (status == STORAGE_BUSY) {
        return STORAGE_BUSY;
    }
    if (storage.state != MOVING || storage.direction == STORAGE_READ) {
        all_in_step(storage.state, 1);
    }
    if (status == STORAGE_OK && storage.state != MOVING) {
        return next();
    }
    if (status == STORAGE_OK && storage.direction == STORAGE_READ) {
        copy_parts();
    }
    storage.state = IDLE;
    return status;
}
#endif
