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

#define POISON 0xA5
#define LOOKS 2

static struct {
    uint8_t *image, *stored, *to;
    const uint8_t *from;
    size_t bytes;
    uint32_t blocks, looks;
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
    device.to = NULL;
    device.from = NULL;
    return device.image ? STORAGE_OK : STORAGE_FAILED;
}

uint32_t block_device_blocks(void) { return device.blocks; }

/* Whether there are such blocks. */
static int begin(uint32_t block, uint32_t count, uint8_t *to, const uint8_t *from) {
    if (block > device.blocks || count > device.blocks - block) {
        return 0;
    }
    device.stored = device.image + (size_t)block * BLOCK_BYTES;
    device.to = to;
    device.from = from;
    device.bytes = (size_t)count * BLOCK_BYTES;
    device.looks = LOOKS;
    return 1;
}

storage_status_t block_device_read(uint32_t block, uint32_t count, uint8_t *to) {
    if (!begin(block, count, to, NULL)) {
        return STORAGE_FAILED;
    }
    memset(to, POISON, device.bytes);
    return STORAGE_BUSY;
}

storage_status_t block_device_write(uint32_t block, uint32_t count, const uint8_t *from) {
    if (!begin(block, count, NULL, from)) {
        return STORAGE_FAILED;
    }
    memcpy(device.stored, from, device.bytes);
    return STORAGE_BUSY;
}

storage_status_t block_device_poll(void) {
    if (device.looks && --device.looks) {
        return STORAGE_BUSY;
    }
    if (device.to) {
        memcpy(device.to, device.stored, device.bytes);
    } else if (device.from && memcmp(device.from, device.stored, device.bytes)) {
        memset(device.stored, POISON, device.bytes);
    }
    device.to = NULL;
    device.from = NULL;
    return STORAGE_OK;
}
#endif
