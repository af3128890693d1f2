/* Pixels that lie anywhere, a few bytes each. */
#ifndef NN_GATHERED_H
#define NN_GATHERED_H

#include "nn_dsp.h"

/* Bytes between any addresses that do not overlap, by words: memcpy goes byte by byte where one is not at a word. */
static inline __attribute__((always_inline)) void nn_copy(void *to, const void *from, int32_t count) {
    uint8_t *into = (uint8_t *)to;
    const uint8_t *byte = (const uint8_t *)from;
#pragma GCC unroll 4
    for (int32_t n = 0; n < count / 4; n++) {
        const uint32_t word = nn_load_word(byte);
        memcpy(into, &word, sizeof word);
        byte += 4;
        into += 4;
    }
    for (int32_t n = 0; n < count % 4; n++) {
        into[n] = byte[n];
    }
}

#endif
