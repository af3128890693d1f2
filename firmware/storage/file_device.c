/* A native program's card: the file that the environment's THIMBLE_CARD names, or card.img. What is written stays
 * in memory: the file is never changed.
 *
 * Bytes arrive with the second look at a command, and its target is poison until then; so is what was changed while
 * it was written. A program that does not wait gets another answer. */
#if !defined(__AVR__) && !(defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M')
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block_device.h"
#include "sd_crc.h"

#define POISON 0xA5
#define LOOKS 2

static struct {
    uint8_t *image, *stored;
    uint32_t blocks, block, count, looks;
    storage_direction_t direction;
    block_places_t places;
} device;

storage_status_t block_device_open(void) {
    const char *name = getenv("THIMBLE_CARD");
    struct stat about;
    const int file = open(name ? name : "card.img", O_RDONLY);
    if (file < 0) {
        return STORAGE_FAILED;
    }
    if (fstat(file, &about) == 0 && about.st_size >= (off_t)BLOCK_BYTES) {
        void *mapped = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        device.image = mapped == MAP_FAILED ? NULL : mapped;
        device.blocks = (uint32_t)(about.st_size / BLOCK_BYTES);
    }
    (void)close(file);
    device.looks = 0;
    return device.image ? STORAGE_OK : STORAGE_FAILED;
}

uint32_t block_device_blocks(void) { return device.blocks; }

storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places) {
    if (block > device.blocks || count > device.blocks - block) {
        return STORAGE_FAILED;
    }
    device.stored = device.image + (size_t)block * BLOCK_BYTES;
    device.block = block;
    device.count = count;
    device.direction = direction;
    device.places = *places;
    device.looks = LOOKS;
    for (uint32_t n = 0; n < count; n++) {
        uint8_t *const place = block_place(places, n, count);
        if (direction == STORAGE_READ) {
            memset(place, POISON, BLOCK_BYTES);
        } else {
            memcpy(device.stored + (size_t)n * BLOCK_BYTES, place, BLOCK_BYTES);
        }
    }
    return STORAGE_BUSY;
}

static uint16_t sum_of(const uint8_t *block) {
    uint16_t sum = 0;
#ifdef STORAGE_SUMS
    for (uint32_t n = 0; n < BLOCK_BYTES; n++) {
        sum = sd_crc16(sum, block[n]);
    }
#else
    (void)block;
#endif
    return sum;
}

storage_status_t block_device_poll(void) {
    if (device.looks == 0) {
        return STORAGE_OK;
    }
    if (--device.looks) {
        return STORAGE_BUSY;
    }
    uint8_t right = 1;
    for (uint32_t n = 0; n < device.count; n++) {
        uint8_t *const place = block_place(&device.places, n, device.count);
        uint8_t *const stored = device.stored + (size_t)n * BLOCK_BYTES;
        if (device.direction == STORAGE_READ) {
            memcpy(place, stored, BLOCK_BYTES);
        } else if (memcmp(place, stored, BLOCK_BYTES)) {
            memset(stored, POISON, BLOCK_BYTES);
        }
        right &= storage_sum(device.direction, device.block + n, sum_of(place));
    }
    return right ? STORAGE_OK : STORAGE_FAILED;
}
#endif
