/* Products of bytes as they lie in memory, four at a time. `less` has the inputs' zero point, negative, in both
 * halves. */
#ifndef NN_ORDERED_H
#define NN_ORDERED_H

#include "nn_dsp.h"
#include "nn_int8.h"

/* Two rows of weights with one or `two` of inputs, the second `other` bytes further on: x0 w0, x1 w0, x0 w1, x1 w1. */
static inline __attribute__((always_inline)) void nn_rows_dot(
    const int8_t *x, int32_t other, const int8_t *w0, const int8_t *w1, int32_t count, uint32_t less, int32_t *sum, int two) {
    const int32_t next = (int32_t)(w1 - w0);
    const int8_t *const end = x + (count & ~3);
    int32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    while (x < end) {
        const uint32_t left = nn_load_word(x), right = two ? nn_load_word(x + other) : 0;
        const uint32_t odd_0 = nn_add_odd_s8(less, left), odd_1 = nn_add_odd_s8(less, right);
        const uint32_t even_0 = nn_add_even_s8(less, left), even_1 = nn_add_even_s8(less, right);
        uint32_t word = nn_load_word(w0 + next), even = nn_even_s8(word), odd = nn_odd_s8(word);
        c = nn_add_pair(odd_0, odd, nn_add_pair(even_0, even, c));
        d = two ? nn_add_pair(odd_1, odd, nn_add_pair(even_1, even, d)) : d;
        word = nn_load_word(w0);
        even = nn_even_s8(word);
        odd = nn_odd_s8(word);
        a = nn_add_pair(odd_0, odd, nn_add_pair(even_0, even, a));
        b = two ? nn_add_pair(odd_1, odd, nn_add_pair(even_1, even, b)) : b;
        x += 4;
        w0 += 4;
    }
    for (count = count > 0 ? count & 3 : 0; count > 0; count--, x++, w0++) {
        const int32_t left = *x + nn_low(less), right = two ? x[other] + nn_low(less) : 0;
        a += left * *w0;
        b += right * *w0;
        c += left * w0[next];
        d += right * w0[next];
    }
    sum[0] = a;
    sum[1] = b;
    sum[2] = c;
    sum[3] = d;
}

/* A function of its own: it needs all registers, so that inside of a kernel each product would take up to half as long
 * again, depending on what is around. */
static NN_NOCLONE NN_NOINLINE __attribute__((unused)) void nn_dot_2x2(
    const int8_t *x, int32_t other, const int8_t *w0, const int8_t *w1, int32_t count, uint32_t less, int32_t *sum) {
    nn_rows_dot(x, other, w0, w1, count, less, sum, 1);
}

#endif
