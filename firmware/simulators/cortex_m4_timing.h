/* A Cortex-M4: Arm DDI 0439, 3.3.1 and 3.3.2. */
#include "thumb_timing.h"

/* Of an instruction after `before`; `next` is the second half of a wide one. */
static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    return timing_after(op, next, before);
}
