/* Many inferences in one call, for programs that load the network as a shared library. The network
 * keeps its state in static memory: one call at a time. */
#include <string.h>

#include "model.h"

#define PIECE 0x4000u /* nn_feed takes at least so much at a time */

#ifdef NN_INPUT_AGAIN /* read where it lies */
static int8_t given(const uint8_t *frame) {
    nn_input_at((const nn_input_t *)frame);
    return 1;
}
#else
static int8_t given(const uint8_t *frame) {
    for (uint32_t at = 0; at < NN_INPUT_BYTES; at += PIECE) {
        const uint32_t left = NN_INPUT_BYTES - at;
        if (nn_feed(frame + at, left < PIECE ? left : PIECE) != NN_OK) {
            return 0;
        }
    }
    return 1;
}
#endif

uint32_t thimble_input_bytes(void) { return NN_INPUT_BYTES; }

#define ADD_BYTES(values, count) + (count) * sizeof *(values)

uint32_t thimble_output_bytes(void) { return (uint32_t)(0 NN_EACH_OUTPUT(ADD_BYTES)); }

#ifdef NN_STATE_BYTES
#define FOLLOWS(n) ((n) > 0)
#else
#define FOLLOWS(n) 0
#endif

/* Frames follow each other: they are computed in order, by one copy of the network. */
uint32_t thimble_in_turn(void) { return FOLLOWS(1); }

/* `count` frames, each all inputs one after the other, to as many outputs, likewise; how many were computed. State is
 * what it is initially at the first one. */
int64_t thimble_predict(const uint8_t *inputs, uint8_t *outputs, int64_t count) {
    for (int64_t n = 0; n < count; n++) {
        const uint8_t *frame = inputs + n * (int64_t)NN_INPUT_BYTES;
        if ((!FOLLOWS(n) && nn_init() != NN_OK) || !given(frame) || nn_invoke() != NN_OK) {
            return n;
        }
#define COPY(values, count)                               \
    memcpy(outputs, values, (count) * sizeof *(values)); \
    outputs += (count) * sizeof *(values);
        NN_EACH_OUTPUT(COPY)
    }
    return count;
}
