/* chain, by Thimble. Generated: change the network or the plan, not this file.
 *
 * graph    0123456789abcdef
 * plan     fedcba9876543210
 *
 * Use: nn_init(); nn_feed() until NN_INPUT_BYTES bytes are in; nn_invoke(); read nn_output().
 * The input is not kept: computing destroys it, and every frame has to be given anew.
 *
 * One network, one state: it is not reentrant. Call its functions from one context, a task or an interrupt.
 * Interrupts may come meanwhile; their handlers call none of these functions. All of them run on the caller's
 * stack, which has to hold what the build reports as their deepest path, and the handlers' own on top.
 */
#ifndef NN_MODEL_H
#define NN_MODEL_H

#include <stdint.h>

/* Input: image, uint8, row-major, one byte an element. Real value = NN_INPUT_SCALE * (value - NN_INPUT_ZERO). */
#define NN_INPUT_SHAPE 12, 12, 1
#define NN_INPUT_COUNT 144
#define NN_INPUT_BYTES 144
#define NN_INPUT_SCALE 1.0
#define NN_INPUT_ZERO 0
#define NN_INPUT_FILLABLE 0 /* there is no nn_input(): feed it */
#define NN_INPUT_KEPT 0

/* Output: logits, int16. Real value = NN_OUTPUT_SCALE * (value - NN_OUTPUT_ZERO). */
#define NN_OUTPUT_SHAPE 2
#define NN_OUTPUT_COUNT 2
#define NN_OUTPUT_SCALE 1.0
#define NN_OUTPUT_ZERO 0
typedef int16_t nn_output_t __attribute__((may_alias));

/* Memory of Test board. The arena holds activations and the result. Weights are in read-only memory. */
#define NN_SRAM_BYTES 1048576
#define NN_ARENA_BYTES 30
#define NN_WEIGHT_BYTES 31
#define NN_MACS 456
_Static_assert(NN_ARENA_BYTES <= NN_SRAM_BYTES, "the arena does not fit the RAM");

typedef enum {
    NN_OK,
    NN_INCOMPLETE, /* input is missing */
    NN_CORRUPT     /* more input than a frame has, or the stack has reached the network's data */
} nn_status_t;

/* Before each frame: forgets what was fed. */
nn_status_t nn_init(void);

/* The next `count` bytes of the input, in pieces of any size; NN_CORRUPT if that is more than a frame. */
nn_status_t nn_feed(const uint8_t *bytes, uint16_t count);

/* Computes; NN_INCOMPLETE before the whole input is in. */
nn_status_t nn_invoke(void);

/* NN_OUTPUT_COUNT values, valid until the next nn_init() or input: they lie in the arena. */
const nn_output_t *nn_output(void);

#endif
