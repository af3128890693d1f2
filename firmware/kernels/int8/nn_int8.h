/* Arithmetic of networks of 8-bit integers, the same on every machine: int32_t throughout, int64_t in
 * the one product that needs it. Right shifts of negative numbers are arithmetic, as every compiler
 * that is likely to read this has them. */
#ifndef NN_INT8_H
#define NN_INT8_H

#include <stdint.h>
#include <string.h>

#include "nn_memory.h"

/* Where index `index` of a ring of `size` lies; there is no division by a constant of 32 bits on an AVR, and no index that
 * needs them. */
#if defined(__AVR__)
#define nn_ring(index, size) ((int16_t)((uint16_t)(index) % (size)))
#else
#define nn_ring(index, size) ((index) % (size))
#endif

static inline int32_t nn_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t nn_max(int32_t a, int32_t b) { return a > b ? a : b; }

static inline int32_t nn_clip(int32_t value, int32_t low, int32_t high) {
    return nn_max(low, nn_min(value, high));
}

/* value * multiplier / 2**31 to nearest, halves towards +infinity: gemmlowp's
 * SaturatingRoundingDoublingHighMul, but for -2**31 times itself. */
static inline int32_t nn_doubled_high(int32_t value, int32_t multiplier) {
    const int64_t rounded = (int64_t)value * multiplier + ((int32_t)1 << 30);
#if defined(__AVR__) /* where eight bytes are shifted bit by bit */
    uint32_t words[2];
    memcpy(words, &rounded, sizeof words);
    return (int32_t)(words[1] << 1 | words[0] >> 31);
#else
    return (int32_t)(rounded >> 31);
#endif
}

/* value / 2**exponent to nearest, halves away from zero: gemmlowp's RoundingDivideByPOT. */
static inline int32_t nn_rounded_shift(int32_t value, int32_t exponent) {
    const int32_t mask = (int32_t)(((uint32_t)1 << exponent) - 1);
    return (value >> exponent) + ((value & mask) > (mask >> 1) + (value < 0));
}

/* TFLite's MultiplyByQuantizedMultiplier: value * multiplier * 2**(-31 - right), rounded twice. */
static inline int32_t nn_scaled(int32_t value, int32_t multiplier, int32_t right) {
    return nn_rounded_shift(nn_doubled_high(value, multiplier), right);
}

/* The same by a shift that may go left (positive), before the multiplication. */
static inline int32_t nn_scaled_up(int32_t value, int32_t multiplier, int32_t shift) {
    const int64_t shifted = (int64_t)value * ((int64_t)1 << (shift > 0 ? shift : 0));
    int64_t high = (shifted * multiplier + ((int32_t)1 << 30)) >> 31;
    high = high > INT32_MAX ? INT32_MAX : high < INT32_MIN ? INT32_MIN : high;
    return nn_rounded_shift((int32_t)high, shift < 0 ? -shift : 0);
}

/* value / 2**exponent to nearest, halves to even; exponent >= 1. */
static inline int32_t nn_half_even(int32_t value, int32_t exponent) {
    const int32_t floor = value >> exponent, half = (int32_t)1 << (exponent - 1);
    const int32_t rest = (int32_t)((uint32_t)value & (((uint32_t)1 << exponent) - 1));
    return floor + (rest > half || (rest == half && (floor & 1)));
}

/* sum / count to nearest, halves away from zero: TFLite's AVERAGE_POOL_2D. */
static inline int32_t nn_mean(int32_t sum, int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* 1 / (1 + fraction) in Q0.31. As gemmlowp: three steps of Newton's method in Q2.29 from
 * 48/17 - 32/17 * x. */
static inline int32_t nn_inverse_above_one(int32_t fraction) {
    const int32_t half = (int32_t)(((uint32_t)fraction + 0x80000000u) >> 1);
    int32_t y = 1515870810 + nn_doubled_high(half, -1010580540);
    for (uint8_t step = 0; step < 3; step++) {
        const int32_t rest = ((int32_t)1 << 29) - nn_doubled_high(half, y);
        y += nn_doubled_high(y, rest) * 4; /* what gemmlowp saturates never is: tests try every fraction */
    }
    return (int32_t)((uint32_t)y * 2 - ((uint32_t)y >> 30)); /* y is 2**30 at most, of which twice is INT32_MAX */
}

/* How often x is shifted left until it is at least 2**30. */
static inline int32_t nn_headroom(int32_t x) {
#if defined(__ARM_FEATURE_CLZ) /* one instruction, whatever x is */
    return __builtin_clz((uint32_t)x) - 1;
#else
    int32_t headroom = 0;
    while (((uint32_t)x << headroom & 0x40000000u) == 0) {
        headroom++;
    }
    return headroom;
#endif
}

/* 1 / x for x >= 1 in Q12.19: a mantissa in Q0.31, and how many bits 1 / mantissa is over one. */
static inline int32_t nn_reciprocal(int32_t x, int32_t *over) {
    const int32_t headroom = nn_headroom(x) + 1;
    *over = 12 - headroom;
    return nn_inverse_above_one((int32_t)(((uint32_t)x << headroom) - 0x80000000u));
}

/* log(x) in Q5.26 of x >= 1 in Q12.19: TFLite's log_x_for_x_greater_than_or_equal_to_1. */
static inline int32_t nn_logarithm(int32_t x) {
    const int32_t half = nn_doubled_high(x, 1518500250), start = 1805811301; /* x / 2**(1/2), 2**-(1/4) */
    const int32_t above = nn_headroom(x), below = nn_headroom(half);
    const int64_t nearer = (int64_t)nn_doubled_high((int32_t)((uint32_t)x << above), 1518500250) * 2;
    const int64_t other = (int64_t)x * ((int64_t)1 << below), least = nearer < other ? nearer : other;
    const int32_t r = least > INT32_MAX ? INT32_MAX : (int32_t)least;
    const int32_t power = nn_max((11 - above) * 33554432 + 8388608, (12 - below) * 33554432 - 8388608);
    const int32_t p = (int32_t)(((uint32_t)r + (uint32_t)start + 1) >> 1), q = (r - start) * 2;
    const int32_t square = nn_doubled_high(q, q);
    const int32_t number = nn_doubled_high(q, r) + nn_doubled_high(nn_doubled_high(q, square), 117049297);
    const int32_t inner = nn_doubled_high(p, 1057819769 + q + nn_doubled_high(square, 127690142));
    const int32_t inverse = nn_inverse_above_one(nn_max(0, inner + nn_doubled_high(q, 638450708)));
    return (nn_doubled_high(power, 1488522236) + nn_doubled_high(nn_rounded_shift(number, 6), inverse)) * 2;
}

/* 1 / sqrt(x) as m * 2**(k - 62), m below 2**31: the root of x * 4**k, of 32 bits, bit by bit. */
static inline int32_t nn_inverse_root(uint64_t x, int32_t *k) {
    x = x ? x : 1;
    for (*k = 0; x < (uint64_t)1 << 62; (*k)++) {
        x <<= 2;
    }
    uint64_t root = 0, rest = x;
    for (uint64_t bit = (uint64_t)1 << 62; bit; bit >>= 2) {
        const uint64_t trial = root + bit;
        root >>= 1;
        if (rest >= trial) {
            rest -= trial;
            root += bit;
        }
    }
    const uint64_t inverse = ((uint64_t)1 << 62) / root;
    return inverse > INT32_MAX ? INT32_MAX : (int32_t)inverse;
}

/* Elements of 16 bits in the arena, at even addresses. */
typedef int16_t __attribute__((may_alias)) nn_wide_t;

/* Sigmoid times 2**(16 + bits) of u >= 0, on the line between two of its `points`, 2**bits apart. */
static inline int32_t nn_sigmoid_line(const uint16_t *points, int32_t u, uint8_t bits) {
    const int32_t low = nn_flash16(&points[u >> bits]), high = nn_flash16(&points[(u >> bits) + 1]);
    return low * ((int32_t)1 << bits) + (high - low) * (u & (((int32_t)1 << bits) - 1));
}

/* TFLite's LOGISTIC of int16 in steps of 2**-12, in Q0.15. */
static inline int32_t nn_sigmoid(const uint16_t *points, int32_t q) {
    const int32_t line = nn_sigmoid_line(points, q < 0 ? -3 * q : 3 * q, 9);
    return (q < 0 ? ((int32_t)1 << 25) - line + 511 : line + 512) >> 10;
}

/* TFLite's TANH of int16 in steps of 1/12288, in Q0.15. */
static inline int32_t nn_tanh(const uint16_t *points, int32_t u) {
    const int32_t size = u < 0 ? -u : u, one = (int32_t)1 << 23;
    const int32_t line = size >> 8 >= 255 ? (int32_t)65535 << 8 : nn_sigmoid_line(points, size, 8);
    return (u < 0 ? one - line + 127 : line - one + 128) >> 8;
}

/* Tap t of a window reads position at + t * dilation. The first tap that reads `low` or above, and
 * the one after the last that reads below `high`. */
static inline int32_t nn_first_tap(int32_t at, int32_t low, int32_t dilation) {
    return at >= low ? 0 : (low - at + dilation - 1) / dilation;
}

static inline int32_t nn_end_tap(int32_t at, int32_t high, int32_t dilation, int32_t taps) {
    return at >= high ? 0 : nn_min(taps, (high - at + dilation - 1) / dilation);
}

/* The sum of `count` products of (value - least) and weight, where `least` is the least that a value can be, as a byte:
 * the difference is one without a sign. `values` are bytes with or without. */
#if defined(__AVR__) /* where a compiler runs out of registers in a loop of these */
static NN_NOINLINE __attribute__((unused)) int32_t nn_dot(
    const void *values, const int8_t *weights, uint16_t count, uint8_t least) {
    int32_t sum = 0;
    uint8_t value, weight;
    if (count) {
        __asm__ volatile(
            "1: ld %[value], X+\n\t"
            "ld %[weight], Z+\n\t"
            "sub %[value], %[least]\n\t"
            "mulsu %[weight], %[value]\n\t"
            "sbc %[value], %[value]\n\t" /* the product's sign */
            "add %A[sum], r0\n\t"
            "adc %B[sum], r1\n\t"
            "adc %C[sum], %[value]\n\t"
            "adc %D[sum], %[value]\n\t"
            "sbiw %[count], 1\n\t"
            "brne 1b\n\t"
            "clr __zero_reg__"
            : [sum] "+r"(sum), "+x"(values), "+z"(weights), [count] "+w"(count), [value] "=&a"(value), [weight] "=&a"(weight)
            : [least] "r"(least)
            : "r0", "memory");
    }
    return sum;
}
#else
static inline int32_t nn_dot(const void *values, const int8_t *weights, uint16_t count, uint8_t least) {
    int32_t sum = 0;
    for (uint16_t n = 0; n < count; n++) {
        sum += (int32_t)(uint8_t)(((const uint8_t *)values)[n] - least) * weights[n];
    }
    return sum;
}
#endif

#endif
