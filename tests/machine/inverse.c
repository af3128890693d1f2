/* The same by gemmlowp, for every fraction. */
#include "nn_int8.h"
static int32_t saturated(int64_t x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
static int32_t inverse(int32_t fraction) {
    const int32_t half = (int32_t)(((uint32_t)fraction + 0x80000000u) >> 1);
    int32_t y = 1515870810 + nn_doubled_high(half, -1010580540);
    for (int step = 0; step < 3; step++) {
        const int32_t rest = (1 << 29) - nn_doubled_high(half, y);
        y = saturated((int64_t)y + saturated((int64_t)nn_doubled_high(y, rest) * 4));
    }
    return saturated((int64_t)y * 2);
}
int main(void) {
    uint32_t wrong = 0;
    for (uint32_t fraction = 0; fraction < 0x80000000u; fraction++) {
        wrong += inverse((int32_t)fraction) != nn_inverse_above_one((int32_t)fraction);
    }
    return wrong != 0;
}
