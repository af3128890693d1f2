/* A native program's: the files chip.key and chip.starts beside it. */
#if !defined(__AVR__) && !(defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M')
#include <stdio.h>

#include "chacha20_poly1305.h"
#include "chip.h"

int chip_key(uint8_t *key) {
    FILE *const file = fopen("chip.key", "rb");
    if (!file) {
        return 0;
    }
    const int right = fread(key, 1, AEAD_KEY_BYTES, file) == AEAD_KEY_BYTES && fgetc(file) == EOF;
    (void)fclose(file);
    return right;
}

uint32_t chip_start(void) {
    uint32_t starts = 0;
    FILE *file = fopen("chip.starts", "r+b");
    if (!file) { /* the first start */
        file = fopen("chip.starts", "wb");
    } else if (fread(&starts, sizeof starts, 1, file) != 1 || fseek(file, 0, SEEK_SET)) {
        starts = UINT32_MAX;
    }
    if (!file) {
        return 0;
    }
    starts++;
    const int written = starts && fwrite(&starts, sizeof starts, 1, file) == 1;
    return fclose(file) == 0 && written ? starts : 0;
}
#endif
