/* small: tables, kernels and the order of steps, all fixed when this was generated. Tensors
 * lie in one arena; one that is dead gives its place to others. */
#include "model.h"

#include <string.h>

#include "nn_int8.h"
#include "nn_memory.h"

static uint8_t nn_arena[NN_ARENA_BYTES] NN_ALIGNED;

/* conv0: c_out, kh, kw, c_in */
static const int8_t nn_conv0_weights[108] = {
    3, -119, -91, 82, 114, -64, -48, 94, -20, -58, 84, -62, -23, 37, 13, -106, -120, 93, 65, 86, 10,
    81, -43, -12, 74, -96, -50, -96, -12, 122, -93, -30, -25, 103, -76, 1, -61, -122, 64, -112, -56,
    0, -4, -98, 123, 64, 118, -104, 57, -53, 11, 108, -57, 58, -87, -45, 120, -20, 4, -53, -98, -19,
    31, -11, 71, -35, 29, 70, 106, -19, -117, 56, 7, 95, -10, -34, -112, -11, 36, 69, 90, -73, 24,
    78, -61, -40, 87, 21, 2, 44, 3, 123, 65, -114, -90, 11, 82, -110, 47, 66, 73, 95, -79, 14, 77,
    -36, -79, -5,
};

/* conv0: bias */
static const int16_t nn_conv0_bias[4] = {
    -2511, -1681, 2131, 1005,
};

/* conv0: multiplier of each channel */
static const int32_t nn_conv0_multiplier[4] = {
    1866950236, 1408210162, 1578546588, 1134965100,
};

/* conv0: shift of each channel */
static const int8_t nn_conv0_shift[4] = {
    9, 9, 10, 8,
};

/* conv1: c_out, kh, kw, c_in */
static const int8_t nn_conv1_weights[144] = {
    56, 127, -56, -8, -73, 49, 36, 88, 78, 122, 118, 101, -89, -117, -5, -40, 101, 76, -20, 19, 23,
    100, -121, -3, 44, -12, 107, 115, 83, -9, 98, -109, 41, -59, -65, 46, 68, 99, -74, 95, 84, -47,
    -112, 69, 83, -10, -86, -90, -32, 66, -47, -119, 49, 62, -82, 15, -26, 0, -126, 34, -61, 14,
    -20, 28, -100, -35, 34, 68, -30, -121, 57, 1, 39, -87, -18, 98, 94, -47, 34, -106, 79, -59, -40,
    119, 11, 96, -77, 66, 127, -108, -65, -90, -62, -48, -109, 101, -62, 107, 67, -84, 50, 70, -95,
    -94, -32, -110, -20, -5, 42, 18, -11, -71, 22, -11, 87, 51, 58, 18, -34, -56, -13, 18, -34, -90,
    -100, -116, -76, -24, -55, -82, -47, 55, -48, 107, 20, -92, 120, 97, 70, -87, 74, 51, 66, 54,
};

/* conv1: bias */
static const int16_t nn_conv1_bias[4] = {
    581, -952, 2506, 2883,
};

/* conv1: multiplier of each channel */
static const int32_t nn_conv1_multiplier[4] = {
    1609503, 3222726, 2141853, 1827595,
};

/* conv3: c_in, kh, kw, c_out */
static const int8_t nn_conv3_weights[36] = {
    59, -80, 121, -49, -52, 108, 121, -91, 35, -27, -125, -27, 88, 113, 32, 50, 77, -68, 78, 112,
    -96, -104, 49, 118, 120, 87, 26, -76, 60, 21, 5, -120, 51, -28, 9, 124,
};

/* conv3: bias */
static const int16_t nn_conv3_bias[4] = {
    1028, 1549, 1884, -842,
};

/* conv3: multiplier of each channel */
static const int32_t nn_conv3_multiplier[4] = {
    5606566, 6565875, 2745580, 6485627,
};

/* conv4: c_out, kh, kw, c_in */
static const int8_t nn_conv4_weights[24] = {
    120, 4, 63, 98, -15, 55, -74, -10, 103, -30, -123, 74, -50, -16, 127, -29, -61, -68, 89, -73,
    27, -67, 78, 56,
};

/* conv4: bias */
static const int16_t nn_conv4_bias[6] = {
    781, -448, -824, 2697, 1564, -649,
};

/* conv4: multiplier of each channel */
static const int32_t nn_conv4_multiplier[6] = {
    2123892347, 1220396675, 1388306167, 1674085361, 1348364867, 1085911972,
};

/* conv4: shift of each channel */
static const int8_t nn_conv4_shift[6] = {
    8, 7, 8, 8, 7, 7,
};

/* dense6: c_out, kh, kw, c_in */
static const int8_t nn_dense6_weights[18] = {
    74, -52, 92, -80, 59, -105, 26, -63, -54, -40, 72, 74, -63, 10, -108, 100, 118, -35,
};

/* dense6: bias */
static const int16_t nn_dense6_bias[3] = {
    240, 223, 1643,
};

/* dense6: multiplier of each channel */
static const int32_t nn_dense6_multiplier[3] = {
    2121140265, 1161833445, 1806113098,
};

/* dense6: shift of each channel */
static const int8_t nn_dense6_shift[3] = {
    8, 7, 9,
};

/* softmax7: exponential of an input so far below the maximum, Q0.31 */
static const int32_t nn_softmax7_exp[256] = {
    2147483647, 1943123572, 1758210936, 1590894991, 1439501330, 1302515042, 1178564022, 1066408839,
    964926589, 873101692, 790015308, 714835213, 646809656, 585257560, 529562945, 479168506,
    433569474, 392309888, 354976654, 321196162, 290630390, 262973179, 237947975, 215304224,
    194815320, 176276242, 159501296, 144322742, 130588613, 118161465, 106916946, 96742426, 87536168,
    79205998, 71668551, 64848406, 58677248, 53093370, 48040866, 43469174, 39332546, 35589550,
    32202757, 29138258, 26365387, 23856395, 21586153, 19531959, 17673247, 15991415, 14469635,
    13092664, 11846732, 10719366, 9699284, 8776277, 7941102, 7185406, 6501624, 5882913, 5323081,
    4816522, 4358169, 3943434, 3568167, 3228612, 2921368, 2643363, 2391814, 2164203, 1958252,
    1771899, 1603281, 1450708, 1312655, 1187740, 1074711, 972439, 879899, 796166, 720401, 651846,
    589814, 533686, 482899, 436945, 395364, 357741, 323697, 292893, 265021, 239801, 216981, 196332,
    177649, 160743, 145446, 131605, 119081, 107749, 97496, 88218, 79823, 72227, 65353, 59134, 53507,
    48415, 43808, 39639, 35867, 32453, 29365, 26571, 24042, 21754, 19684, 17811, 16116, 14582,
    13195, 11939, 10803, 9775, 8845, 8003, 7241, 6552, 5929, 5365, 4854, 4392, 3974, 3596, 3254,
    2944, 2664, 2410, 2181, 1973, 1786, 1616, 1462, 1323, 1197, 1083, 980, 887, 802, 726, 657, 594,
    538, 487, 440, 398, 361, 326, 295, 267, 242, 219, 198, 179, 162, 147, 133, 120, 109, 98, 89, 81,
    73, 66, 60, 54, 49, 44, 40, 36, 33, 30, 27, 24, 22, 20, 18, 16, 15, 13, 12, 11, 10, 9, 8, 7, 7,
    6, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

/* conv0: convolution (8, 8, 3) -> (4, 4, 4), kernel 3x3, stride 2 2, padding 1 1 1 1 */
static NN_KERNEL void nn_conv0(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 4; y++) {
        const int32_t top = y * 2 - 1;
        const int32_t ky_first = nn_first_tap(top, 0, 1);
        const int32_t ky_end = nn_end_tap(top, 8, 1, 3);
        for (int32_t x = 0; x < 4; x++) {
            const int32_t left = x * 2 - 1;
            const int32_t kx_first = nn_first_tap(left, 0, 1);
            const int32_t kx_end = nn_end_tap(left, 8, 1, 3);
            for (int32_t o = 0; o < 4; o++) {
                int32_t sum = 0;
                for (int32_t ky = ky_first; ky < ky_end; ky++) {
                    const int8_t *pixel = &in[(top + ky) * 24 + (left + kx_first) * 3];
                    const int8_t *weight = &nn_conv0_weights[((o * 3 + ky) * 3 + kx_first) * 3];
                    for (int32_t c = 0; c < (kx_end - kx_first) * 3; c++) {
                        sum += (pixel[c] + 2) * weight[c];
                    }
                }
                const int32_t value = nn_scaled(sum + nn_conv0_bias[o], nn_conv0_multiplier[o], nn_conv0_shift[o]);
                out[y * 16 + x * 4 + o] = (int8_t)(nn_clip(value, -118, 137) - 10);
            }
        }
    }
}

/* conv1: convolution (4, 4, 4) -> (4, 4, 4), kernel 3x3, padding 1 1 1 1 */
static NN_KERNEL void nn_conv1(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 4; y++) {
        const int32_t top = y - 1;
        const int32_t ky_first = nn_first_tap(top, 0, 1);
        const int32_t ky_end = nn_end_tap(top, 4, 1, 3);
        for (int32_t x = 0; x < 4; x++) {
            const int32_t left = x - 1;
            const int32_t kx_first = nn_first_tap(left, 0, 1);
            const int32_t kx_end = nn_end_tap(left, 4, 1, 3);
            for (int32_t o = 0; o < 4; o++) {
                int32_t sum = 0;
                for (int32_t ky = ky_first; ky < ky_end; ky++) {
                    const int8_t *pixel = &in[(top + ky) * 16 + (left + kx_first) * 4];
                    const int8_t *weight = &nn_conv1_weights[((o * 3 + ky) * 3 + kx_first) * 4];
                    for (int32_t c = 0; c < (kx_end - kx_first) * 4; c++) {
                        sum += (pixel[c] + 10) * weight[c];
                    }
                }
                const int32_t value = nn_scaled(sum + nn_conv1_bias[o], nn_conv1_multiplier[o], 0);
                out[y * 16 + x * 4 + o] = (int8_t)(nn_clip(value, -144, 111) + 16);
            }
        }
    }
}

/* add2: sum of (4, 4, 4) and (4, 4, 4) */
static NN_KERNEL void nn_add2(const int8_t *left, const int8_t *right, int8_t *out) {
    for (int32_t i = 0; i < 64; i++) {
        const int32_t left_scaled = nn_scaled((int32_t)(left[i] - 16) * 1048576, 1087710153, 0);
        const int32_t right_scaled = nn_scaled((int32_t)(right[i] + 10) * 1048576, 1799892443, 0);
        const int32_t value = nn_scaled(left_scaled + right_scaled, 1863888388, 20);
        out[i] = (int8_t)(nn_clip(value, -33, 47) + 18);
    }
}

/* conv3: convolution (4, 4, 4) -> (4, 4, 4), kernel 3x3, padding 1 1 1 1, 4 groups; 4 channels at a time */
static NN_KERNEL void nn_conv3(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 4; y++) {
        const int32_t top = y - 1;
        const int32_t ky_first = nn_first_tap(top, 0, 1);
        const int32_t ky_end = nn_end_tap(top, 4, 1, 3);
        for (int32_t x = 0; x < 4; x++) {
            const int32_t left = x - 1;
            const int32_t kx_first = nn_first_tap(left, 0, 1);
            const int32_t kx_end = nn_end_tap(left, 4, 1, 3);
            for (int32_t o = 0; o < 4; o += 4) {
                int32_t sum[4];
                for (int32_t i = 0; i < 4; i++) {
                    sum[i] = 0;
                }
                for (int32_t ky = ky_first; ky < ky_end; ky++) {
                    for (int32_t kx = kx_first; kx < kx_end; kx++) {
                        const int8_t *pixel = &in[(top + ky) * 16 + (left + kx) * 4 + o];
                        const int8_t *weight = &nn_conv3_weights[ky * 12 + kx * 4 + o];
                        for (int32_t i = 0; i < 4; i++) {
                            sum[i] += (pixel[i] - 18) * weight[i];
                        }
                    }
                }
                for (int32_t i = 0; i < 4; i++) {
                    const int32_t value = nn_scaled(sum[i] + nn_conv3_bias[o + i], nn_conv3_multiplier[o + i], 0);
                    out[y * 16 + x * 4 + o + i] = (int8_t)(nn_clip(value, 0, 100) + 3);
                }
            }
        }
    }
}

/* conv4: convolution (4, 4, 4) -> (4, 4, 6), kernel 1x1 */
static NN_KERNEL void nn_conv4(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 4; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 4; x++) {
            const int32_t left = x;
            for (int32_t o = 0; o < 6; o++) {
                int32_t sum = 0;
                const int8_t *pixel = &in[top * 16 + left * 4];
                const int8_t *weight = &nn_conv4_weights[o * 4];
                for (int32_t c = 0; c < 4; c++) {
                    sum += (pixel[c] - 3) * weight[c];
                }
                const int32_t value = nn_scaled(sum + nn_conv4_bias[o], nn_conv4_multiplier[o], nn_conv4_shift[o]);
                out[y * 24 + x * 6 + o] = (int8_t)(nn_clip(value, -135, 120) + 7);
            }
        }
    }
}

/* average5: average (4, 4, 6) -> (1, 1, 6), kernel 4x4, stride 2 2; 6 channels at a time */
static NN_KERNEL void nn_average5(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 1; y++) {
        const int32_t top = y * 2;
        for (int32_t x = 0; x < 1; x++) {
            const int32_t left = x * 2;
            const int32_t count = 4 * 4; /* pixels inside */
            for (int32_t o = 0; o < 6; o += 6) {
                int32_t sum[6];
                for (int32_t i = 0; i < 6; i++) {
                    sum[i] = 0;
                }
                for (int32_t ky = 0; ky < 4; ky++) {
                    for (int32_t kx = 0; kx < 4; kx++) {
                        const int8_t *pixel = &in[(top + ky) * 24 + (left + kx) * 6 + o];
                        for (int32_t i = 0; i < 6; i++) {
                            sum[i] += pixel[i];
                        }
                    }
                }
                for (int32_t i = 0; i < 6; i++) {
                    const int32_t value = nn_mean(sum[i], count);
                    out[y * 6 + x * 6 + o + i] = (int8_t)(nn_clip(value, -128, 127));
                }
            }
        }
    }
}

/* dense6: convolution (1, 1, 6) -> (1, 1, 3), kernel 1x1 */
static NN_KERNEL void nn_dense6(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 1; y++) {
        const int32_t top = y;
        for (int32_t x = 0; x < 1; x++) {
            const int32_t left = x;
            for (int32_t o = 0; o < 3; o++) {
                int32_t sum = 0;
                const int8_t *pixel = &in[top * 6 + left * 6];
                const int8_t *weight = &nn_dense6_weights[o * 6];
                for (int32_t c = 0; c < 6; c++) {
                    sum += (pixel[c] - 7) * weight[c];
                }
                const int32_t value = nn_scaled(sum + nn_dense6_bias[o], nn_dense6_multiplier[o], nn_dense6_shift[o]);
                out[y * 3 + x * 3 + o] = (int8_t)(nn_clip(value, -115, 140) - 13);
            }
        }
    }
}

/* softmax7: softmax (3), as TFLite computes it in integers */
static NN_KERNEL void nn_softmax7(const int8_t *restrict in, int8_t *restrict out) {
    int32_t largest = -128, sum = 0, over;
    for (int32_t i = 0; i < 3; i++) {
        largest = nn_max(largest, in[i]);
    }
    for (int32_t i = 0; i < 3; i++) {
        sum += nn_rounded_shift(nn_softmax7_exp[(uint8_t)(largest - in[i])], 12); /* Q12.19 */
    }
    const int32_t scale = nn_reciprocal(sum, &over);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t power = nn_doubled_high(scale, nn_softmax7_exp[(uint8_t)(largest - in[i])]);
        const int32_t share = nn_rounded_shift(power, over + 23);
        out[i] = (int8_t)(nn_clip(share - 128, -128, 127));
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
    nn_conv0((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[192]);
    nn_conv1((int8_t *)&nn_arena[192], (int8_t *)&nn_arena[0]);
    nn_add2((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[192], (int8_t *)&nn_arena[0]);
    nn_conv3((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[96]);
    nn_conv4((int8_t *)&nn_arena[96], (int8_t *)&nn_arena[0]);
    nn_average5((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[96]);
    nn_dense6((int8_t *)&nn_arena[96], (int8_t *)&nn_arena[0]);
    nn_softmax7((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[3]);
    return NN_OK;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[3]; }
