/* chain, by Thimble. Generated: change the network or the plan, not this file.
 *
 * graph    0123456789abcdef
 * plan     fedcba9876543210
 *
 * Use: nn_init(); fill nn_input(), or nn_feed() the input as it comes; nn_invoke(); read nn_output().
 * The input is not kept: computing destroys it, and every frame has to be given anew.
 *
 *     nn_init();
 *     for (n = 0; n < NN_INPUT_COUNT; n++) {
 *         nn_input()[n] = nn_quantize(real[n]);
 *     }
 *     if (nn_invoke() == NN_OK) {
 *         found = nn_best(); certainty = nn_dequantize(nn_output()[found]);
 *     }
 *
 * One network, one state: it is not reentrant. Call its functions from one context, a task or an interrupt.
 * Interrupts may come meanwhile: they are never disabled here, and their handlers call none of these functions.
 * In an RTOS give it a task of its own, below whatever may not wait for nn_invoke(), or hold one mutex from
 * nn_init() until the output is read. It never blocks, allocates or yields.
 * All of them run on the caller's stack, which has to hold what the build reports as their deepest path, and the
 * handlers' own on top.
 */
#if defined(NN_MODEL_H) && NN_MODEL_ID != 0x00c62074
#error "NN_MODEL_H: two networks have this prefix, generate one of them with codegen.prefix=NAME"
#endif
#ifndef NN_MODEL_H
#define NN_MODEL_H
#define NN_MODEL_ID 0x00c62074 /* of the network and its plan */
#define NN_GRAPH_HASH "0123456789abcdef"
#define NN_PLAN_HASH "fedcba9876543210"
#define NN_API_VERSION 1 /* of the functions and macros below */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NN_INPUT_BYTES 50
#define NN_INPUT_FILLABLE 1 /* nn_input() is where it goes, or feed it */
#define NN_INPUT_KEPT 0
#define NN_INPUTS 1

/* Input: x, uint8, row-major, one byte an element. Real value = NN_INPUT_SCALE * (value - NN_INPUT_ZERO). */
#define NN_INPUT_SHAPE 5, 5, 2
#define NN_INPUT_COUNT 50
#define NN_INPUT_SCALE 1.0
#define NN_INPUT_ZERO 0
#define NN_INPUT_MIN 0
#define NN_INPUT_MAX 255
typedef uint8_t nn_input_t;

/* Output: y, uint8. Real value = NN_OUTPUT_SCALE * (value - NN_OUTPUT_ZERO). */
#define NN_OUTPUT_SHAPE 3, 3, 3
#define NN_OUTPUT_COUNT 27
#define NN_OUTPUT_SCALE 1.0
#define NN_OUTPUT_ZERO 0
typedef uint8_t nn_output_t;
#define NN_LABELS "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26" /* const char *const labels[] = {NN_LABELS}; */
#define NN_LABEL_BYTES 3 /* the longest, with its end */
#define NN_OUTPUTS 1
#define NN_EACH_OUTPUT(use) use(nn_output(), NN_OUTPUT_COUNT) /* values and their number */

/* Memory of Test board. The arena holds activations and the result. Weights are in read-only memory. */
#define NN_SRAM_BYTES 16777216
#define NN_ARENA_BYTES 178
#define NN_WEIGHT_BYTES 135
#define NN_MACS 1134
#if NN_ARENA_BYTES > NN_SRAM_BYTES
#error "the arena does not fit the RAM"
#endif

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

/* The index of the greatest output, of equal ones the first. */
static inline uint16_t nn_best(void) {
    const nn_output_t *output = nn_output();
    uint16_t best = 0;
    for (uint16_t n = 1; n < NN_OUTPUT_COUNT; n++) {
        best = output[n] > output[best] ? n : best;
    }
    return best;
}

/* The input's integer nearest to a real value; what lies outside of its range is cut off. */
static inline nn_input_t nn_quantize(float real) {
    const float steps = real / (float)NN_INPUT_SCALE + (float)NN_INPUT_ZERO;
    if (!(steps > (float)NN_INPUT_MIN)) {
        return NN_INPUT_MIN;
    }
    if (steps >= (float)NN_INPUT_MAX) {
        return NN_INPUT_MAX;
    }
    return (nn_input_t)(steps < 0 ? steps - 0.5f : steps + 0.5f);
}

/* The real value of one of the outputs. */
static inline float nn_dequantize(nn_output_t value) {
    return (float)NN_OUTPUT_SCALE * (float)((int32_t)value - NN_OUTPUT_ZERO);
}

#ifdef __cplusplus
}
#endif

#endif
