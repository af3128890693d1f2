/* net: tables, kernels and the order of steps, all fixed when this was generated. Tensors
 * lie in one arena; one that is dead gives its place to others. */
#include "model.h"

#include <string.h>

#include "nn_int8.h"
#include "nn_memory.h"

static uint8_t nn_arena[NN_ARENA_BYTES] NN_ALIGNED;

/* conv0: c_out, kh, kw, c_in */
static const int8_t nn_conv0_weights[18] = {
    35, -49, -117, -108, -123, -83, 80, 38, 105, 1, 27, 120, 59, 34, 11, 15, 111, -57,
};

/* conv0: bias */
static const int16_t nn_conv0_bias[6] = {
    1895, 1025, -2984, -636, 2144, 325,
};

/* conv0: multiplier of each channel */
static const int32_t nn_conv0_multiplier[6] = {
    1770130853, 2080578806, 1521153669, 1100783105, 1314621171, 1257734842,
};

/* conv0: shift of each channel */
static const int8_t nn_conv0_shift[6] = {
    8, 7, 7, 7, 7, 8,
};

/* conv1: c_in, kh, kw, c_out */
static const int8_t nn_conv1_weights[54] = {
    -96, 78, -28, -20, 18, -44, 7, 123, 96, -4, -63, 100, 38, -31, -93, 56, -45, -60, -62, 47, 20,
    99, 56, -70, 29, 115, 56, -109, 24, 55, 67, 38, 88, 111, 1, 31, -30, 87, 6, 8, -41, -115, -10,
    48, -32, -36, 66, -106, 127, 52, -48, 44, -28, -31,
};

/* conv1: bias */
static const int16_t nn_conv1_bias[6] = {
    1995, -595, 1722, -1102, -1564, 1750,
};

/* conv1: multiplier of each channel */
static const int32_t nn_conv1_multiplier[6] = {
    3793099, 6146546, 8860194, 4423405, 3022435, 5787423,
};

/* conv2: c_in / 2, c_out, kh, kw, 2 */
static const int8_t nn_conv2_passes_2[30] = {
    114, -104, 103, 44, -115, -34, 67, 109, -78, 0, 31, 20, 100, -77, 35, -101, -23, -15, -115, -19,
    102, -51, 66, 113, 3, 33, -7, 116, 114, 31,
};

/* conv2: bias */
static const int16_t nn_conv2_bias[5] = {
    -903, 2970, 622, 2693, -2903,
};

/* conv2: multiplier of each channel */
static const int32_t nn_conv2_multiplier[5] = {
    2042939560, 2121359995, 1376031270, 1839404878, 1312951891,
};

/* conv2: shift of each channel */
static const int8_t nn_conv2_shift[5] = {
    8, 8, 7, 8, 7,
};

/* conv2: nothing added yet */
static NN_KERNEL void nn_conv2_clear(uint8_t *restrict out) {
    for (int32_t i = 0; i < 210; i++) {
        nn_store_32(&out[i * 4], (uint32_t)(0));
    }
}

/* conv0: convolution (6, 7, 3) -> (6, 7, 6), kernel 1x1 */
static NN_KERNEL void nn_conv0(const int8_t *restrict in, int8_t *restrict out, int32_t o_start, int32_t o_stop) {
    for (int32_t y = 0; y < 6; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 7; x++) {
            const int32_t left = x;
            for (int32_t o = o_start; o < o_stop; o++) {
                int32_t sum = 0;
                const int8_t *pixel = &in[top * 21 + left * 3];
                const int8_t *weight = &nn_conv0_weights[o * 3];
                for (int32_t c = 0; c < 3; c++) {
                    sum += (pixel[c] - 14) * weight[c];
                }
                const int32_t value = nn_scaled(sum + nn_conv0_bias[o], nn_conv0_multiplier[o], nn_conv0_shift[o]);
                out[y * 14 + x * 2 + o - o_start] = (int8_t)(nn_clip(value, -108, 147) - 20);
            }
        }
    }
}

/* conv1: convolution (6, 7, 6) -> (6, 7, 6), kernel 3x3, padding 1 1 1 1, 6 groups; 2 channels at a time */
static NN_KERNEL void nn_conv1(const int8_t *restrict in, int8_t *restrict out, int32_t o_start, int32_t o_stop, int32_t in_c) {
    for (int32_t y = 0; y < 6; y++) {
        const int32_t top = y - 1;
        const int32_t ky_first = nn_first_tap(top, 0, 1);
        const int32_t ky_end = nn_end_tap(top, 6, 1, 3);
        for (int32_t x = 0; x < 7; x++) {
            const int32_t left = x - 1;
            const int32_t kx_first = nn_first_tap(left, 0, 1);
            const int32_t kx_end = nn_end_tap(left, 7, 1, 3);
            for (int32_t o = o_start; o < o_stop; o += 2) {
                int32_t sum[2];
                for (int32_t i = 0; i < 2; i++) {
                    sum[i] = 0;
                }
                for (int32_t ky = ky_first; ky < ky_end; ky++) {
                    for (int32_t kx = kx_first; kx < kx_end; kx++) {
                        const int8_t *pixel = &in[(top + ky) * 14 + (left + kx) * 2 + o - in_c];
                        const int8_t *weight = &nn_conv1_weights[ky * 18 + kx * 6 + o];
                        for (int32_t i = 0; i < 2; i++) {
                            sum[i] += (pixel[i] + 20) * weight[i];
                        }
                    }
                }
                for (int32_t i = 0; i < 2; i++) {
                    const int32_t value = nn_scaled(sum[i] + nn_conv1_bias[o + i], nn_conv1_multiplier[o + i], 0);
                    out[y * 14 + x * 2 + o + i - o_start] = (int8_t)(nn_clip(value, 10, 112) - 7);
                }
            }
        }
    }
}

/* conv2: convolution (6, 7, 6) -> (6, 7, 5), kernel 1x1, partial; 2 input channels at a time */
static NN_KERNEL void nn_conv2_part(const int8_t *restrict in, uint8_t *restrict out, int32_t in_c, int32_t c_start) {
    int32_t window[2];
    for (int32_t y = 0; y < 6; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 7; x++) {
            const int32_t left = x;
            const int8_t *pixel = &in[top * 14 + left * 2 + c_start - in_c];
            for (int32_t c = 0; c < 2; c++) {
                window[c] = (pixel[c] + 7);
            }
            const int8_t *weight = &nn_conv2_passes_2[c_start * 5];
            for (int32_t o = 0; o < 5; o++) {
                int32_t sum = 0;
#ifndef __AVR__ /* avr-gcc 5 does not know it */
#pragma GCC unroll 2
#endif
                for (int32_t n = 0; n < 2; n++) {
                    sum += window[n] * weight[n];
                }
                weight += 2;
                nn_store_32(&out[y * 140 + x * 20 + o * 4], (uint32_t)(nn_load_32(&out[y * 140 + x * 20 + o * 4]) + sum));
            }
        }
    }
}

/* conv2: complete sums to int8 */
static NN_KERNEL void nn_conv2_finish(const uint8_t *restrict in, int8_t *restrict out) {
    for (int32_t i = 0; i < 42; i++) {
        for (int32_t j = 0; j < 5; j++) {
            const int32_t value = nn_scaled(nn_load_32(&in[i * 20 + j * 4]) + nn_conv2_bias[j], nn_conv2_multiplier[j], nn_conv2_shift[j]);
            out[i * 5 + j] = (int8_t)(nn_clip(value, -137, 118) + 9);
        }
    }
}

static uint32_t nn_fed; /* bytes of the input that have arrived */

nn_status_t nn_feed(const uint8_t *bytes, uint32_t count) {
    if (count > NN_INPUT_BYTES - nn_fed) {
        return NN_CORRUPT;
    }
    memcpy(&nn_arena[nn_fed], bytes, count);
    nn_fed = (uint32_t)(nn_fed + count);
    return NN_OK;
}

nn_status_t nn_init(void) {
    nn_fed = 0;
    return NN_OK;
}

nn_input_t *nn_input(void) { return (nn_input_t *)&nn_arena[0]; }

nn_status_t nn_invoke(void) {
    if (!(nn_fed == 0 || nn_fed == NN_INPUT_BYTES)) {
        return NN_INCOMPLETE;
    }
    nn_fed = 0;
    nn_conv2_clear(&nn_arena[400]);
    for (int32_t k = 0; k < 3; k++) {
        nn_conv0((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[200], 2 * k, 2 * k + 2);
        nn_conv1((int8_t *)&nn_arena[200], (int8_t *)&nn_arena[300], 2 * k, 2 * k + 2, 2 * k);
        nn_conv2_part((int8_t *)&nn_arena[300], &nn_arena[400], 2 * k, 2 * k);
    }
    nn_conv2_finish(&nn_arena[400], (int8_t *)&nn_arena[0]);
    return NN_OK;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[0]; }
