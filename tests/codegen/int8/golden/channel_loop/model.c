/* chain: tables, kernels and the order of steps, all fixed when this was generated. Tensors
 * lie in one arena; one that is dead gives its place to others. */
#include "model.h"

#include <string.h>

#include "nn_int8.h"
#include "nn_memory.h"

static uint8_t nn_arena[NN_ARENA_BYTES] NN_ALIGNED;

/* h: c_out, kh, kw, c_in */
static const int8_t nn_h_weights[108] = {
    89, 35, 2, -59, -50, -118, -109, -124, -84, 80, 38, 105, 0, 27, 120, 58, 33, 11, 15, 111, -57,
    80, 43, -128, -28, 91, 13, -120, 67, 58, 88, -84, -106, 92, -123, 10, -108, -52, -5, -20, -25,
    -121, -127, -97, -126, 43, 6, 37, -63, 29, 67, -30, -11, 127, 78, 123, -31, 47, 115, 38, 87, 48,
    52, -29, 96, -94, 20, 56, 88, 6, -32, -49, -20, -4, 56, 99, -110, 111, 8, -37, 44, 18, -63, -46,
    56, 24, 1, -42, 66, -28, -44, 99, -61, -70, 54, 31, -116, -107, -32, 85, -26, 73, -47, -67, 74,
    96, -108, -114,
};

/* h: bias */
static const int8_t nn_h_bias[6] = {
    43, -42, 18, -90, 92, -13,
};

/* y: c_in / 2, c_out, kh, kw, 2 */
static const int8_t nn_y_passes_2[18] = {
    101, 75, 17, -25, 31, 20, 52, -69, 127, -78, 102, -52, 68, -115, 114, -105, 102, 44,
};

/* y: bias */
static const int8_t nn_y_bias[3] = {
    99, -77, 66,
};

/* y: nothing added yet */
static NN_KERNEL void nn_y_clear(uint8_t *restrict out) {
    for (int32_t i = 0; i < 27; i++) {
        nn_store_32(&out[i * 4], (uint32_t)(0));
    }
}

/* h: convolution (5, 5, 2) -> (3, 3, 6), kernel 3x3 */
static NN_KERNEL void nn_h(const uint8_t *restrict in, uint8_t *restrict out, int32_t o_start, int32_t o_stop) {
    for (int32_t y = 0; y < 3; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 3; x++) {
            const int32_t left = x;
            for (int32_t o = o_start; o < o_stop; o++) {
                int32_t sum = 0;
                for (int32_t ky = 0; ky < 3; ky++) {
                    const uint8_t *pixel = &in[(top + ky) * 10 + left * 2];
                    const int8_t *weight = &nn_h_weights[((o * 3 + ky) * 3) * 2];
                    for (int32_t c = 0; c < 6; c++) {
                        sum += pixel[c] * weight[c];
                    }
                }
                const int32_t value = nn_half_even(sum + nn_h_bias[o], 7);
                out[y * 6 + x * 2 + o - o_start] = (uint8_t)(nn_clip(value, 0, 255));
            }
        }
    }
}

/* y: convolution (3, 3, 6) -> (3, 3, 3), kernel 1x1, partial; 2 input channels at a time */
static NN_KERNEL void nn_y_part(const uint8_t *restrict in, uint8_t *restrict out, int32_t in_c, int32_t c_start) {
    int32_t window[2];
    for (int32_t y = 0; y < 3; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 3; x++) {
            const int32_t left = x;
            const uint8_t *pixel = &in[top * 6 + left * 2 + c_start - in_c];
            for (int32_t c = 0; c < 2; c++) {
                window[c] = pixel[c];
            }
            const int8_t *weight = &nn_y_passes_2[c_start * 3];
            for (int32_t o = 0; o < 3; o++) {
                int32_t sum = 0;
#ifndef __AVR__ /* avr-gcc 5 does not know it */
#pragma GCC unroll 2
#endif
                for (int32_t n = 0; n < 2; n++) {
                    sum += window[n] * weight[n];
                }
                weight += 2;
                nn_store_32(&out[y * 36 + x * 12 + o * 4], (uint32_t)(nn_load_32(&out[y * 36 + x * 12 + o * 4]) + sum));
            }
        }
    }
}

/* y: complete sums to uint8 */
static NN_KERNEL void nn_y_finish(const uint8_t *restrict in, uint8_t *restrict out) {
    for (int32_t i = 0; i < 9; i++) {
        for (int32_t j = 0; j < 3; j++) {
            const int32_t value = nn_half_even(nn_load_32(&in[i * 12 + j * 4]) + nn_y_bias[j], 8);
            out[i * 3 + j] = (uint8_t)(nn_clip(value, 0, 255));
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
    nn_y_clear(&nn_arena[70]);
    for (int32_t k = 0; k < 3; k++) {
        nn_h(&nn_arena[0], &nn_arena[50], 2 * k, 2 * k + 2);
        nn_y_part(&nn_arena[50], &nn_arena[70], 2 * k, 2 * k);
    }
    nn_y_finish(&nn_arena[70], &nn_arena[0]);
    return NN_OK;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[0]; }
