/* Bytes over blocks that pass byte by byte: what is read goes straight to where it belongs, with one command, and
 * what is not wanted of a block goes nowhere. A block that is written in part is read to a buffer before. */
#include "block_device.h"

#ifdef STORAGE_STREAMED
#include <string.h>

static struct {
    uint8_t *memory;     /* of the bytes that are left to be written, */
    uint32_t at, bytes;  /* where on the card they go and how many they are */
    uint32_t taken;      /* of them, with the command under way */
    enum { IDLE, READING, FILLING, WRITING } state;
    uint8_t block[BLOCK_BYTES];
} nn_storage;

storage_status_t storage_open(void) {
    nn_storage.state = IDLE;
    return block_device_open();
}

uint32_t storage_blocks(void) { return block_device_blocks(); }

static storage_status_t begin(
    uint8_t state, storage_direction_t direction, uint32_t at, uint32_t count, const block_places_t *places) {
    const storage_status_t status = block_device_start(direction, at / BLOCK_BYTES, count, places);
    nn_storage.state = status == STORAGE_BUSY ? state : IDLE;
    return status;
}

/* The block that is written in part, or as many whole ones as follow each other. */
static storage_status_t write_next(void) {
    const uint32_t at = nn_storage.at, left = nn_storage.bytes, room = BLOCK_BYTES - at % BLOCK_BYTES;
    if (room < BLOCK_BYTES || left < BLOCK_BYTES) {
        nn_storage.taken = left < room ? left : room;
        return begin(FILLING, STORAGE_READ, at, 1, &(block_places_t){.memory = nn_storage.block});
    }
    nn_storage.taken = left / BLOCK_BYTES * BLOCK_BYTES;
    return begin(WRITING, STORAGE_WRITE, at, left / BLOCK_BYTES, &(block_places_t){.memory = nn_storage.memory});
}

static storage_status_t write_filled(void) {
    memcpy(nn_storage.block + nn_storage.at % BLOCK_BYTES, nn_storage.memory, nn_storage.taken);
    return begin(WRITING, STORAGE_WRITE, nn_storage.at, 1, &(block_places_t){.memory = nn_storage.block});
}

storage_status_t storage_start(storage_direction_t direction, uint32_t at, uint8_t *memory, uint32_t bytes) {
    if (bytes == 0) {
        return STORAGE_OK;
    }
    const uint32_t first = at / BLOCK_BYTES, blocks = (at + bytes - 1) / BLOCK_BYTES - first + 1;
    if (first > block_device_blocks() || blocks > block_device_blocks() - first) {
        return STORAGE_FAILED; /* before some of it is written */
    }
    if (direction == STORAGE_WRITE) {
        nn_storage.memory = memory;
        nn_storage.at = at;
        nn_storage.bytes = bytes;
        return write_next();
    }
    const block_places_t places = {.memory = memory, .bytes = bytes, .skipped = at % BLOCK_BYTES};
    return begin(READING, STORAGE_READ, at, blocks, &places);
}

storage_status_t storage_poll(void) {
    if (nn_storage.state == IDLE) {
        return STORAGE_OK;
    }
    const storage_status_t status = block_device_poll();
    if (status == STORAGE_BUSY) {
        return STORAGE_BUSY;
    }
    if (status == STORAGE_OK && nn_storage.state == FILLING) {
        return write_filled();
    }
    if (status == STORAGE_OK && nn_storage.state == WRITING) {
        nn_storage.memory += nn_storage.taken;
        nn_storage.at += nn_storage.taken;
        nn_storage.bytes -= nn_storage.taken;
        if (nn_storage.bytes) {
            return write_next();
        }
    }
    nn_storage.state = IDLE;
    return status;
}
#endif
