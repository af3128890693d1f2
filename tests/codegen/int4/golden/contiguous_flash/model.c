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
static const uint8_t nn_cycles[130] NN_FLASH = {
    14, 5, 1, 6, 7, 13, 20, 4, 24, 28, 23, 22, 16, 9, 25, 14, 10, 2, 12, 14, 26, 11, 8, 19, 27, 17,
    15, 3, 18, 21, 2, 1, 5, 2, 2, 10, 2, 3, 15, 2, 4, 20, 2, 7, 11, 2, 8, 16, 2, 9, 21, 2, 13, 17,
    2, 14, 22, 2, 19, 23, 9, 4, 1, 5, 6, 11, 17, 9, 7, 16, 9, 8, 2, 10, 12, 3, 15, 18, 14, 13, 2, 1,
    4, 2, 2, 8, 2, 3, 12, 2, 6, 9, 2, 7, 13, 2, 11, 14, 5, 3, 1, 4, 5, 9, 5, 6, 2, 8, 10, 7, 2, 1,
    3, 2, 2, 6, 2, 5, 7, 7, 5, 7, 9, 10, 12, 6, 8, 2, 11, 13,
};

/* A piece of 1 cell, from low nibbles on; odd: it begins in the high nibble of its first byte. */
static inline void nn_take_1(const uint8_t *from, uint8_t from_odd, uint8_t *piece) {
    if (from_odd) {
        piece[0] = nn_swap(from[0]) & 0x0F;
    } else {
        piece[0] = from[0] & 0x0F;
    }
}

static inline void nn_give_1(uint8_t *to, uint8_t to_odd, const uint8_t *piece) {
    if (to_odd) {
        to[0] = (uint8_t)((to[0] & 0x0F) | (nn_swap(piece[0]) & 0xF0));
    } else {
        to[0] = (uint8_t)((to[0] & 0xF0) | piece[0]);
    }
}

static NN_NOINLINE void nn_permute_1(const uint8_t *places, uint16_t cycles, uint16_t chains, uint16_t base) {
    while (cycles + chains > 0) {
        uint8_t kept[1], moved[1];
        uint8_t left = nn_flash8(places++);
        uint16_t cell = (uint16_t)(base + nn_flash8(places++) * 1u);
        uint8_t *to = &nn_arena[cell >> 1], to_odd = cell & 1;
        nn_take_1(to, to_odd, kept);
        while (--left > 0) {
            cell = (uint16_t)(base + nn_flash8(places++) * 1u);
            uint8_t *const from = &nn_arena[cell >> 1], from_odd = cell & 1;
            nn_take_1(from, from_odd, moved);
            nn_give_1(to, to_odd, moved);
            to = from;
            to_odd = from_odd;
        }
        if (cycles > 0) {
            nn_give_1(to, to_odd, kept);
            cycles--;
        } else {
            chains--;
        }
    }
}

/* A piece of 3 cells, from low nibbles on; odd: it begins in the high nibble of its first byte. */
static inline void nn_take_3(const uint8_t *from, uint8_t from_odd, uint8_t *piece) {
    if (from_odd) {
        piece[0] = (uint8_t)((nn_swap(from[0]) & 0x0F) | (nn_swap(from[1]) & 0xF0));
        piece[1] = nn_swap(from[1]) & 0x0F;
    } else {
        piece[0] = from[0];
        piece[1] = from[1] & 0x0F;
    }
}

static inline void nn_give_3(uint8_t *to, uint8_t to_odd, const uint8_t *piece) {
    if (to_odd) {
        to[0] = (uint8_t)((to[0] & 0x0F) | (nn_swap(piece[0]) & 0xF0));
        to[1] = (uint8_t)((nn_swap(piece[0]) & 0x0F) | (nn_swap(piece[1]) & 0xF0));
    } else {
        to[0] = piece[0];
        to[1] = (uint8_t)((to[1] & 0xF0) | piece[1]);
    }
}

static NN_NOINLINE void nn_permute_3(const uint8_t *places, uint16_t cycles, uint16_t chains, uint16_t base) {
    while (cycles + chains > 0) {
        uint8_t kept[2], moved[2];
        uint8_t left = nn_flash8(places++);
        uint16_t cell = (uint16_t)(base + nn_flash8(places++) * 3u);
        uint8_t *to = &nn_arena[cell >> 1], to_odd = cell & 1;
        nn_take_3(to, to_odd, kept);
        while (--left > 0) {
            cell = (uint16_t)(base + nn_flash8(places++) * 3u);
            uint8_t *const from = &nn_arena[cell >> 1], from_odd = cell & 1;
            nn_take_3(from, from_odd, moved);
            nn_give_3(to, to_odd, moved);
            to = from;
            to_odd = from_odd;
        }
        if (cycles > 0) {
            nn_give_3(to, to_odd, kept);
            cycles--;
        } else {
            chains--;
        }
    }
}

#if defined(__AVR__) && !defined(NN_PORTABLE)
static uint16_t nn_jump NN_KEEP; /* for the assembly, whose registers are all taken */
static uint16_t nn_step NN_KEEP; /* for the assembly, whose registers are all taken */
#endif

/* The first cell of every pixel, for tensors whose pixels lie wherever there was room; from 32768 (the
 * flag NN_SCATTERED) on an index into nn_scatter. */
static const uint16_t nn_pixels[16] NN_FLASH NN_KEEP = {
    0, 3, 6, 9, 12, 21, 24, 27, 15, 30, 36, 39, 18, 33, 42, 45,
};

/* Output pixels in the order they are computed, in lines: where the first one of a line reads and
 * writes, and the steps from one to the next. A position is a cell, or an index into nn_pixels if the
 * kernel looks its pixels up there. One pixel is computed at a time: its inputs are read before it is
 * written, and may lie where it goes. */
typedef struct {
    uint16_t in, out; /* the first pixel of its window (modulo 2**16), and the output pixel */
    int16_t in_step, out_step;
    uint8_t count;
} nn_line_t;
static const nn_line_t nn_lines[10] NN_FLASH = {
    {24, 0, 1, 1, 4}, {30, 4, 1, 4, 3}, {35, 5, 1, 1, 3}, {40, 9, 1, 4, 2}, {44, 10, 1, 1, 2},
    {48, 14, 0, 0, 1}, {51, 15, 0, 0, 1}, {0, 48, 6, 3, 2}, {24, 54, 6, 3, 2}, {48, 0, 0, 0, 1},
};

/* Weights of 4 bits are nibbles w + 8, the low one of a byte first: for each input of a window, row by
 * row, one for each sum in turn. If the sums are odd in number, every second input begins with the
 * last one's. Biases are in the order of the sums. */

/* Most kernels come twice, with the same result: in assembly for AVR, and in C, which is the one to read
 * (-DNN_PORTABLE compiles it on AVR too). The assembly keeps a pixel's sums in r2 and up, 16 bits each
 * (for a maximum 8), one activation in r26 and weights in r27; Y is the byte being read, Z the next
 * weights. `.Lodd` is for pixels that begin in the high nibble of a byte. An activation times a byte
 * of two weights serves two sums at once: S += a (16 hi + lo) and L += a lo, then sum(a hi) =
 * (S - L) / 16; the sum of all activations takes the 8s off again. Few weights that are used often are
 * instructions instead: sums take over small multiples of the activation. */

/* conv: convolution (6, 6, 1) -> (4, 4, 3), kernel 3x3
 * row, column: what a step down or to the right adds to the position of an input pixel.
 */
#if defined(__AVR__) && !defined(NN_PORTABLE)
static inline __attribute__((always_inline)) void nn_conv__pixel(uint16_t in, uint16_t out, int16_t row, int16_t column) {
    (void)row; /* in nn_step and nn_jump */
    (void)column;
    uint16_t cursor = in;
    __asm__ volatile(
        "    push r24\n"
        "    push r25\n"
        "    push r28\n"
        "    push r29\n"
        "    push r26\n"
        "    push r27\n"
        "    movw r24, r30\n"
        "    clr r0\n"
        "    clr r1\n"
        "    ldi r28, 196\n"
        "    ldi r29, 255\n"
        "    movw r2, r28\n"
        "    ldi r28, 41\n"
        "    ldi r29, 0\n"
        "    movw r4, r28\n"
        "    ldi r28, 29\n"
        "    ldi r29, 0\n"
        "    movw r6, r28\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd0_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 0 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r26\n"
        "    add r27, r0\n"
        "    mov r30, r0\n"
        "    add r30, r27\n"
        "    add r2, r30\n"
        "    adc r3, r1\n"
        "    add r4, r30\n"
        "    adc r5, r1\n"
        "2:\n"
        "    rjmp .Lrun1_%=\n"
        ".Lodd0_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 0 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r26\n"
        "    add r27, r0\n"
        "    mov r30, r0\n"
        "    add r30, r27\n"
        "    add r2, r30\n"
        "    adc r3, r1\n"
        "    add r4, r30\n"
        "    adc r5, r1\n"
        "2:\n"
        ".Lrun1_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd1_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 1 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun2_%=\n"
        ".Lodd1_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 1 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "2:\n"
        ".Lrun2_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd2_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 2 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r4, r27\n"
        "    adc r5, r1\n"
        "    sub r6, r27\n"
        "    sbc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun3_%=\n"
        ".Lodd2_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 2 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r4, r27\n"
        "    adc r5, r1\n"
        "    sub r6, r27\n"
        "    sbc r7, r1\n"
        "2:\n"
        ".Lrun3_%=:\n"
        "    lds r26, %[jump]\n"
        "    lds r27, %[jump]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd3_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 3 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r6, r26\n"
        "    adc r7, r1\n"
        "    add r6, r27\n"
        "    adc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun4_%=\n"
        ".Lodd3_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 3 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r6, r26\n"
        "    adc r7, r1\n"
        "    add r6, r27\n"
        "    adc r7, r1\n"
        "2:\n"
        ".Lrun4_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd4_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 4 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    add r4, r26\n"
        "    adc r5, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun5_%=\n"
        ".Lodd4_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 4 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    add r4, r26\n"
        "    adc r5, r1\n"
        "    add r6, r0\n"
        "    adc r7, r1\n"
        "2:\n"
        ".Lrun5_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd5_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 5 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    mov r30, r27\n"
        "    add r30, r27\n"
        "    sub r2, r30\n"
        "    sbc r3, r1\n"
        "    sub r4, r26\n"
        "    sbc r5, r1\n"
        "    add r4, r30\n"
        "    adc r5, r1\n"
        "    sub r6, r30\n"
        "    sbc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun6_%=\n"
        ".Lodd5_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 5 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    mov r30, r27\n"
        "    add r30, r27\n"
        "    sub r2, r30\n"
        "    sbc r3, r1\n"
        "    sub r4, r26\n"
        "    sbc r5, r1\n"
        "    add r4, r30\n"
        "    adc r5, r1\n"
        "    sub r6, r30\n"
        "    sbc r7, r1\n"
        "2:\n"
        ".Lrun6_%=:\n"
        "    lds r26, %[jump]\n"
        "    lds r27, %[jump]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd6_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 6 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r26\n"
        "    add r27, r0\n"
        "    sub r2, r26\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r4, r27\n"
        "    adc r5, r1\n"
        "    sub r6, r0\n"
        "    sbc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun7_%=\n"
        ".Lodd6_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 6 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r26\n"
        "    add r27, r0\n"
        "    sub r2, r26\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r4, r27\n"
        "    adc r5, r1\n"
        "    sub r6, r0\n"
        "    sbc r7, r1\n"
        "2:\n"
        ".Lrun7_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd7_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 7 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r6, r26\n"
        "    adc r7, r1\n"
        "    add r6, r27\n"
        "    adc r7, r1\n"
        "2:\n"
        "    rjmp .Lrun8_%=\n"
        ".Lodd7_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 7 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    mov r27, r0\n"
        "    add r27, r0\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    sub r2, r27\n"
        "    sbc r3, r1\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    add r6, r26\n"
        "    adc r7, r1\n"
        "    add r6, r27\n"
        "    adc r7, r1\n"
        "2:\n"
        ".Lrun8_%=:\n"
        "    movw r28, r24\n"
        "    lds r26, %[step]\n"
        "    lds r27, %[step]+1\n"
        "    add r24, r26\n"
        "    adc r25, r27\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd8_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 8 */
        "    ldd r26, Y+0\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "2:\n"
        "    rjmp .Lrun9_%=\n"
        ".Lodd8_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 8 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    breq 2f\n"
        "    mov r0, r26\n"
        "    add r0, r26\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "    sub r2, r0\n"
        "    sbc r3, r1\n"
        "2:\n"
        ".Lrun9_%=:\n"
        ".Ldone_%=:\n"
        /* lane 0, channel 0 */
        "    clr r26\n"
        "    tst r3\n"
        "    brmi 2f\n"
        "    movw r28, r2\n"
        "    sbrc r28, 4\n" /* odd: a half rounds up */
        "    adiw r28, 1\n"
        "    adiw r28, 7\n"
        "    ldi r26, 15\n"
        "    cpi r29, 1\n"
        "    brsh 2f\n"
        "    swap r28\n"
        "    and r26, r28\n"
        "2:\n"
        "    mov r2, r26\n"
        /* lane 1, channel 1 */
        "    clr r26\n"
        "    tst r5\n"
        "    brmi 2f\n"
        "    movw r28, r4\n"
        "    ldi r26, 15\n"
        "    cpi r29, 1\n"
        "    brsh 2f\n"
        "    swap r28\n"
        "    and r26, r28\n"
        "2:\n"
        "    mov r4, r26\n"
        /* lane 2, channel 2 */
        "    clr r26\n"
        "    tst r7\n"
        "    brmi 2f\n"
        "    movw r28, r6\n"
        "    sbrc r28, 4\n" /* odd: a half rounds up */
        "    adiw r28, 1\n"
        "    adiw r28, 7\n"
        "    ldi r26, 15\n"
        "    cpi r29, 1\n"
        "    brsh 2f\n"
        "    swap r28\n"
        "    and r26, r28\n"
        "2:\n"
        "    mov r6, r26\n"
        "    pop r29\n"
        "    pop r28\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lstore_odd_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    swap r4\n"
        "    or r2, r4\n"
        "    st Y+, r2\n"
        "    ld r26, Y\n"
        "    andi r26, 240\n"
        "    or r26, r6\n"
        "    st Y, r26\n"
        "    rjmp .Lstored_%=\n"
        ".Lstore_odd_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    ld r26, Y\n"
        "    andi r26, 15\n"
        "    swap r2\n"
        "    or r26, r2\n"
        "    st Y+, r26\n"
        "    swap r6\n"
        "    or r4, r6\n"
        "    st Y+, r4\n"
        ".Lstored_%=:\n"
        "    pop r29\n"
        "    pop r28\n"
        "    pop r25\n"
        "    pop r24\n"
        "    clr r1\n"
        : "+x"(out), "+z"(cursor)
        : [arena] "i"(nn_arena), [step] "i"(&nn_step), [jump] "i"(&nn_jump)
        : "memory", "r0", "r2", "r3", "r4", "r5", "r6", "r7");
}
#else
static const int8_t nn_conv_window_bias[3] NN_FLASH NN_KEEP = {
    -120, 67, 58,
};
static const uint8_t nn_conv_window_weights[14] NN_FLASH NN_KEEP = {
    221, 232, 170, 232, 212, 132, 148, 10, 240, 177, 214, 160, 130, 8,
};
static void nn_conv__pixel(uint16_t in, uint16_t out, int16_t row, int16_t column) {
    int16_t sum[3];
    uint16_t weight = 0;
    for (uint16_t n = 0; n < 3; n++) {
        sum[n] = 0;
    }
    for (uint16_t ky = 0; ky < 3; ky++) {
        for (uint16_t kx = 0; kx < 3; kx++) {
            const uint16_t position = (uint16_t)(in + ky * (row) + kx * (column));
            const uint16_t pixel = position;
            for (uint16_t tap = 0; tap < 1; tap++) {
                const int16_t a = (int16_t)(nn_get4(nn_arena, (uint16_t)(pixel + tap)));
                uint16_t n = weight & 1 ? 2 : 0; /* odd taps begin with the last lane */
                for (uint16_t left = 3; left > 0; left--, weight++) {
                    sum[n] = (int16_t)(sum[n] + a * (int16_t)(nn_nibble(nn_flash8(&nn_conv_window_weights[weight >> 1]), weight) - 8));
                    n = (uint16_t)(n + 1 == 3 ? 0 : n + 1);
                }
            }
        }
    }
    for (uint16_t n = 0; n < 3; n++) {
        int16_t value = (int16_t)(sum[n] * 2 + (int8_t)nn_flash8(&nn_conv_window_bias[n]));
        const int16_t rest = value & 31; /* round half to even */
        value >>= 5;
        value = (int16_t)(value + (rest > 16 || (rest == 16 && (value & 1))));
        value = value < 0 ? 0 : value;
        value = value > 15 ? 15 : value;
        sum[n] = value;
    }
    for (uint16_t n = 0; n < 3; n++) {
        const uint16_t channel = n;
        nn_put4(nn_arena, (uint16_t)(out + channel), (uint8_t)sum[n]);
    }
}

#endif

static NN_NOINLINE void nn_conv__line(uint16_t in, uint16_t out, int16_t in_step, int16_t out_step,
                        uint8_t count, int16_t row, int16_t column) {
    do {
        nn_conv__pixel(in, nn_flash16(&nn_pixels[out]), row, column);
        in = (uint16_t)(in + in_step);
        out = (uint16_t)(out + out_step);
    } while (--count);
}

static NN_NOINLINE void nn_conv(const nn_line_t *line, uint8_t lines, int16_t row, int16_t column) {
#if defined(__AVR__) && !defined(NN_PORTABLE)
    nn_step = 1 * column;
    nn_jump = 1 * row - 3 * (1 * column);
#endif
    for (; lines > 0; lines--, line++) {
        nn_conv__line(nn_flash16(&line->in), nn_flash16(&line->out), (int16_t)nn_flash16(&line->in_step),
            (int16_t)nn_flash16(&line->out_step), nn_flash8(&line->count), row, column);
    }
}

/* pool: maximum (4, 4, 3) -> (2, 2, 3), kernel 2x2, stride 2 2
 */
#if defined(__AVR__) && !defined(NN_PORTABLE)
static inline __attribute__((always_inline)) void nn_pool__pixel(uint16_t in, uint16_t out) {
    uint16_t cursor = in;
    __asm__ volatile(
        "    push r23\n"
        "    push r24\n"
        "    push r25\n"
        "    push r28\n"
        "    push r29\n"
        "    push r26\n"
        "    push r27\n"
        "    movw r24, r30\n"
        "    clr r0\n"
        "    clr r1\n"
        "    movw r2, r0\n"
        "    movw r4, r0\n"
        "    ldi r23, 4\n"
        ".Lrun_%=:\n"
        "    movw r28, r24\n"
        "    adiw r24, 3\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    ldd r26, Y+0\n"
        "    or r26, r26\n"
        "    breq 3f\n"
        "    andi r26, 15\n"
        "    cp r2, r26\n"
        "    brsh 1f\n"
        "    mov r2, r26\n"
        "1:\n"
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "3:\n"
        "    breq 1f\n"
        "    cp r3, r26\n"
        "    brsh 1f\n"
        "    mov r3, r26\n"
        "1:\n"
        "    ldd r26, Y+1\n"
        "    andi r26, 15\n"
        "    cp r4, r26\n"
        "    brsh 1f\n"
        "    mov r4, r26\n"
        "1:\n"
        "    rjmp .Lnext_%=\n"
        ".Lodd_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    cp r2, r26\n"
        "    brsh 1f\n"
        "    mov r2, r26\n"
        "1:\n"
        "    ldd r26, Y+1\n"
        "    or r26, r26\n"
        "    breq 3f\n"
        "    andi r26, 15\n"
        "    cp r3, r26\n"
        "    brsh 1f\n"
        "    mov r3, r26\n"
        "1:\n"
        "    ldd r26, Y+1\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "3:\n"
        "    breq 1f\n"
        "    cp r4, r26\n"
        "    brsh 1f\n"
        "    mov r4, r26\n"
        "1:\n"
        ".Lnext_%=:\n"
        "    dec r23\n"
        "    cpi r23, 0\n"
        "    brne 1f\n"
        "    rjmp .Ldone_%=\n"
        "1:\n"
        "    cpi r23, 2\n"
        "    breq 1f\n"
        "    rjmp .Lrun_%=\n"
        "1:\n"
        "    adiw r24, 6\n"
        "    rjmp .Lrun_%=\n"
        ".Ldone_%=:\n"
        "    pop r29\n"
        "    pop r28\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lstore_odd_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    swap r3\n"
        "    or r2, r3\n"
        "    st Y+, r2\n"
        "    ld r26, Y\n"
        "    andi r26, 240\n"
        "    or r26, r4\n"
        "    st Y, r26\n"
        "    rjmp .Lstored_%=\n"
        ".Lstore_odd_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    ld r26, Y\n"
        "    andi r26, 15\n"
        "    swap r2\n"
        "    or r26, r2\n"
        "    st Y+, r26\n"
        "    swap r4\n"
        "    or r3, r4\n"
        "    st Y+, r3\n"
        ".Lstored_%=:\n"
        "    pop r29\n"
        "    pop r28\n"
        "    pop r25\n"
        "    pop r24\n"
        "    pop r23\n"
        "    clr r1\n"
        : "+x"(out), "+z"(cursor)
        : [arena] "i"(nn_arena)
        : "memory", "r0", "r2", "r3", "r4", "r5");
}
#else
static void nn_pool__pixel(uint16_t in, uint16_t out) {
    int16_t sum[3];
    for (uint16_t n = 0; n < 3; n++) {
        sum[n] = 0;
    }
    for (uint16_t ky = 0; ky < 2; ky++) {
        for (uint16_t kx = 0; kx < 2; kx++) {
            const uint16_t position = (uint16_t)(in + ky * (12) + kx * (3));
            const uint16_t pixel = position;
            for (uint16_t tap = 0; tap < 3; tap++) {
                const int16_t a = (int16_t)(nn_get4(nn_arena, (uint16_t)(pixel + tap)));
                sum[tap] = a > sum[tap] ? a : sum[tap];
            }
        }
    }
    for (uint16_t n = 0; n < 3; n++) {
        int16_t value = (int16_t)(sum[n]);
        value = value < 0 ? 0 : value;
        value = value > 15 ? 15 : value;
        sum[n] = value;
    }
    for (uint16_t n = 0; n < 3; n++) {
        const uint16_t channel = n;
        nn_put4(nn_arena, (uint16_t)(out + channel), (uint8_t)sum[n]);
    }
}

#endif

static NN_NOINLINE void nn_pool__line(uint16_t in, uint16_t out, int16_t in_step, int16_t out_step,
                        uint8_t count) {
    do {
        nn_pool__pixel(in, out);
        in = (uint16_t)(in + in_step);
        out = (uint16_t)(out + out_step);
    } while (--count);
}

static NN_NOINLINE void nn_pool(const nn_line_t *line, uint8_t lines) {
    for (; lines > 0; lines--, line++) {
        nn_pool__line(nn_flash16(&line->in), nn_flash16(&line->out), (int16_t)nn_flash16(&line->in_step),
            (int16_t)nn_flash16(&line->out_step), nn_flash8(&line->count));
    }
}

/* logits: dense (2, 2, 3) -> (2)
 */
static const int8_t nn_logits_window_bias[2] NN_FLASH NN_KEEP = {
    78, 123,
};
static const uint8_t nn_logits_window_weights[12] NN_FLASH NN_KEEP = {
    13, 18, 1, 173, 128, 168, 65, 148, 199, 102, 118, 240,
};
#if defined(__AVR__) && !defined(NN_PORTABLE)
static inline __attribute__((always_inline)) void nn_logits__pixel(uint16_t in, uint16_t out) {
    uint16_t cursor = in;
    __asm__ volatile(
        "    push r24\n"
        "    push r25\n"
        "    push r28\n"
        "    push r29\n"
        "    push r26\n"
        "    push r27\n"
        "    movw r24, r30\n"
        "    clr r0\n"
        "    clr r1\n"
        "    movw r2, r0\n"
        "    movw r4, r0\n"
        "    movw r6, r0\n"
        "    ldi r30, lo8(%[weights])\n"
        "    ldi r31, hi8(%[weights])\n"
        ".Lrun_%=:\n"
        "    movw r28, r24\n"
        "    adiw r24, 6\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    brcc 1f\n"
        "    rjmp .Lodd_%=\n"
        "1:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 0 */
        "    ldd r26, Y+0\n"
        "    mov r16, r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 1 */
        "    swap r16\n"
        "    andi r16, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r16, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r16, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r16\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 2 */
        "    ldd r26, Y+1\n"
        "    mov r16, r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 3 */
        "    swap r16\n"
        "    andi r16, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r16, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r16, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r16\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 4 */
        "    ldd r26, Y+2\n"
        "    mov r16, r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 5 */
        "    swap r16\n"
        "    andi r16, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r16, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r16, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r16\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        "    rjmp .Lnext_%=\n"
        ".Lodd_%=:\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        /* tap 0 */
        "    ldd r26, Y+0\n"
        "    swap r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 1 */
        "    ldd r26, Y+1\n"
        "    mov r16, r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 2 */
        "    swap r16\n"
        "    andi r16, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r16, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r16, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r16\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 3 */
        "    ldd r26, Y+2\n"
        "    mov r16, r26\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 4 */
        "    swap r16\n"
        "    andi r16, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r16, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r16, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r16\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        /* tap 5 */
        "    ldd r26, Y+3\n"
        "    andi r26, 15\n"
        "    brne 1f\n"
        "    adiw r30, 1\n"
        "    rjmp 2f\n"
        "1:\n"
        "    lpm r27, Z+\n"
        "    mul r26, r27\n"
        "    add r4, r0\n"
        "    adc r5, r1\n"
        "    andi r27, 15\n"
        "    mul r26, r27\n"
        "    add r2, r0\n"
        "    adc r3, r1\n"
        "    add r6, r26\n" /* r1 = 0: the last product was of nibbles */
        "    adc r7, r1\n"
        "2:\n"
        ".Lnext_%=:\n"
        "    cpi r30, lo8(%[weights]+12)\n"
        "    brne 1f\n"
        "    rjmp .Ldone_%=\n"
        "1:\n"
        "    rjmp .Lrun_%=\n"
        ".Ldone_%=:\n"
        "    clr r1\n"
        /* lane 1: 16 times its sum */
        "    sub r4, r2\n"
        "    sbc r5, r3\n"
        /* weights were stored with 8 added */
        "    lsl r6\n"
        "    rol r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    sub r2, r6\n"
        "    sbc r3, r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    lsl r6\n"
        "    rol r7\n"
        "    sub r4, r6\n"
        "    sbc r5, r7\n"
        "    ldi r30, lo8(%[bias])\n"
        "    ldi r31, hi8(%[bias])\n"
        /* lane 0, channel 0 */
        "    movw r28, r2\n"
        "    lsl r28\n"
        "    rol r29\n"
        "    lsl r28\n"
        "    rol r29\n"
        "    lpm r0, Z+\n"
        "    sbrc r0, 7\n"
        "    dec r29\n"
        "    add r28, r0\n"
        "    adc r29, r1\n"
        "    movw r2, r28\n"
        /* lane 1, channel 1 */
        "    movw r28, r4\n"
        "    asr r29\n"
        "    ror r28\n"
        "    asr r29\n"
        "    ror r28\n"
        "    lpm r0, Z+\n"
        "    sbrc r0, 7\n"
        "    dec r29\n"
        "    add r28, r0\n"
        "    adc r29, r1\n"
        "    movw r4, r28\n"
        "    pop r29\n"
        "    pop r28\n"
        "    lsr r29\n"
        "    ror r28\n"
        "    subi r28, lo8(-(%[arena]))\n"
        "    sbci r29, hi8(-(%[arena]))\n"
        "    st Y+, r2\n"
        "    st Y+, r3\n"
        "    st Y+, r4\n"
        "    st Y+, r5\n"
        "    pop r29\n"
        "    pop r28\n"
        "    pop r25\n"
        "    pop r24\n"
        "    clr r1\n"
        : "+x"(out), "+z"(cursor)
        : [arena] "i"(nn_arena), [weights] "i"(nn_logits_window_weights), [bias] "i"(nn_logits_window_bias)
        : "memory", "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r16");
}
#else
static void nn_logits__pixel(uint16_t in, uint16_t out) {
    int16_t sum[2];
    uint16_t weight = 0;
    for (uint16_t n = 0; n < 2; n++) {
        sum[n] = 0;
    }
    for (uint16_t ky = 0; ky < 2; ky++) {
        for (uint16_t kx = 0; kx < 2; kx++) {
            const uint16_t position = (uint16_t)(in + ky * (6) + kx * (3));
            const uint16_t pixel = position;
            for (uint16_t tap = 0; tap < 3; tap++) {
                const int16_t a = (int16_t)(nn_get4(nn_arena, (uint16_t)(pixel + tap)));
                for (uint16_t n = 0; n < 2; n++, weight++) {
                    sum[n] = (int16_t)(sum[n] + a * (int16_t)(nn_nibble(nn_flash8(&nn_logits_window_weights[weight >> 1]), weight) - 8));
                }
            }
        }
    }
    for (uint16_t n = 0; n < 2; n++) {
        int16_t value = (int16_t)(sum[n] * 4 + (int8_t)nn_flash8(&nn_logits_window_bias[n]));
        sum[n] = value;
    }
    for (uint16_t n = 0; n < 2; n++) {
        const uint16_t channel = n;
        nn_put16(nn_arena, (uint16_t)(out + 4 * channel), (uint16_t)sum[n]);
    }
}

#endif

static NN_NOINLINE void nn_logits__line(uint16_t in, uint16_t out, int16_t in_step, int16_t out_step,
                        uint8_t count) {
    do {
        nn_logits__pixel(in, out);
        in = (uint16_t)(in + in_step);
        out = (uint16_t)(out + out_step);
    } while (--count);
}

static NN_NOINLINE void nn_logits(const nn_line_t *line, uint8_t lines) {
    for (; lines > 0; lines--, line++) {
        nn_logits__line(nn_flash16(&line->in), nn_flash16(&line->out), (int16_t)nn_flash16(&line->in_step),
            (int16_t)nn_flash16(&line->out_step), nn_flash8(&line->count));
    }
}

static uint8_t nn_fed_rows, nn_fed_column; /* how much of the input has arrived */

/* pooled, while the input arrives: one row of sums at byte 0 of the arena; a window's first
 * byte opens its sum, its last byte turns it into an element of pooled. */
nn_status_t nn_feed(const uint8_t *bytes, uint16_t count) {
    for (; count > 0; count--, bytes++) {
        const uint8_t row = nn_fed_rows, column = nn_fed_column;
        if (row == 12) {
            return NN_CORRUPT;
        }
        const uint8_t across = (uint8_t)(column / 2), x = column;
        uint8_t *const sum = &nn_arena[0 + 2 * across];
        int16_t value = *bytes;
        if (row % 2 != 0 || x % 2 != 0) {
            const int16_t before = (int16_t)nn_get16(sum, 0);
            value = (int16_t)(value + before);
        }
        if (row % 2 == 1 && x % 2 == 1) {
            const uint16_t position = (uint16_t)(24 + (uint8_t)(row / 2) * 6 + across * 1);
            const uint16_t pixel = position;
            const uint16_t cell = (uint16_t)(pixel + 0);
            const int16_t scaled = (int16_t)((value) >> 6);
            nn_put4(nn_arena, cell, (uint8_t)((scaled)));
        } else {
            nn_put16(sum, 0, (uint16_t)value);
        }
        nn_fed_column = (uint8_t)(column + 1);
        if (nn_fed_column == 12) {
            nn_fed_column = 0;
            nn_fed_rows = (uint8_t)(row + 1);
        }
    }
    return NN_OK;
}

nn_status_t nn_init(void) {
    nn_canary = NN_CANARY;
    nn_fed_rows = 0;
    nn_fed_column = 0;
    return NN_OK;
}

nn_status_t nn_invoke(void) {
    if (!(nn_fed_rows == 12)) {
        return NN_INCOMPLETE;
    }
    nn_fed_rows = 0;
    nn_fed_column = 0;
    nn_conv(&nn_lines[0], 1, 6, 1);
    nn_permute_1(&nn_cycles[0], 2, 0, 30);
    nn_conv(&nn_lines[1], 1, 1, 5);
    nn_permute_1(&nn_cycles[30], 10, 0, 35);
    nn_conv(&nn_lines[2], 1, 5, 1);
    nn_permute_1(&nn_cycles[60], 2, 0, 40);
    nn_conv(&nn_lines[3], 1, 1, 4);
    nn_permute_1(&nn_cycles[80], 6, 0, 44);
    nn_conv(&nn_lines[4], 1, 4, 1);
    nn_permute_1(&nn_cycles[98], 2, 0, 48);
    nn_conv(&nn_lines[5], 1, 1, 3);
    nn_permute_1(&nn_cycles[110], 3, 0, 51);
    nn_conv(&nn_lines[6], 1, 3, 1);
    nn_permute_3(&nn_cycles[119], 2, 0, 0);
    nn_pool(&nn_lines[7], 2);
    nn_logits(&nn_lines[9], 1);
    return nn_canary == NN_CANARY ? NN_OK : NN_CORRUPT;
}

const nn_output_t *nn_output(void) { return (const nn_output_t *)&nn_arena[0]; }
