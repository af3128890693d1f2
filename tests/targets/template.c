#include "model.h"
#ifdef __AVR__
#include <avr/io.h>
#include <avr/pgmspace.h>
#endif
static uint8_t nn_arena[NN_ARENA_BYTES];
%(globals)s
nn_status_t nn_init(void) { return NN_OK; }
nn_status_t nn_feed(const uint8_t *bytes, uint16_t count) {
    nn_arena[0] = bytes[count - 1];
    %(feed)s
    return NN_OK;
}
nn_status_t nn_invoke(void) {
    %(invoke)s
    return NN_OK;
}
const nn_output_t *nn_output(void) { return (const nn_output_t *)(void *)nn_arena; }
