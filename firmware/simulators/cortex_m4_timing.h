/* A Cortex-M4: Arm DDI 0439, 3.3.1 and 3.3.2. A load, or a store by register, right after a load that it
 * does not take its address from, takes one cycle less. */
#include "thumb_timing.h"

/* Of an instruction after `before`; `next` is the second half of a wide one. */
static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    timing_t found = timing_alone(op, next);
    const bool follows = found.kind == TIMING_LOAD || found.kind == TIMING_STORE_BY_REGISTER;
    if (before.kind == TIMING_LOAD && follows && found.base != before.loaded && found.offset != before.loaded) {
        found.cycles--;
    }
    return found;
}
