/* A simulated Cortex-M's: the files chip.key and chip.starts (semihosting), which stand for a slot that only the chip
 * reads and a page of its flash. A board has neither before somebody writes them for it. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include "chacha20_poly1305.h"
#include "chip.h"

#ifdef PORT_UART
int chip_key(uint8_t *key) {
    (void)key;
    return 0;
}
uint32_t chip_start(void) { return 0; }
#else
#include "semihosting.h"

int chip_key(uint8_t *key) {
    const int32_t file = semihosting_open("chip.key", sizeof "chip.key" - 1, SEMIHOSTING_TO_READ);
    if (file < 0) {
        return 0;
    }
    const int right = semihosting_length(file) == AEAD_KEY_BYTES && semihosting_read(file, key, AEAD_KEY_BYTES) == 0;
    (void)semihosting_close(file);
    return right;
}

uint32_t chip_start(void) {
    static const char name[] = "chip.starts";
    uint32_t starts = 0;
    int32_t file = semihosting_open(name, sizeof name - 1, SEMIHOSTING_TO_UPDATE);
    if (file < 0) { /* the first start */
        file = semihosting_open(name, sizeof name - 1, SEMIHOSTING_TO_WRITE);
    } else if (semihosting_read(file, &starts, sizeof starts) || semihosting_seek(file, 0) < 0) {
        starts = UINT32_MAX;
    }
    starts++;
    const int written = file >= 0 && starts && semihosting_write(file, &starts, sizeof starts) == 0;
    return semihosting_close(file) == 0 && written ? starts : 0;
}
#endif
#endif
