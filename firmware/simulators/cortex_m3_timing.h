/* A Cortex-M3: Arm DDI 0337, 3.3.1 and 3.3.2, from memory. As a Cortex-M4, but it has one multiplication of
 * 32 bits, and what that adds to or makes 64 bits of takes longer: 4 to 7 cycles, by the numbers.
 *
 *     a multiplication              1
 *     multiply and add or subtract  2
 *     a product of 64 bits          4 (3 to 5); added to one 5 (4 to 7) */
#include "thumb_timing.h"

static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    timing_t found = timing_after(op, next, before);
    if ((op & 0xFFF0) == 0xFB00 && (next & 0xF0F0) != 0xF000) { /* mla, mls */
        found.cycles = 2;
    }
    if ((op & 0xFFD0) == 0xFB80) { /* smull, umull */
        found.cycles = 4;
    }
    if ((op & 0xFFD0) == 0xFBC0) { /* smlal, umlal */
        found.cycles = 5;
    }
    return found;
}
