/* chain: tables, kernels and the order of steps, all fixed when this was generated. Tensors
 * lie in one arena; one that is dead gives its place to others. */
#include "model.h"

#include <string.h>

#include "nn_cells.h"
#include "nn_memory.h"

#define NN_CANARY 0x5AA5u

static uint8_t nn_arena[NN_ARENA_BYTES] NN_ALIGNED NN_KEEP;
static volatile uint16_t nn_canary NN_LAST; /* the first data a growing stack would reach */

/* Permutations in place: each place of a cycle takes over what its successor holds, the last one what the first
 * one held. After the cycles come chains, whose last place is only read. Places count pieces from `base` on. */
static const uint8_t nn_cycles[52] NN_FLASH = {
    4, 22, 12, 2, 34, 4, 23, 13, 3, 35, 4, 24, 14, 4, 36, 4, 25, 15, 5, 37, 4, 26, 16, 6, 38, 4, 27,
    17, 7, 39, 4, 28, 18, 8, 40, 4, 29, 19, 9, 41, 5, 30, 20, 10, 0, 32, 5, 31, 21, 11, 1, 33,
};

static NN_NOINLINE void nn_permute_bytes_1(const uint8_t *places, uint16_t cycles, uint16_t chains, uint8_t *base) {
    while (cycles + chains > 0) {
        uint8_t kept[1];
        uint8_t left = nn_flash8(places++);
        uint8_t *to = base + (size_t)nn_flash8(places++) * 1;
        kept[0] = to[0];
        while (--left > 0) {
            uint8_t *const from = base + (size_t)nn_flash8(places++) * 1;
        to[0] = from[0];
            to = from;
        }
        if (cycles > 0) {
        to[0] = kept[0];
            cycles--;
        } else {
            chains--;
        }
    }
}

/* The first cell of every pixel, for tensors whose pixels lie wherever there was room; from 32768 (the
 * flag NN_SCATTERED) on an index into nn_scatter. */
static const uint16_t nn_pixels[16] NN_FLASH NN_KEEP = {
    64, 68, 72, 76, 80, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40,
};

/* Output pixels in the order they are computed, in lines: where the first one of a line reads and
 * writes, and the steps from one to the next. A position is a cell, or an index into nn_pixels if the
 * kernel looks its pixels up there. One pixel is computed at a time: its inputs are read before it is
 * written, and may lie where it goes. */
typedef struct {
    uint16_t in, out; /* the first pixel of its window (modulo 2**16), and the output pixel */
    int16_t in_step, out_step;
    int16_t y, x; /* coordinates of `in`: negative in the padding */
    int8_t y_step, x_step;
    uint8_t count;
} nn_line_t;
static const nn_line_t nn_lines[4] NN_FLASH = {
    {65516, 0, 4, 1, -1, -1, 0, 1, 4}, {65532, 4, 4, 1, 0, -1, 0, 1, 4},
    {12, 8, 4, 1, 1, -1, 0, 1, 4}, {28, 12, 4, 1, 2, -1, 0, 1, 4},
};

/* Weights of 4 bits are nibbles w + 8, the low one of a byte first: for each input of a window, row by
 * row, one for each sum in turn. If the sums are odd in number, every second input begins with the
 * last one's. Biases are in the order of the sums. */

/* conv: convolution (4, 4, 2) -> (4, 4, 2), kernel 3x3, padding 1 1 1 1
 * Sum n is that of channel nn_conv__channels[n].
 */
static const uint8_t nn_conv__channels[2] NN_FLASH NN_KEEP = {
    1, 0,
};
static int8_t nn_conv_window_bias[2] NN_KEEP = {
    -52, -108,
};
static uint8_t nn_conv_window_weights[18] NN_KEEP = {
    216, 174, 132, 77, 74, 0, 22, 13, 40, 208, 172, 235, 141, 146, 241, 189, 160, 136,
};
static void nn_conv__pixel(uint16_t in, uint16_t out, int16_t y, int16_t x) {
    int16_t sum[2];
    uint16_t weight = 0;
    for (uint16_t n = 0; n < 2; n++) {
        sum[n] = 0;
    }
    for (uint16_t ky = 0; ky < 3; ky++) {
        for (uint16_t kx = 0; kx < 3; kx++) {
            const int16_t in_y = (int16_t)(y + 1 * ky), in_x = (int16_t)(x + 1 * kx);
            if (in_y < 0 || in_y >= 4 || in_x < 0 || in_x >= 4) {
                weight += 4;
                continue;
            }
            const uint16_t position = (uint16_t)(in + ky * (16) + kx * (4));
            const uint16_t pixel = position;
            for (uint16_t tap = 0; tap < 2; tap++) {
                const int16_t a = (int16_t)((int8_t)nn_get8(nn_arena, (uint16_t)(pixel + 2 * tap)));
                for (uint16_t n = 0; n < 2; n++, weight++) {
                    sum[n] = (int16_t)(sum[n] + a * (int16_t)(nn_nibble(nn_conv_window_weights[weight >> 1], weight) - 8));
                }
            }
        }
    }
    for (uint16_t n = 0; n < 2; n++) {
        int16_t value = (int16_t)(sum[n] * 2 + nn_conv_window_bias[n]);
        const int16_t rest = value & 31; /* round half to even */
        value >>= 5;
        value = (int16_t)(value + (rest > 16 || (rest == 16 && (value & 1))));
        value = value < -128 ? -128 : value;
        value = value > 127 ? 127 : value;
        sum[n] = value;
    }
    for (uint16_t n = 0; n < 2; n++) {
        const uint16_t channel = nn_flash8(&nn_conv__channels[n]);
        nn_put8(nn_arena, (uint16_t)(out + 2 * channel), (uint8_t)sum[n]);
    }
}

static NN_NOINLINE void nn_conv__line(uint16_t in, uint16_t out, int16_t in_step, int16_t out_step,
                        uint8_t count, int16_t y, int16_t x, int8_t y_step, int8_t x_step) {
    do {
        nn_conv__pixel(in, nn_flash16(&nn_pixels[out]), y, x);
        in = (uint16_t)(in + in_step);
        out = (uint16_t)(out + out_step);
        y = (int16_t)(y + y_step);
        x = (int16_t)(x + x_step);
    } while (--count);
}

static NN_NOINLINE void nn_conv(const nn_line_t *line, uint8_t lines) {
    for (; lines > 0; lines--, line++) {
        nn_conv__line(nn_flash16(&line->in), nn_flash16(&line->out), (int16_t)nn_flash16(&line->in_step),
            (int16_t)nn_flash16(&line->out_step), nn_flash8(&line->count), (int16_t)nn_flash16(&line->y), (int16_t)nn_flash16(&line->x), (int8_t)nn_flash8(&line->y_step), (int8_t)nn_flash8(&line->x_step));
    }
}

static uint16_t nn_fed; /* bytes of the input that have arrived */

nn_status_t nn_feed(const uint8_t *bytes, uint16_t count) {
    if (count > NN_INPUT_BYTES - nn_fed) {
        return NN_CORRUPT;
    }
    memcpy(&nn_arena[nn_fed], bytes, count);
    nn_fed = (uint16_t)(nn_fed + count);
    return NN_OK;
}

nn_status_t nn_init(void) {
    nn_canary = NN_CANARY;
    nn_fed = 0;
    return NN_OK;
}

nn_status_t nn_invoke(void) {
    if (!(nn_fed == NN_INPUT_BYTES)) {
        return NN_INCOMPLETE;
    }
    nn_fed = 0;
    nn_conv(&nn_lines[0], 4);
    nn_permute_bytes_1(&nn_cycles[0], 0, 10, &nn_arena[0]);
    return nn_canary == NN_CANARY ? NN_OK : NN_CORRUPT;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[0]; }
