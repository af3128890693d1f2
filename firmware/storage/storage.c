/* Bytes over blocks: whole blocks go straight to where they belong, parts of one by way of a buffer; a block that
 * is written in part is read first. */
#include "storage.h"

#include <string.h>

#include "block_device.h"

static struct {
    uint8_t *memory;
    uint32_t at, bytes; /* what is left */
    uint32_t taken;     /* bytes that the command under way is about; 0: there is none */
    storage_direction_t direction;
    uint8_t in_part, filled; /* one block by way of the buffer, which has its old bytes */
    uint8_t block[BLOCK_BYTES];
} storage;

storage_status_t storage_open(void) {
    storage.bytes = storage.taken = 0;
    return block_device_open();
}

uint32_t storage_blocks(void) { return block_device_blocks(); }

static storage_status_t next(void) {
    const uint32_t block = storage.at / BLOCK_BYTES, skipped = storage.at % BLOCK_BYTES;
    storage.taken = 0;
    if (storage.bytes == 0) {
        return STORAGE_OK;
    }
    storage.filled = 0;
    storage.in_part = skipped || storage.bytes < BLOCK_BYTES;
    if (storage.in_part) {
        storage.taken = BLOCK_BYTES - skipped < storage.bytes ? BLOCK_BYTES - skipped : storage.bytes;
        return block_device_read(block, 1, storage.block);
    }
    storage.taken = storage.bytes / BLOCK_BYTES * BLOCK_BYTES;
    if (storage.direction == STORAGE_READ) {
        return block_device_read(block, storage.taken / BLOCK_BYTES, storage.memory);
    }
    return block_device_write(block, storage.taken / BLOCK_BYTES, storage.memory);
}

storage_status_t storage_start(storage_direction_t direction, uint32_t at, uint8_t *memory, uint32_t bytes) {
    storage.direction = direction;
    storage.at = at;
    storage.memory = memory;
    storage.bytes = bytes;
    return next();
}

storage_status_t storage_poll(void) {
    const storage_status_t status = storage.taken ? block_device_poll() : STORAGE_OK;
    if (status != STORAGE_OK || storage.taken == 0) {
        return status;
    }
    uint8_t *const part = &storage.block[storage.at % BLOCK_BYTES];
    if (storage.in_part && storage.direction == STORAGE_READ) {
        memcpy(storage.memory, part, storage.taken);
    } else if (storage.in_part && !storage.filled) {
        storage.filled = 1;
        memcpy(part, storage.memory, storage.taken);
        return block_device_write(storage.at / BLOCK_BYTES, 1, storage.block);
    }
    storage.at += storage.taken;
    storage.memory += storage.taken;
    storage.bytes -= storage.taken;
    return next();
}
