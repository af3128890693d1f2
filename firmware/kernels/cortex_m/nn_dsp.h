/* Instructions of Arm's DSP extension (Armv7E-M, Armv8-M), and the same in C for all other machines.
 * Words hold two numbers of 16 bits. Sums wrap around: what wraps is taken apart again, or unused. */
#ifndef NN_DSP_H
#define NN_DSP_H

#include <stdint.h>
#include <string.h>

#include "nn_int8.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first byte of a word in memory is taken for its lowest"
#endif

/* The assembly needs all registers: without optimization, and always by clang, a frame pointer takes one. */
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__) && !defined(__clang__)
#define NN_DSP 1
/* Compilers put constants behind long assembly, further away than a floating-point load reaches. */
#define NN_CORE_REGISTERS __attribute__((target("general-regs-only")))
/* Keeps a variable in a register, where compilers would make it again each time. */
#define NN_HELD(variable) __asm__("" : "+r"(variable))
/* Keeps what is loaded behind it from being loaded before. */
#define NN_ORDERED() __asm__ volatile("" : : : "memory")
#define NN_EITHER(assembly, c) assembly
/* Says that what is between `do` and this may run again, so that it is what registers are given to first: it does not. */
static inline __attribute__((always_inline)) int nn_again(void) {
    __asm__ goto("" : : : : again);
    return 0;
again:
    return 1;
}
#else
#define NN_DSP 0
#define NN_CORE_REGISTERS
#define NN_HELD(variable) (void)(variable)
#define NN_ORDERED() (void)0
#define NN_EITHER(assembly, c) c
static inline int nn_again(void) { return 0; }
#endif

typedef uint32_t __attribute__((may_alias)) nn_word_t;
typedef int16_t __attribute__((may_alias)) nn_half_t;

/* Four bytes at any address. */
static inline uint32_t nn_load_word(const void *from) {
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

/* The first one, two or three of them; the others are 0. */
static inline uint32_t nn_load_some(const void *from, uint32_t bytes) {
    const uint8_t *const byte = (const uint8_t *)from;
    uint16_t two = byte[0];
    if (bytes > 1) {
        memcpy(&two, from, sizeof two);
    }
    return bytes > 2 ? two | (uint32_t)byte[2] << 16 : two;
}

static inline int32_t nn_low(uint32_t word) { return (int16_t)(word & 0xFFFF); }
static inline int32_t nn_high(uint32_t word) { return (int16_t)(word >> 16); }
static inline int32_t nn_low_u16(uint32_t word) { return (int32_t)(word & 0xFFFF); }
static inline int32_t nn_high_u16(uint32_t word) { return (int32_t)(word >> 16); }

/* Functions that are an instruction or two: their assembly, and what it does as C. */
#define NN_CODE(type, name, parameters, assembly, c)                               \
    static inline type name parameters {                                           \
        NN_EITHER(type result; __asm__ assembly; return result, return c);         \
    }
#define NN_UNARY(name, code, c) NN_CODE(uint32_t, name, (uint32_t word), (code : "=r"(result) : "r"(word)), c)
#define NN_PACK(name, code, c) \
    NN_CODE(uint32_t, name, (uint32_t a, uint32_t b), (code : "=r"(result) : "r"(a), "r"(b)), c)
#define NN_ADD(name, code, c)                                                      \
    NN_CODE(int32_t, name, (uint32_t a, uint32_t b, int32_t sum),                  \
        (code : "=r"(result) : "r"(a), "r"(b), "r"(sum)), (int32_t)((uint32_t)sum + (uint32_t)(c)))
/* Of each two bytes what a function makes of them. */
#define NN_BYTE(of, type, at) (uint32_t)(of((type)(a >> at & 255), (type)(b >> at & 255)) & 255) << at
#define NN_EACH(name, code, of, type)                                              \
    NN_CODE(uint32_t, name, (uint32_t a, uint32_t b), (code : "=&r"(result) : "r"(a), "r"(b) : "cc"), \
        NN_BYTE(of, type, 0) | NN_BYTE(of, type, 8) | NN_BYTE(of, type, 16) | NN_BYTE(of, type, 24))
static inline uint32_t nn_halves(int32_t low, int32_t high) { return ((uint32_t)low & 0xFFFF) | (uint32_t)high << 16; }
static inline int32_t nn_sum_s8(int32_t a, int32_t b) { return nn_clip(a + b, -128, 127); }
static inline int32_t nn_sum_s16(int32_t a, int32_t b) { return nn_clip(a + b, -32768, 32767); }
static inline uint32_t nn_byte_apart(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

/* Bytes 0 and 2, and bytes 1 and 3, widened. */
NN_UNARY(nn_even_s8, "sxtb16 %0, %1", nn_halves((int8_t)(word & 255), (int8_t)(word >> 16 & 255)))
NN_UNARY(nn_odd_s8, "sxtb16 %0, %1, ror #8", nn_even_s8(word >> 8))
NN_UNARY(nn_even_u8, "uxtb16 %0, %1", word & 0xFF00FF)
NN_UNARY(nn_odd_u8, "uxtb16 %0, %1, ror #8", word >> 8 & 0xFF00FF)
/* The low halves of two words, and their high halves; halves plus halves, and minus halves. */
NN_PACK(nn_lows, "pkhbt %0, %1, %2, lsl #16", (a & 0xFFFF) | b << 16)
NN_PACK(nn_highs, "pkhtb %0, %2, %1, asr #16", a >> 16 | (b & 0xFFFF0000))
NN_PACK(nn_sums, "sadd16 %0, %1, %2", ((a + b) & 0xFFFF) | ((a & 0xFFFF0000) + (b & 0xFFFF0000)))
NN_PACK(nn_differences, "ssub16 %0, %1, %2", ((a - b) & 0xFFFF) | ((a & 0xFFFF0000) - (b & 0xFFFF0000)))
/* Bytes 0 and 2 of b, or 1 and 3, widened and added to the halves of a. */
NN_PACK(nn_add_even_s8, "sxtab16 %0, %1, %2", nn_sums(a, nn_even_s8(b)))
NN_PACK(nn_add_odd_s8, "sxtab16 %0, %1, %2, ror #8", nn_sums(a, nn_odd_s8(b)))
NN_PACK(nn_add_even_u8, "uxtab16 %0, %1, %2", nn_sums(a, nn_even_u8(b)))
NN_PACK(nn_add_odd_u8, "uxtab16 %0, %1, %2, ror #8", nn_sums(a, nn_odd_u8(b)))
/* The greater and the less of each two bytes; each sum, as near as a number of its bits comes. */
NN_EACH(nn_max_s8, "ssub8 %0, %1, %2\n sel %0, %1, %2", nn_max, int8_t)
NN_EACH(nn_min_s8, "ssub8 %0, %1, %2\n sel %0, %2, %1", nn_min, int8_t)
NN_EACH(nn_max_u8, "usub8 %0, %1, %2\n sel %0, %1, %2", nn_max, uint8_t)
NN_EACH(nn_min_u8, "usub8 %0, %1, %2\n sel %0, %2, %1", nn_min, uint8_t)
NN_EACH(nn_sums_8, "qadd8 %0, %1, %2", nn_sum_s8, int8_t)
NN_PACK(nn_sums_16, "qadd16 %0, %1, %2", nn_halves(nn_sum_s16(nn_low(a), nn_low(b)), nn_sum_s16(nn_high(a), nn_high(b))))
/* A sum, and to it products of halves; a * b / 2**32 to nearest, halves towards +infinity; how far bytes are apart. */
NN_ADD(nn_add_pair, "smlad %0, %1, %2, %3", (uint32_t)(nn_low(a) * nn_low(b)) + (uint32_t)(nn_high(a) * nn_high(b)))
NN_ADD(nn_add_low_high, "smlabt %0, %1, %2, %3", nn_low(a) * nn_high(b))
NN_ADD(nn_add_high_low, "smlatb %0, %1, %2, %3", nn_high(a) * nn_low(b))
NN_ADD(nn_add_low_low, "smlabb %0, %1, %2, %3", nn_low(a) * nn_low(b))
NN_ADD(nn_add_high_high, "smlatt %0, %1, %2, %3", nn_high(a) * nn_high(b))
NN_ADD(nn_add_product, "smmlar %0, %1, %2, %3", ((int64_t)(int32_t)a * (int32_t)b + ((int64_t)1 << 31)) >> 32)
NN_ADD(nn_add_apart, "usada8 %0, %1, %2, %3",
       nn_byte_apart(a & 255, b & 255) + nn_byte_apart(a >> 8 & 255, b >> 8 & 255) +
       nn_byte_apart(a >> 16 & 255, b >> 16 & 255) + nn_byte_apart(a >> 24, b >> 24))
NN_CODE(int32_t, nn_saturated_s8, (int32_t value), ("ssat %0, #8, %1" : "=r"(result) : "r"(value)), nn_clip(value, -128, 127))
NN_CODE(int32_t, nn_saturated_u8, (int32_t value), ("usat %0, #8, %1" : "=r"(result) : "r"(value)), nn_clip(value, 0, 255))
#undef NN_CODE
#undef NN_UNARY
#undef NN_PACK
#undef NN_ADD
#undef NN_EACH

/* The same where their order matters, so that no compiler changes it, of variables that they write first. */
#define NN_AT(place) NN_EITHER(__asm__(place), )
#define NN_DO(assembly, c) NN_EITHER(__asm__ volatile assembly, c)
#define NN_LOAD(to, from, place) \
    NN_DO(("ldr %0, [%1, %2]" : "=r"(to) : "r"(from), "i"(place)), to = nn_load_word((const char *)(from) + (place)))
#define NN_NEXT(to, from, more)                                                       \
    NN_DO(("ldr %0, [%1], %2" : "=r"(to), "+r"(from) : "i"(more)),                    \
        (to = nn_load_word(from), from += (more) / (int32_t)sizeof *from))
#define NN_FETCH(to, from) NN_DO(("ldr %0, %1" : "=r"(to) : "m"(from)), to = nn_load_word(&from))
#define NN_EVEN(to, word) NN_DO(("sxtb16 %0, %1" : "=r"(to) : "r"(word)), to = nn_even_s8(word))
#define NN_ODD(to, word) NN_DO(("sxtb16 %0, %1, ror #8" : "=r"(to) : "r"(word)), to = nn_odd_s8(word))
#define NN_BOTH(sum, a, b) NN_DO(("smuad %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b)), sum = nn_add_pair(a, b, 0))
#define NN_PAIR(sum, a, b) NN_DO(("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b)), sum = nn_add_pair(a, b, sum))
#define NN_LOW_HIGH(sum, a, b) \
    NN_DO(("smlabt %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b)), sum = nn_add_low_high(a, b, sum))
#define NN_HIGH_LOW(sum, a, b) \
    NN_DO(("smlatb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b)), sum = nn_add_high_low(a, b, sum))
#define NN_PRODUCT(to, a, b) \
    NN_DO(("smmulr %0, %1, %2" : "=r"(to) : "r"(a), "r"(b)), to = (uint32_t)nn_add_product(a, (uint32_t)(b), 0))
#define NN_PUT(bits, to, word, at)                                                    \
    NN_DO(("bfi %0, %1, #" #at ", #" #bits : "+r"(to) : "r"(word)),                   \
        to = (to & ~(~(~0u << bits) << at)) | ((word) & ~(~0u << bits)) << at)
#define NN_CLIP(bits, to, word)                                                       \
    NN_DO(("ssat %0, #" #bits ", %1" : "=r"(to) : "r"(word)),                         \
        to = (uint32_t)nn_clip((int32_t)(word), -(1 << (bits - 1)), (1 << (bits - 1)) - 1))
#define NN_SUMS_8(sums, word) NN_DO(("qadd8 %0, %0, %1" : "+r"(sums) : "r"(word)), sums = nn_sums_8(sums, word))
#define NN_SUMS_16(sums, word) NN_DO(("qadd16 %0, %0, %1" : "+r"(sums) : "r"(word)), sums = nn_sums_16(sums, word))
#define NN_STORE(word, to, place) \
    NN_DO(("str %0, [%1, %2]" : : "r"(word), "r"(to), "i"(place)), memcpy((char *)(to) + (place), &word, sizeof word))

/* Bytes as pairs of 16 bits, and the halves of `less` added: of every four, those with an even number in one word, the
 * others in the next, which is `step` words further. */
#define NN_WIDEN(kind)                                                                  \
    static inline __attribute__((always_inline)) nn_word_t *nn_widen_less_##kind(       \
        nn_word_t *to, const void *from, int32_t words, int32_t step, uint32_t less) {  \
        const uint8_t *byte = (const uint8_t *)from;                                    \
        uint32_t more = less;                                                           \
        NN_HELD(more);                                                                  \
        _Pragma("GCC unroll 4") for (int32_t n = 0; n < words; n++) {                   \
            const uint32_t word = nn_load_word(byte);                                   \
            byte += 4;                                                                  \
            to[0] = less ? nn_add_even_##kind(more, word) : nn_even_##kind(word);       \
            to[step] = less ? nn_add_odd_##kind(more, word) : nn_odd_##kind(word);      \
            to += 2 * step;                                                             \
        }                                                                               \
        return to;                                                                      \
    }                                                                                   \
    static inline __attribute__((always_inline)) nn_word_t *nn_widen_##kind(            \
        nn_word_t *to, const void *from, int32_t words, int32_t step) {                 \
        return nn_widen_less_##kind(to, from, words, step, 0);                          \
    }
NN_WIDEN(s8)
NN_WIDEN(u8)

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

/* TFLite's requantization of a sum, given twice: times multiplier * 2**(-32 - shift), rounded at bit
 * 32 and then half away from zero. `offset` is half of 2**shift and the zero point times 2**shift;
 * `toward` is 0, or `twice` where negative results matter. */
static inline int32_t nn_requantized(
    int32_t twice, int32_t multiplier, int32_t offset, int32_t shift, int32_t toward) {
    const int32_t sum = nn_add_product((uint32_t)twice, (uint32_t)multiplier, offset);
    return (int32_t)((uint32_t)sum + (uint32_t)(toward >> 31)) >> shift;
}

/* Sums of two channels come as b, and as s = b + 256 * a; twice of each. */
static inline int32_t nn_twice(int32_t b) { return (int32_t)((uint32_t)b << 1); }
static inline int32_t nn_twice_upper(int32_t s, int32_t b) {
    return (int32_t)((uint32_t)s - (uint32_t)b) >> 7;
}

#endif
