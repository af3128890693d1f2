#include "nn_int8.h"
#define WRAP(name, call) \
    void name##_all(const int32_t *a, const int32_t *b, const int32_t *c, int32_t *to, int n) { \
        (void)b; (void)c; for (int i = 0; i < n; i++) to[i] = call; }
WRAP(doubled_high, nn_doubled_high(a[i], b[i]))
WRAP(rounded_shift, nn_rounded_shift(a[i], b[i]))
WRAP(scaled, nn_scaled(a[i], b[i], c[i]))
WRAP(scaled_up, nn_scaled_up(a[i], b[i], c[i]))
WRAP(half_even, nn_half_even(a[i], b[i]))
WRAP(mean, nn_mean(a[i], b[i]))
WRAP(first_tap, nn_first_tap(a[i], b[i], c[i]))
WRAP(end_tap, nn_end_tap(a[i], b[i], c[i], 7))
static int32_t over_of(int32_t x) { int32_t over; nn_reciprocal(x, &over); return over; }
static int32_t mantissa_of(int32_t x) { int32_t over; return nn_reciprocal(x, &over); }
WRAP(mantissa, mantissa_of(a[i]))
WRAP(over, over_of(a[i]))
WRAP(logarithm, nn_logarithm(a[i]))
