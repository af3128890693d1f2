/* small, by Thimble. Generated: change the network or the plan, not this file.
 *
 * graph    0123456789abcdef
 * plan     fedcba9876543210
 *
 * Use: nn_init(); fill nn_input(), or nn_feed() the input as it comes; nn_invoke(); read nn_output().
 * The input is not kept: computing destroys it, and every frame has to be given anew.
 *
 * One network, one state: it is not reentrant. Call its functions from one context, a task or an interrupt.
 * Interrupts may come meanwhile; their handlers call none of these functions. All of them run on the caller's
 * stack, which has to hold what the build reports as their deepest path, and the handlers' own on top.
 */
#ifndef NN_MODEL_H
#define NN_MODEL_H

#include <stdint.h>

/* Input: image, int8, row-major, one byte an element. Real value = NN_INPUT_SCALE * (value - NN_INPUT_ZERO). */
#define NN_INPUT_SHAPE 8, 8, 3
#define NN_INPUT_COUNT 192
#define NN_INPUT_BYTES 192
#define NN_INPUT_SCALE 0.09554173266933418
#define NN_INPUT_ZERO -2
#define NN_INPUT_FILLABLE 1 /* nn_input() is where it goes, or feed it */
#define NN_INPUT_KEPT 0
typedef int8_t nn_input_t;

/* Output: softmax7, int8. Real value = NN_OUTPUT_SCALE * (value - NN_OUTPUT_ZERO). */
#define NN_OUTPUT_SHAPE 3
#define NN_OUTPUT_COUNT 3
#define NN_OUTPUT_SCALE 0.00390625
#define NN_OUTPUT_ZERO -128
typedef int8_t nn_output_t;

/* Memory of Test board. The arena holds activations and the result. Weights are in read-only memory. */
#define NN_SRAM_BYTES 16777216
#define NN_ARENA_BYTES 256
#define NN_WEIGHT_BYTES 414
#define NN_MACS 5010
_Static_assert(NN_ARENA_BYTES <= NN_SRAM_BYTES, "the arena does not fit the RAM");

typedef enum {
    NN_OK,
    NN_INCOMPLETE, /* input is missing */
    NN_CORRUPT     /* more input than a frame has */
} nn_status_t;

/* Before each frame: forgets what was fed. */
nn_status_t nn_init(void);

/* Where the input goes, NN_INPUT_COUNT values: fill it before each nn_invoke(). */
nn_input_t *nn_input(void);

/* Instead of filling nn_input(): the next `count` bytes of the input, in pieces of any size; NN_CORRUPT if that is more than a frame. */
nn_status_t nn_feed(const uint8_t *bytes, uint32_t count);

/* Computes; NN_INCOMPLETE if part of the input was fed, not all. */
nn_status_t nn_invoke(void);

/* NN_OUTPUT_COUNT values, valid until the next nn_init() or input: they lie in the arena. */
const nn_output_t *nn_output(void);

#endif
