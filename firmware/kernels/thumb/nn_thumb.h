/* For cores whose one multiplication is of 32 bits (Armv6-M, Armv7-M): inputs widened to words, and what ends sums. */
#ifndef NN_THUMB_H
#define NN_THUMB_H

#include <stdint.h>

/* The assembly needs all registers: without optimization, and always by clang, a frame pointer takes one. */
#if defined(__thumb__) && !defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) && !defined(__clang__)
#define NN_THUMB 1
#else
#define NN_THUMB 0
#endif

/* Adds a product to a sum; on Armv6-M the first factor, in a low register, is lost. */
#ifdef __thumb2__
#define NN_ADD_PRODUCT(sum, a, b) "mla " sum ", " a ", " b ", " sum "\n"
#else
#define NN_ADD_PRODUCT(sum, a, b) "muls " a ", " b ", " a "\nadd " sum ", " a "\n"
#endif

typedef int32_t __attribute__((may_alias)) nn_word_t;

/* `count` bytes, `apart` from each other, to every `step`-th word from `to` on; returns where the next one goes. */
#define NN_SPREAD(name, type)                                                                                 \
    static inline nn_word_t *name(                                                                            \
        nn_word_t *to, const type *from, int32_t count, int32_t step, int32_t apart) {                        \
        const type *const end = from + count * apart, *const fours = from + (count & ~3) * apart;             \
        for (; from != fours; from += 4 * apart, to += 4 * step) {                                            \
            to[0] = from[0];                                                                                  \
            to[step] = from[apart];                                                                           \
            to[2 * step] = from[2 * apart];                                                                   \
            to[3 * step] = from[3 * apart];                                                                   \
        }                                                                                                     \
        for (; from != end; from += apart, to += step) {                                                      \
            *to = *from;                                                                                      \
        }                                                                                                     \
        return to;                                                                                            \
    }
NN_SPREAD(nn_spread_s8, int8_t)
NN_SPREAD(nn_spread_u8, uint8_t)

static inline void nn_fill(nn_word_t *to, int32_t value, int32_t count) {
    for (int32_t n = 0; n < count; n++) {
        to[n] = value;
    }
}

/* The byte that is stored of a sum that counts from the first one that is not clipped: `ends` are the greatest that is
 * not, the scale's part and whole, and an offset; if `stepped` also where a step is added from, and that. */
static inline uint8_t nn_narrow(
    int32_t sum, const int32_t *ends, int32_t bits, int32_t coarse, int32_t stepped, uint8_t low, uint8_t high) {
    const uint32_t r = (uint32_t)sum;
    if (r > (uint32_t)ends[0]) {
        return sum < 0 ? low : high;
    }
    uint32_t value = ((r >> coarse) * (uint32_t)ends[1] >> (bits - coarse)) + r * (uint32_t)ends[2] + (uint32_t)ends[3];
    if (stepped && r >= (uint32_t)ends[4]) {
        value += (uint32_t)ends[5];
    }
    return (uint8_t)(value >> 24);
}

/* The product's lower half, whatever overflows. */
static inline int32_t nn_product(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
static inline int32_t nn_sum(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

#endif
