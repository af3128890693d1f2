/* What a card does: whole blocks, one command at a time. One file of this folder for each device, chosen by the
 * compiler that reads it. */
#ifndef THIMBLE_BLOCK_DEVICE_H
#define THIMBLE_BLOCK_DEVICE_H

#include <stdint.h>

#include "storage.h"

#define BLOCK_BYTES 512u

/* STORAGE_OK or STORAGE_FAILED. */
storage_status_t block_device_open(void);
uint32_t block_device_blocks(void);

/* Begin to move `count` adjacent blocks: STORAGE_BUSY or STORAGE_FAILED. */
storage_status_t block_device_read(uint32_t block, uint32_t count, uint8_t *to);
storage_status_t block_device_write(uint32_t block, uint32_t count, const uint8_t *from);

/* STORAGE_BUSY until that is done. */
storage_status_t block_device_poll(void);

#endif
