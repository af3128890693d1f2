/* Many inferences in one call, for programs that load the network as a shared library. The network
 * keeps its state in static memory: one call at a time. */
#include <string.h>

#include "model.h"

#define PIECE 0x4000u /* nn_feed takes at least so much at a time */

uint32_t thimble_input_bytes(void) { return NN_INPUT_BYTES; }

uint32_t thimble_output_bytes(void) { return NN_OUTPUT_COUNT * sizeof(nn_output_t); }

/* `count` inputs, one after the other, to as many outputs; how many were computed. */
int64_t thimble_predict(const uint8_t *inputs, uint8_t *outputs, int64_t count) {
    for (int64_t n = 0; n < count; n++) {
        const uint8_t *frame = inputs + n * (int64_t)NN_INPUT_BYTES;
        if (nn_init() != NN_OK) {
            return n;
        }
        for (uint32_t at = 0; at < NN_INPUT_BYTES; at += PIECE) {
            const uint32_t left = NN_INPUT_BYTES - at;
            if (nn_feed(frame + at, left < PIECE ? left : PIECE) != NN_OK) {
                return n;
            }
        }
        if (nn_invoke() != NN_OK) {
            return n;
        }
        memcpy(outputs + n * (int64_t)thimble_output_bytes(), nn_output(), thimble_output_bytes());
    }
    return count;
}
