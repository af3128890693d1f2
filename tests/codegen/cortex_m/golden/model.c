/* small: tables, kernels and the order of steps, all fixed when this was generated. Tensors
 * lie in one arena; one that is dead gives its place to others. */
#include "model.h"

#include <string.h>

#include "nn_dsp.h"
#include "nn_int8.h"
#include "nn_memory.h"

static uint8_t nn_arena[NN_ARENA_BYTES] NN_ALIGNED;

/* conv0: 2 channels by two elements */
static const __attribute__((aligned(4))) int8_t nn_conv0_weights[112] = {
    3, -96, -91, 121, -119, -13, 82, -93, 114, -30, -48, 102, -64, -26, 94, -76, -58, -62, -62, 63,
    84, -122, -23, -113, 37, -56, -106, -5, 13, 0, -120, -99, 65, 64, 10, -104, 86, 118, 81, 57,
    -43, -54, 74, 108, -12, 10, -96, -58, -20, 0, -50, 57, 93, 123, 0, 0, -87, -74, 120, 78, -45,
    23, -20, -62, 4, -40, -98, 20, -53, 86, -19, 1, -11, 2, -35, 64, 71, 123, 29, -114, 70, -90,
    -19, 81, 106, 11, -117, -111, 7, 66, -10, 94, 95, 73, -34, -80, -112, 13, 36, -36, -11, 76, 69,
    -79, 31, 44, 90, -5, 56, 47, 0, 0,
};

/* conv0: for two channels what sums begin with, and how they end */
static const int32_t nn_conv0_ends[16] = {
    -2663, -520039, 1866950236, -4864, 9, 1408210162, -4864, 9, 2357, 374837, 1578546588, -9728, 10,
    1134965100, -2432, 8,
};

/* conv1: 2 channels by two elements */
static const __attribute__((aligned(4))) int8_t nn_conv1_weights[144] = {
    56, 68, -56, -75, 127, 99, -8, 94, -73, 83, 36, -112, 49, -47, 88, 69, 78, 83, 118, -86, 122,
    -10, 101, -90, -89, -33, -5, -48, -117, 65, -40, -120, 101, 49, -20, -83, 76, 62, 19, 15, 23,
    -26, -121, -127, 100, 0, -3, 33, 44, -61, 107, -20, -12, 13, 115, 28, 83, -100, 98, 34, -9, -36,
    -109, 67, 41, -30, -65, 56, -59, -122, 46, 1, 39, 42, -18, -12, -87, 17, 98, -71, 94, 22, 34,
    87, -47, -12, -106, 50, 79, 58, -40, -35, -59, 17, 119, -56, 11, -13, -77, -35, 96, 18, 66, -90,
    127, -100, -65, -77, -108, -117, -90, -25, -62, -56, -109, -48, -48, -83, 101, 55, -62, -49, 67,
    20, 107, 107, -84, -93, 50, 120, -95, 69, 70, 97, -94, -88, -32, 73, -20, 65, -110, 50, -5, 53,
};

/* conv1: for two channels what sums begin with, and how they end */
static const int32_t nn_conv1_ends[16] = {
    9001, -982231, 1609503, 16, 0, 3222726, 16, 0, -94, 689314, 2141853, 16, 0, 1827595, 16, 0,
};

/* conv3: for each channel what sums begin with, how they end, pairs of weights */
static const int32_t nn_conv3_weights[40] = {
    -10256, 5606566, 3, 0, -6815626, 4652952, 10092720, -12582758, 7864560, 6684792, 2306, 6565875,
    3, 0, 14221152, -3538728, -8912670, -13566088, 2752686, -3669974, -7608, 2745580, 3, 0,
    15859954, -16383758, 10223680, 6422684, 655412, 1179658, -3160, 6485627, 3, 0, -11862114,
    -3473590, 14680164, 15466720, -15663256, 16318224,
};

/* conv4: 2 channels by two elements */
static const __attribute__((aligned(4))) int8_t nn_conv4_weights[24] = {
    120, -15, 63, -74, 4, 55, 98, -10, 103, -50, -123, 126, -30, -17, 74, -29, -61, 26, 89, 78, -68,
    -68, -73, 55,
};

/* conv4: for two channels what sums begin with, and how they end */
static const int32_t nn_conv4_ends[24] = {
    -74, -80970, 2123892347, 1920, 8, 1220396675, 960, 7, -896, 664960, 1388306167, 1920, 8,
    1674085361, 1920, 8, 1903, -236433, 1348364867, 960, 7, 1085911972, 960, 7,
};

/* dense6: 2 channels by two elements */
static const __attribute__((aligned(4))) int8_t nn_dense6_weights[32] = {
    74, 26, 92, -54, -52, -64, -80, -41, 59, 72, 0, 0, -105, 73, 0, 0, 26, -63, -54, -109, -63, 9,
    -40, 99, 72, 118, 0, 0, 74, -35, 0, 0,
};

/* dense6: for two channels what sums begin with, and how they end */
static const int32_t nn_dense6_ends[16] = {
    324, 30532, 2121140265, -3200, 8, 1161833445, -1600, 7, 118, 381302, 1161833445, -1600, 7,
    1806113098, -6400, 9,
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

/* conv0: convolution (8, 8, 3) -> (4, 4, 4), kernel 3x3, stride 2 2, padding 1 1 1 1, 4 pixels and 2 channels at a time */
static __attribute__((noinline)) NN_KERNEL void nn_conv0(const int8_t *restrict in, int8_t *restrict out, uint8_t *restrict scratch) {
    static const int8_t outside[9] = { [0 ... 8] = -2 };
    static const uint16_t halves[3] = { 0, 8, 1 }; /* of words */
    nn_word_t *const windows = (nn_word_t *)scratch; /* widened, pixel beside pixel */
    for (int32_t p = 0; p < 4; p++) {
        ((nn_half_t *)&windows[p + 48])[9] = 0;
    }
    int8_t line[9]; /* a row of the kernel, or a scattered pixel */
    for (int32_t block = 0; block < 16; block += 4) {
        const int32_t first = block; /* of a whole block */
        int8_t *const to = &out[first * 4];
        int32_t y = first / 4, x_out = first % 4;
        for (int32_t p = 0; p < 4; p++) {
            const int32_t top = y * 2 - 1;
            const int32_t left = x_out * 2 - 1;
            nn_word_t *to = &windows[p];
            nn_half_t *const rest = (nn_half_t *)(to + 48);
            const uint16_t *half = halves;
            for (int32_t ky = 0; ky < 3; ky++) {
                const int32_t row = top + ky;
                const int8_t *from = line;
                if (left >= 0 && left <= 5) {
                    from = row < 0 || row >= 8 ? outside : &in[row * 24 + left * 3];
                } else
                for (int32_t kx = 0; kx < 3; kx++) {
                    const int32_t column = left + kx;
                    const int8_t *from = outside;
                    if (row >= 0 && row < 8 && column >= 0 && column < 8) {
                        from = &in[row * 24 + column * 3];
                    }
                    nn_copy((line + kx * 3), from, 3);
                }
                to = nn_widen_s8(to, from, 2, 4);
                rest[*half++] = from[8];
            }
            if (++x_out == 4) {
                x_out = 0;
                y++;
            }
        }
        const int8_t *w = nn_conv0_weights;
        const int32_t *q = nn_conv0_ends;
        for (int32_t begin = 0; begin < 4; begin += 2) {
            const int32_t o = begin;
            const nn_word_t *x = windows;
            int32_t b0_0 = q[0], s0_0 = q[1];
            int32_t b1_0 = q[0], s1_0 = q[1];
            int32_t b2_0 = q[0], s2_0 = q[1];
            int32_t b3_0 = q[0], s3_0 = q[1];
            {
                uint32_t w0, x0, x1, e;
                const void *const end = w + 2 * 24;
                NN_ORDERED();
                do {
                NN_LOAD(w0, w, 20);
                NN_LOAD(x1, x, 92);
                NN_LOAD(x0, x, 88);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 84);
                NN_LOAD(x0, x, 80);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 16);
                NN_LOAD(x1, x, 76);
                NN_LOAD(x0, x, 72);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 68);
                NN_LOAD(x0, x, 64);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 12);
                NN_LOAD(x1, x, 60);
                NN_LOAD(x0, x, 56);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 52);
                NN_LOAD(x0, x, 48);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 8);
                NN_LOAD(x1, x, 44);
                NN_LOAD(x0, x, 40);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 36);
                NN_LOAD(x0, x, 32);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 4);
                NN_LOAD(x1, x, 28);
                NN_LOAD(x0, x, 24);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 20);
                NN_LOAD(x0, x, 16);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_NEXT(w0, w, 24);
                NN_LOAD(x1, x, 12);
                NN_LOAD(x0, x, 8);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 4);
                NN_NEXT(x0, x, 96);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_FETCH(x0, end);
                } while (!((uint32_t)(uintptr_t)w == x0));
                NN_LOAD(w0, w, 4);
                NN_LOAD(x1, x, 28);
                NN_LOAD(x0, x, 24);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 20);
                NN_LOAD(x0, x, 16);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 0);
                NN_LOAD(x1, x, 12);
                NN_LOAD(x0, x, 8);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 4);
                NN_LOAD(x0, x, 0);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                w += 8;
                x += 8;
                NN_ORDERED();
            }
            {
                const int32_t shift = q[4];
                const int32_t offset = q[3];
                const int32_t multiplier = q[2];
                to[o + 0] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b0_0), multiplier, offset, shift, nn_twice(b0_0)));
                to[o + 4] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b1_0), multiplier, offset, shift, nn_twice(b1_0)));
                to[o + 8] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b2_0), multiplier, offset, shift, nn_twice(b2_0)));
                to[o + 12] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b3_0), multiplier, offset, shift, nn_twice(b3_0)));
            }
            {
                const int32_t shift = q[7];
                const int32_t offset = q[6];
                const int32_t multiplier = q[5];
                to[o + 1] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s0_0, b0_0), multiplier, offset, shift, nn_twice_upper(s0_0, b0_0)));
                to[o + 5] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s1_0, b1_0), multiplier, offset, shift, nn_twice_upper(s1_0, b1_0)));
                to[o + 9] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s2_0, b2_0), multiplier, offset, shift, nn_twice_upper(s2_0, b2_0)));
                to[o + 13] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s3_0, b3_0), multiplier, offset, shift, nn_twice_upper(s3_0, b3_0)));
            }
            q += 8;
        }
    }
}

/* conv1: convolution (4, 4, 4) -> (4, 4, 4), kernel 3x3, padding 1 1 1 1, 4 pixels and 2 channels at a time */
static __attribute__((noinline)) NN_KERNEL void nn_conv1(const int8_t *restrict in, int8_t *restrict out, uint8_t *restrict scratch) {
    static const int8_t outside[12] = { [0 ... 11] = -10 };
    nn_word_t *const windows = (nn_word_t *)scratch; /* widened, pixel beside pixel */
    for (int32_t block = 0; block < 16; block += 4) {
        const int32_t first = block; /* of a whole block */
        int8_t *const to = &out[first * 4];
        int32_t y = first / 4, x_out = first % 4;
        for (int32_t p = 0; p < 4; p++) {
            const int32_t top = y - 1;
            const int32_t left = x_out - 1;
            nn_word_t *to = &windows[p];
            if (left >= 0 && left <= 1) {
            for (int32_t ky = 0; ky < 3; ky++) {
                const int32_t row = top + ky;
                {
                    const int8_t *from = row < 0 || row >= 4 ? outside : &in[row * 16 + left * 4];
                    to = nn_widen_s8(to, from, 3, 4);
                }
            }
            } else {
            for (int32_t ky = 0; ky < 3; ky++) {
                const int32_t row = top + ky;
                for (int32_t kx = 0; kx < 3; kx++) {
                    const int32_t column = left + kx;
                    const int8_t *from = outside;
                    if (row >= 0 && row < 4 && column >= 0 && column < 4) {
                        from = &in[row * 16 + column * 4];
                    }
                    to = nn_widen_s8(to, from, 1, 4);
                }
            }
            }
            if (++x_out == 4) {
                x_out = 0;
                y++;
            }
        }
        const int8_t *w = nn_conv1_weights;
        const int32_t *q = nn_conv1_ends;
        for (int32_t begin = 0; begin < 4; begin += 2) {
            const int32_t o = begin;
            const nn_word_t *x = windows;
            int32_t b0_0 = q[0], s0_0 = q[1];
            int32_t b1_0 = q[0], s1_0 = q[1];
            int32_t b2_0 = q[0], s2_0 = q[1];
            int32_t b3_0 = q[0], s3_0 = q[1];
            {
                uint32_t w0, x0, x1, e;
                const void *const end = w + 3 * 24;
                NN_ORDERED();
                do {
                NN_LOAD(w0, w, 20);
                NN_LOAD(x1, x, 92);
                NN_LOAD(x0, x, 88);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 84);
                NN_LOAD(x0, x, 80);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 16);
                NN_LOAD(x1, x, 76);
                NN_LOAD(x0, x, 72);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 68);
                NN_LOAD(x0, x, 64);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 12);
                NN_LOAD(x1, x, 60);
                NN_LOAD(x0, x, 56);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 52);
                NN_LOAD(x0, x, 48);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 8);
                NN_LOAD(x1, x, 44);
                NN_LOAD(x0, x, 40);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 36);
                NN_LOAD(x0, x, 32);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_LOAD(w0, w, 4);
                NN_LOAD(x1, x, 28);
                NN_LOAD(x0, x, 24);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 20);
                NN_LOAD(x0, x, 16);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_NEXT(w0, w, 24);
                NN_LOAD(x1, x, 12);
                NN_LOAD(x0, x, 8);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 4);
                NN_NEXT(x0, x, 96);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_FETCH(x0, end);
                } while (!((uint32_t)(uintptr_t)w == x0));
                NN_ORDERED();
            }
            {
                const int32_t offset = q[3];
                const int32_t multiplier = q[2];
                to[o + 0] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice(b0_0), (uint32_t)multiplier, offset));
                to[o + 4] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice(b1_0), (uint32_t)multiplier, offset));
                to[o + 8] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice(b2_0), (uint32_t)multiplier, offset));
                to[o + 12] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice(b3_0), (uint32_t)multiplier, offset));
            }
            {
                const int32_t offset = q[6];
                const int32_t multiplier = q[5];
                to[o + 1] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice_upper(s0_0, b0_0), (uint32_t)multiplier, offset));
                to[o + 5] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice_upper(s1_0, b1_0), (uint32_t)multiplier, offset));
                to[o + 9] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice_upper(s2_0, b2_0), (uint32_t)multiplier, offset));
                to[o + 13] = (int8_t)nn_saturated_s8(nn_add_product((uint32_t)nn_twice_upper(s3_0, b3_0), (uint32_t)multiplier, offset));
            }
            q += 8;
        }
    }
}

/* add2: sum of (4, 4, 4) and (4, 4, 4), a word of each at a time */
static __attribute__((noinline)) NN_KERNEL void nn_add2(const int8_t *left, const int8_t *right, int8_t *out) {
    {
    const int8_t *const left_run = left + 0;
    const int8_t *const right_run = right + 0;
    int8_t *const out_run = out + 0;
    for (int32_t i = 0; i < 64; i += 4) {
        const uint32_t left_word = nn_load_word(&left_run[i]);
        uint32_t left_even = nn_add_even_s8(0xFFF0FFF0u, left_word);
        uint32_t left_odd = nn_add_odd_s8(0xFFF0FFF0u, left_word);
        const uint32_t right_word = nn_load_word(&right_run[i]);
        uint32_t right_even = nn_add_even_s8(0x000A000Au, right_word);
        uint32_t right_odd = nn_add_odd_s8(0x000A000Au, right_word);
        {
            const int32_t value = nn_twice(nn_add_product((uint32_t)(nn_low(left_even) * 2097152), 1087710153, 0) + nn_add_product((uint32_t)(nn_low(right_even) * 2097152), 1799892443, 0));
            out_run[i + 0] = (int8_t)(nn_min(nn_max(nn_saturated_s8(nn_requantized(value, 1863888388, 19398656, 20, value)), -15), 65));
        }
        {
            const int32_t value = nn_twice(nn_add_product((uint32_t)(nn_low(left_odd) * 2097152), 1087710153, 0) + nn_add_product((uint32_t)(nn_low(right_odd) * 2097152), 1799892443, 0));
            out_run[i + 1] = (int8_t)(nn_min(nn_max(nn_saturated_s8(nn_requantized(value, 1863888388, 19398656, 20, value)), -15), 65));
        }
        {
            const int32_t value = nn_twice(nn_add_product((uint32_t)(nn_high(left_even) * 2097152), 1087710153, 0) + nn_add_product((uint32_t)(nn_high(right_even) * 2097152), 1799892443, 0));
            out_run[i + 2] = (int8_t)(nn_min(nn_max(nn_saturated_s8(nn_requantized(value, 1863888388, 19398656, 20, value)), -15), 65));
        }
        {
            const int32_t value = nn_twice(nn_add_product((uint32_t)(nn_high(left_odd) * 2097152), 1087710153, 0) + nn_add_product((uint32_t)(nn_high(right_odd) * 2097152), 1799892443, 0));
            out_run[i + 3] = (int8_t)(nn_min(nn_max(nn_saturated_s8(nn_requantized(value, 1863888388, 19398656, 20, value)), -15), 65));
        }
    }
    }
}

/* conv3: convolution (4, 4, 4) -> (4, 4, 4), kernel 3x3, padding 1 1 1 1, 4 groups, 4 channels at a time, each with its rows by itself, widened */
static __attribute__((noinline)) NN_KERNEL void nn_conv3(const int8_t *restrict in, int8_t *restrict out, uint8_t *restrict scratch) {
    nn_word_t *const ring = (nn_word_t *)scratch; /* the rows under the kernel, the oldest in turn replaced */
    const int32_t *quad = nn_conv3_weights;
    for (int32_t begin = 0; begin < 4; begin += 4) {
        const int32_t c = begin;
        for (int32_t n = 0; n < 36; n++) {
            ring[n] = 0x00120012u;
        }
        int32_t oldest = 0, next = -1;
        for (int32_t y = 0; y < 4; y++) {
            for (; next < y + 2; next++) {
                nn_word_t *const row = &ring[oldest * 12];
                oldest = oldest == 2 ? 0 : oldest + 1;
                if (next < 0 || next >= 4) {
                    for (int32_t n = 0; n < 12; n++) {
                        row[n] = 0x00120012u;
                    }
                    continue;
                }
                const int8_t *from = &in[next * 16 + c];
                    {
                        const uint32_t word = nn_load_word(from), even = nn_even_s8(word), odd = nn_odd_s8(word);
                        nn_half_t *const half = (nn_half_t *)row + 1;
                        half[0] = (nn_half_t)nn_low(even);
                        half[6] = (nn_half_t)nn_low(odd);
                        half[12] = (nn_half_t)nn_high(even);
                        half[18] = (nn_half_t)nn_high(odd);
                        from += 4;
                    }
                nn_word_t *to = row + 1;
                for (int32_t n = 0; n < 1; n++) {
                    const uint32_t a = nn_load_word(from), b = nn_load_word(from + 4);
                    const uint32_t a_even = nn_even_s8(a), a_odd = nn_odd_s8(a);
                    const uint32_t b_even = nn_even_s8(b), b_odd = nn_odd_s8(b);
                    to[0] = nn_lows(a_even, b_even);
                    to[3] = nn_lows(a_odd, b_odd);
                    to[6] = nn_highs(a_even, b_even);
                    to[9] = nn_highs(a_odd, b_odd);
                    to++;
                    from += 8;
                }
                    {
                        const uint32_t word = nn_load_word(from), even = nn_even_s8(word), odd = nn_odd_s8(word);
                        nn_half_t *const half = (nn_half_t *)row + 4;
                        half[0] = (nn_half_t)nn_low(even);
                        half[6] = (nn_half_t)nn_low(odd);
                        half[12] = (nn_half_t)nn_high(even);
                        half[18] = (nn_half_t)nn_high(odd);
                        from += 4;
                    }
            }
            int32_t slot = oldest;
            const nn_word_t *row0 = &ring[slot * 12];
            slot = slot == 2 ? 0 : slot + 1;
            const nn_word_t *row1 = &ring[slot * 12];
            slot = slot == 2 ? 0 : slot + 1;
            const nn_word_t *row2 = &ring[slot * 12];
            const int32_t *q = quad;
            for (int32_t k = 0; k < 4; k++) {
                int8_t *to = &out[y * 16 + c + k];
                const nn_word_t *r0 = row0;
                const nn_word_t *r1 = row1;
                const nn_word_t *r2 = row2;
                for (int32_t n = 0; n < 1; n++) {
                    int32_t a0 = q[0];
                    int32_t a1 = a0;
                    int32_t a2 = a0;
                    int32_t a3 = a0;
                    {
                    const nn_word_t *const x = r0;
                    {
                        NN_ORDERED();
                        register const int32_t *const own NN_AT("r0") = q;
                        register const nn_word_t *const row NN_AT("r1") = x;
                        register int32_t s0 NN_AT("r4") = a0;
                        register int32_t s1 NN_AT("r5") = a1;
                        register int32_t s2 NN_AT("r6") = a2;
                        register int32_t s3 NN_AT("r7") = a3;
                        register uint32_t k0 NN_AT("r2");
                        register uint32_t k1 NN_AT("r3");
                        register uint32_t x0 NN_AT("r8");
                        register uint32_t x1 NN_AT("r9");
                        register uint32_t x2 NN_AT("r10");
                        NN_LOAD(k0, own, 16);
                        NN_LOAD(k1, own, 20);
                        NN_LOAD(x0, row, 0);
                        NN_LOAD(x1, row, 4);
                        NN_LOAD(x2, row, 8);
                        NN_PAIR(s0, x0, k0);
                        NN_HIGH_LOW(s1, x0, k0);
                        NN_LOW_HIGH(s0, x1, k1);
                        NN_PAIR(s1, x1, k1);
                        NN_PAIR(s2, x1, k0);
                        NN_HIGH_LOW(s3, x1, k0);
                        NN_LOW_HIGH(s2, x2, k1);
                        NN_PAIR(s3, x2, k1);
                        a0 = s0;
                        a1 = s1;
                        a2 = s2;
                        a3 = s3;
                        NN_ORDERED();
                    }
                    }
                    {
                    const nn_word_t *const x = r1;
                    {
                        NN_ORDERED();
                        register const int32_t *const own NN_AT("r0") = q;
                        register const nn_word_t *const row NN_AT("r1") = x;
                        register int32_t s0 NN_AT("r4") = a0;
                        register int32_t s1 NN_AT("r5") = a1;
                        register int32_t s2 NN_AT("r6") = a2;
                        register int32_t s3 NN_AT("r7") = a3;
                        register uint32_t k0 NN_AT("r2");
                        register uint32_t k1 NN_AT("r3");
                        register uint32_t x0 NN_AT("r8");
                        register uint32_t x1 NN_AT("r9");
                        register uint32_t x2 NN_AT("r10");
                        NN_LOAD(k0, own, 24);
                        NN_LOAD(k1, own, 28);
                        NN_LOAD(x0, row, 0);
                        NN_LOAD(x1, row, 4);
                        NN_LOAD(x2, row, 8);
                        NN_PAIR(s0, x0, k0);
                        NN_HIGH_LOW(s1, x0, k0);
                        NN_LOW_HIGH(s0, x1, k1);
                        NN_PAIR(s1, x1, k1);
                        NN_PAIR(s2, x1, k0);
                        NN_HIGH_LOW(s3, x1, k0);
                        NN_LOW_HIGH(s2, x2, k1);
                        NN_PAIR(s3, x2, k1);
                        a0 = s0;
                        a1 = s1;
                        a2 = s2;
                        a3 = s3;
                        NN_ORDERED();
                    }
                    }
                    {
                    const nn_word_t *const x = r2;
                    {
                        NN_ORDERED();
                        register const int32_t *const own NN_AT("r0") = q;
                        register const nn_word_t *const row NN_AT("r1") = x;
                        register int32_t s0 NN_AT("r4") = a0;
                        register int32_t s1 NN_AT("r5") = a1;
                        register int32_t s2 NN_AT("r6") = a2;
                        register int32_t s3 NN_AT("r7") = a3;
                        register uint32_t k0 NN_AT("r2");
                        register uint32_t k1 NN_AT("r3");
                        register uint32_t x0 NN_AT("r8");
                        register uint32_t x1 NN_AT("r9");
                        register uint32_t x2 NN_AT("r10");
                        NN_LOAD(k0, own, 32);
                        NN_LOAD(k1, own, 36);
                        NN_LOAD(x0, row, 0);
                        NN_LOAD(x1, row, 4);
                        NN_LOAD(x2, row, 8);
                        NN_PAIR(s0, x0, k0);
                        NN_HIGH_LOW(s1, x0, k0);
                        NN_LOW_HIGH(s0, x1, k1);
                        NN_PAIR(s1, x1, k1);
                        NN_PAIR(s2, x1, k0);
                        NN_HIGH_LOW(s3, x1, k0);
                        NN_LOW_HIGH(s2, x2, k1);
                        NN_PAIR(s3, x2, k1);
                        a0 = s0;
                        a1 = s1;
                        a2 = s2;
                        a3 = s3;
                        NN_ORDERED();
                    }
                    }
                    to[0] = (int8_t)nn_min(nn_max(nn_saturated_s8(nn_add_product((uint32_t)a0, (uint32_t)q[1], q[2])), 3), 103);
                    to[4] = (int8_t)nn_min(nn_max(nn_saturated_s8(nn_add_product((uint32_t)a1, (uint32_t)q[1], q[2])), 3), 103);
                    to[8] = (int8_t)nn_min(nn_max(nn_saturated_s8(nn_add_product((uint32_t)a2, (uint32_t)q[1], q[2])), 3), 103);
                    to[12] = (int8_t)nn_min(nn_max(nn_saturated_s8(nn_add_product((uint32_t)a3, (uint32_t)q[1], q[2])), 3), 103);
                    to += 16;
                    r0 += 2;
                    r1 += 2;
                    r2 += 2;
                }
                row0 += 3;
                row1 += 3;
                row2 += 3;
                q += 10;
            }
        }
        quad += 40;
    }
}

/* conv4: convolution (4, 4, 4) -> (4, 4, 6), kernel 1x1, 4 pixels and 2 channels at a time */
static __attribute__((noinline)) NN_KERNEL void nn_conv4(const int8_t *restrict in, int8_t *restrict out, uint8_t *restrict scratch) {
    nn_word_t *const windows = (nn_word_t *)scratch; /* widened, pixel beside pixel */
    for (int32_t block = 0; block < 16; block += 4) {
        const int32_t first = block; /* of a whole block */
        int8_t *const to = &out[first * 6];
        const int8_t *from = &in[first * 4];
        for (int32_t p = 0; p < 4; p++, from += 4) {
            nn_word_t *to = &windows[p];
            to = nn_widen_s8(to, from, 1, 4);
        }
        const int8_t *w = nn_conv4_weights;
        const int32_t *q = nn_conv4_ends;
        for (int32_t begin = 0; begin < 6; begin += 2) {
            const int32_t o = begin;
            const nn_word_t *x = windows;
            int32_t b0_0 = q[0], s0_0 = q[1];
            int32_t b1_0 = q[0], s1_0 = q[1];
            int32_t b2_0 = q[0], s2_0 = q[1];
            int32_t b3_0 = q[0], s3_0 = q[1];
            {
                uint32_t w0, x0, x1, e;
                NN_ORDERED();
                do {
                NN_LOAD(w0, w, 4);
                NN_LOAD(x1, x, 28);
                NN_LOAD(x0, x, 24);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 20);
                NN_LOAD(x0, x, 16);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_NEXT(w0, w, 8);
                NN_LOAD(x1, x, 12);
                NN_LOAD(x0, x, 8);
                NN_EVEN(e, w0);
                NN_PAIR(b3_0, e, x1);
                NN_PAIR(s3_0, w0, x1);
                NN_PAIR(b2_0, e, x0);
                NN_PAIR(s2_0, w0, x0);
                NN_LOAD(x1, x, 4);
                NN_NEXT(x0, x, 32);
                NN_PAIR(b1_0, e, x1);
                NN_PAIR(s1_0, w0, x1);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                } while (!(!nn_again()));
                NN_ORDERED();
            }
            {
                const int32_t shift = q[4];
                const int32_t offset = q[3];
                const int32_t multiplier = q[2];
                to[o + 0] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b0_0), multiplier, offset, shift, nn_twice(b0_0)));
                to[o + 6] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b1_0), multiplier, offset, shift, nn_twice(b1_0)));
                to[o + 12] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b2_0), multiplier, offset, shift, nn_twice(b2_0)));
                to[o + 18] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b3_0), multiplier, offset, shift, nn_twice(b3_0)));
            }
            {
                const int32_t shift = q[7];
                const int32_t offset = q[6];
                const int32_t multiplier = q[5];
                to[o + 1] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s0_0, b0_0), multiplier, offset, shift, nn_twice_upper(s0_0, b0_0)));
                to[o + 7] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s1_0, b1_0), multiplier, offset, shift, nn_twice_upper(s1_0, b1_0)));
                to[o + 13] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s2_0, b2_0), multiplier, offset, shift, nn_twice_upper(s2_0, b2_0)));
                to[o + 19] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s3_0, b3_0), multiplier, offset, shift, nn_twice_upper(s3_0, b3_0)));
            }
            q += 8;
        }
    }
}

/* average5: average (4, 4, 6) -> (1, 1, 6), kernel 4x4, stride 2 2, 4 channels at a time */
static __attribute__((noinline)) NN_KERNEL void nn_average5(const int8_t *restrict in, int8_t *restrict out) {
    for (int32_t y = 0; y < 1; y++) {
        const int32_t top = y * 2;
        for (int32_t x = 0; x < 1; x++) {
            const int32_t left = x * 2;
            const int32_t count = 4 * 4; /* pixels inside */
            int8_t *const to = &out[y * 6 + x * 6];
            for (int32_t begin = 0; begin < 6; begin += 4) {
                const int32_t c = nn_min(begin, 2);
                uint32_t even = 0, odd = 0; /* sums of 16 bits: of bytes 0 and 2, 1 and 3 */
                for (int32_t ky = 0; ky < 4; ky++) {
                    const int8_t *from = &in[(top + ky) * 24 + left * 6 + c];
#pragma GCC unroll 8
                    for (int32_t kx = 0; kx < 4; kx++) {
                        const uint32_t word = nn_load_word(from);
                        even = nn_add_even_s8(even, word);
                        odd = nn_add_odd_s8(odd, word);
                        from += 6;
                    }
                }
                {
                    const int32_t sum = nn_low(even);
                    const int32_t value = nn_mean(sum, count);
                    to[c + 0] = (int8_t)(nn_clip(value, -128, 127));
                }
                {
                    const int32_t sum = nn_high(even);
                    const int32_t value = nn_mean(sum, count);
                    to[c + 2] = (int8_t)(nn_clip(value, -128, 127));
                }
                {
                    const int32_t sum = nn_low(odd);
                    const int32_t value = nn_mean(sum, count);
                    to[c + 1] = (int8_t)(nn_clip(value, -128, 127));
                }
                {
                    const int32_t sum = nn_high(odd);
                    const int32_t value = nn_mean(sum, count);
                    to[c + 3] = (int8_t)(nn_clip(value, -128, 127));
                }
            }
        }
    }
}

/* dense6: dense (1, 1, 6) -> (3), 2 channels at a time */
static __attribute__((noinline)) NN_KERNEL void nn_dense6(const int8_t *restrict in, int8_t *restrict out, uint8_t *restrict scratch) {
    nn_word_t *const windows = (nn_word_t *)scratch; /* the input, widened */
    nn_word_t *const to = nn_widen_s8(windows, in, 1, 1);
    ((nn_half_t *)to)[0] = in[4];
    ((nn_half_t *)to)[2] = in[5];
    ((nn_half_t *)to)[1] = 0;
    ((nn_half_t *)to)[3] = 0;
        const int8_t *w = nn_dense6_weights;
        const int32_t *q = nn_dense6_ends;
        for (int32_t begin = 0; begin < 3; begin += 2) {
            const int32_t o = nn_min(begin, 1);
            const nn_word_t *x = windows;
            int32_t b0_0 = q[0], s0_0 = q[1];
            {
                uint32_t w0, w1, x0, x1, e;
                NN_ORDERED();
                do {
                NN_LOAD(x0, x, 12);
                NN_LOAD(x1, x, 8);
                NN_LOAD(w0, w, 12);
                NN_LOAD(w1, w, 8);
                NN_EVEN(e, w0);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_EVEN(e, w1);
                NN_PAIR(b0_0, e, x1);
                NN_PAIR(s0_0, w1, x1);
                NN_LOAD(x0, x, 4);
                NN_NEXT(x1, x, 16);
                NN_LOAD(w0, w, 4);
                NN_NEXT(w1, w, 16);
                NN_EVEN(e, w0);
                NN_PAIR(b0_0, e, x0);
                NN_PAIR(s0_0, w0, x0);
                NN_EVEN(e, w1);
                NN_PAIR(b0_0, e, x1);
                NN_PAIR(s0_0, w1, x1);
                } while (!(!nn_again()));
                NN_ORDERED();
            }
            {
                const int32_t multiplier = q[2];
                const int32_t offset = q[3];
                const int32_t shift = q[4];
                out[o + 0] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice(b0_0), multiplier, offset, shift, nn_twice(b0_0)));
            }
            {
                const int32_t multiplier = q[5];
                const int32_t offset = q[6];
                const int32_t shift = q[7];
                out[o + 1] = (int8_t)nn_saturated_s8(nn_requantized(nn_twice_upper(s0_0, b0_0), multiplier, offset, shift, nn_twice_upper(s0_0, b0_0)));
            }
            q += 8;
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
    memcpy(&nn_arena[224 + nn_fed], bytes, count);
    nn_fed = (uint32_t)(nn_fed + count);
    return NN_OK;
}

nn_status_t nn_init(void) {
    nn_fed = 0;
    return NN_OK;
}

nn_input_t *nn_input(void) { return (nn_input_t *)&nn_arena[224]; }

nn_status_t nn_invoke(void) {
    if (!(nn_fed == 0 || nn_fed == NN_INPUT_BYTES)) {
        return NN_INCOMPLETE;
    }
    nn_fed = 0;
    nn_conv0((int8_t *)&nn_arena[224], (int8_t *)&nn_arena[416], &nn_arena[0]);
    nn_conv1((int8_t *)&nn_arena[416], (int8_t *)&nn_arena[288], &nn_arena[0]);
    nn_add2((int8_t *)&nn_arena[288], (int8_t *)&nn_arena[416], (int8_t *)&nn_arena[288]);
    nn_conv3((int8_t *)&nn_arena[288], (int8_t *)&nn_arena[144], &nn_arena[0]);
    nn_conv4((int8_t *)&nn_arena[144], (int8_t *)&nn_arena[0], &nn_arena[96]);
    nn_average5((int8_t *)&nn_arena[0], (int8_t *)&nn_arena[96]);
    nn_dense6((int8_t *)&nn_arena[96], (int8_t *)&nn_arena[16], &nn_arena[0]);
    nn_softmax7((int8_t *)&nn_arena[16], (int8_t *)&nn_arena[0]);
    return NN_OK;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[0]; }
