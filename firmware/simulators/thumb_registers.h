/* Which registers a Thumb instruction reads and writes, and which unit works on it, as far as a cycle
 * model needs that: ARMv7-M reference manual, A5. Loads and stores of one register, data processing and
 * multiplications are exact; of the others nothing is said, so that they pair with nothing. */
#ifndef THUMB_REGISTERS_H
#define THUMB_REGISTERS_H

#include "thumb_timing.h"

enum thumb_unit { THUMB_ALU, THUMB_MULTIPLIER, THUMB_MEMORY, THUMB_BRANCH, THUMB_OTHER };

/* A bit for each register. */
typedef struct {
    enum thumb_unit unit;
    uint32_t reads, writes;
} thumb_t;

static inline uint32_t thumb_bit(int number) { return number < 0 || number > 14 ? 0 : 1u << number; }

static inline thumb_t thumb_data(enum thumb_unit unit, int to, int first, int second) {
    return (thumb_t){unit, thumb_bit(first) | thumb_bit(second), thumb_bit(to)};
}

static inline thumb_t thumb_narrow_data(uint16_t op) {
    const int low = op & 7, middle = op >> 3 & 7, high = op >> 8 & 7;
    if (op >> 11 < 3) { /* shift by a constant */
        return thumb_data(THUMB_ALU, low, middle, TIMING_NONE);
    }
    if (op >> 11 == 3) {
        return thumb_data(THUMB_ALU, low, middle, op & 0x400 ? TIMING_NONE : op >> 6 & 7);
    }
    if (op >> 13 == 1) { /* mov, cmp, add, sub of 8 bits */
        const int kind = op >> 11 & 3;
        return thumb_data(THUMB_ALU, kind == 1 ? TIMING_NONE : high, kind ? high : TIMING_NONE, TIMING_NONE);
    }
    if (op >> 10 == 0x10) {
        const int kind = op >> 6 & 15;
        const bool compares = kind == 8 || kind == 10 || kind == 11;
        return thumb_data(kind == 13 ? THUMB_MULTIPLIER : THUMB_ALU, compares ? TIMING_NONE : low, low, middle);
    }
    if (op >> 10 == 0x11 && (op >> 8 & 3) != 3) { /* add, cmp, mov of any register */
        const int to = low | (op >> 4 & 8), kind = op >> 8 & 3;
        return thumb_data(to == 15 ? THUMB_BRANCH : THUMB_ALU, kind == 1 ? TIMING_NONE : to,
                          kind == 2 ? TIMING_NONE : to, op >> 3 & 15);
    }
    if (op >> 12 == 0xA) { /* an address */
        return thumb_data(THUMB_ALU, high, op & 0x800 ? 13 : TIMING_NONE, TIMING_NONE);
    }
    if (op >> 8 == 0xB2) { /* extends */
        return thumb_data(THUMB_ALU, low, middle, TIMING_NONE);
    }
    const bool branches = op >> 12 == 0xD || op >> 11 == 0x1C || (op & 0xF500) == 0xB100 || op >> 8 == 0x47;
    return thumb_data(branches ? THUMB_BRANCH : THUMB_OTHER, TIMING_NONE, (op & 0xF500) == 0xB100 ? low : TIMING_NONE,
                      TIMING_NONE);
}

static inline thumb_t thumb_wide_data(uint16_t op, uint16_t next) {
    const int to = next >> 8 & 15, first = op & 15, second = next & 15;
    switch (op >> 8) {
    case 0xEA:
    case 0xEB:
    case 0xFA:
        return thumb_data(THUMB_ALU, to, first, second);
    case 0xFB: {
        thumb_t found = thumb_data((op & 0xD0) == 0x90 ? THUMB_OTHER : THUMB_MULTIPLIER, to, first, second);
        found.reads |= thumb_bit(next >> 12);
        if (op & 0x80) { /* 64 bits */
            found.reads |= thumb_bit(to);
            found.writes |= thumb_bit(next >> 12);
        }
        return found;
    }
    default:
        if (op >> 11 == 0x1E) {
            return next & 0x8000 ? thumb_data(THUMB_BRANCH, TIMING_NONE, TIMING_NONE, TIMING_NONE)
                                 : thumb_data(THUMB_ALU, to, first, TIMING_NONE);
        }
        return thumb_data(THUMB_OTHER, TIMING_NONE, TIMING_NONE, TIMING_NONE);
    }
}

static inline thumb_t thumb_of(uint16_t op, uint16_t next, timing_t timing) {
    const bool wide = timing_is_wide(op);
    if (timing.kind == TIMING_DATA) {
        return wide ? thumb_wide_data(op, next) : thumb_narrow_data(op);
    }
    if (timing.kind == TIMING_OTHER) {
        return thumb_data(THUMB_OTHER, TIMING_NONE, TIMING_NONE, TIMING_NONE);
    }
    thumb_t found = thumb_data(THUMB_MEMORY, timing.loaded, timing.base, timing.offset);
    if (timing.kind != TIMING_LOAD) { /* what is stored */
        const bool relative = op >> 12 == 9;
        found.reads |= thumb_bit(wide ? next >> 12 : relative ? op >> 8 & 7 : op & 7);
    }
    if (wide && (next & 0xF00) >= 0x900 && (next & 0x900) == 0x900 && !(op & 0x80)) { /* writes its base back */
        found.writes |= thumb_bit(timing.base);
    }
    return found;
}

#endif
