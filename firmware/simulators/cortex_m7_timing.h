/* A Cortex-M7 issues two instructions at once. Its manual (Arm DDI 0489) has no table of cycles: here the
 * second of two joins the first when it needs none of its results and neither both use the memory, nor
 * both multiply, nor the first is a branch. A load's result is used 1 cycle late. */
#include "thumb_registers.h"

static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    timing_t found = timing_alone(op, next);
    const thumb_t thumb = thumb_of(op, next, found);
    if (found.kind == TIMING_LOAD || found.kind == TIMING_STORE_BY_REGISTER) {
        found.cycles = 1;
    }
    found.writes = thumb.writes;
    found.unit = (int)thumb.unit;
    const bool needs = thumb.reads & before.writes;
    const bool shares = found.unit != THUMB_ALU && found.unit == before.unit;
    const bool alone = before.cycles == 0 || before.pairs || before.unit == THUMB_BRANCH ||
                       before.unit == THUMB_OTHER || found.unit == THUMB_OTHER;
    if (!needs && !shares && !alone && found.cycles == 1) {
        found.pairs = true;
    } else if (needs && before.kind == TIMING_LOAD) {
        found.cycles++;
    }
    return found;
}
