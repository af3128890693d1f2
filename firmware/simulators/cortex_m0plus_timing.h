/* A Cortex-M0+: Arm DDI 0484, table 3-1, with the multiplier of one cycle (as in every STM32G0); its other
 * one takes 32: -DMULTIPLY_CYCLES=32. A taken branch takes one more, which is not here.
 *
 *     data processing               1
 *     load, store                   2
 *     n registers at once           1 + n; with the program counter 2 + n
 *     a call, a register's branch   2
 *     a barrier, a special register 3 */
#include "thumb_timing.h"

#ifndef MULTIPLY_CYCLES
#define MULTIPLY_CYCLES 1
#endif

static inline timing_t timing_of(uint16_t op, uint16_t next, timing_t before) {
    (void)before;
    if (timing_is_wide(op)) {
        const bool call = (op & 0xF800) == 0xF000 && (next & 0xD000) == 0xD000;
        return timing_plain(TIMING_DATA, call ? 2 : 3);
    }
    timing_t found = timing_narrow(op);
    if (found.kind == TIMING_STORE) {
        found.cycles = 2;
    }
    if ((op & 0xFF00) == 0xBD00) { /* a return */
        found.cycles++;
    }
    if ((op & 0xFFC0) == 0x4340) {
        found.cycles = MULTIPLY_CYCLES;
    }
    return found;
}
