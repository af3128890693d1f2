/* A Cortex-M33. Its manual (Arm 100230) has no table of cycles: this is the Cortex-M4's, but a load takes
 * 1, and 1 more when the next instruction uses what it loads. */
#include "thumb_registers.h"

static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    timing_t found = timing_alone(op, next);
    const thumb_t thumb = thumb_of(op, next, found);
    if (found.kind == TIMING_LOAD || found.kind == TIMING_STORE_BY_REGISTER) {
        found.cycles = 1;
    }
    found.writes = thumb.writes;
    if (before.kind == TIMING_LOAD && thumb.reads & thumb_bit(before.loaded)) {
        found.cycles++;
    }
    return found;
}
