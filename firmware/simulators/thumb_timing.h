/* Thumb instructions by what a cycle model asks, with the cycles that a Cortex-M4 takes for one alone,
 * with memory that answers at once and without the refill after a taken branch: Cortex-M4 technical
 * reference manual (Arm DDI 0439), 3.3.1.
 *
 *     data processing, a multiplication, SIMD   1
 *     load                                      2
 *     store                                     1; with a register offset 2
 *     n registers at once                       1 + n
 *     division                                  7 (2 to 12: how long depends on the numbers)
 *     floating point                            1; multiply and add 3; division, square root 14 */
#ifndef THUMB_TIMING_H
#define THUMB_TIMING_H

#include <stdbool.h>
#include <stdint.h>

enum timing_kind { TIMING_DATA, TIMING_LOAD, TIMING_STORE, TIMING_STORE_BY_REGISTER, TIMING_OTHER };

#define TIMING_NONE (-1)

/* `loaded` is the register that a load writes, `base` and `offset` make its address. `pairs`: it was issued
 * together with the one before, which has its cycles. */
typedef struct {
    enum timing_kind kind;
    unsigned cycles;
    int loaded, base, offset;
    bool pairs;
    uint32_t writes; /* registers, where a core's model asks for them */
    int unit;
} timing_t;

static inline bool timing_is_wide(uint16_t first) { return first >> 11 >= 0x1D; }

static inline unsigned timing_several(uint32_t registers) {
    return 1 + (unsigned)__builtin_popcount(registers);
}

static inline timing_t timing_plain(enum timing_kind kind, unsigned cycles) {
    return (timing_t){
        .kind = kind, .cycles = cycles, .loaded = TIMING_NONE, .base = TIMING_NONE, .offset = TIMING_NONE};
}

static inline timing_t timing_access(bool loads, int data, int base, int offset) {
    const enum timing_kind store = offset == TIMING_NONE ? TIMING_STORE : TIMING_STORE_BY_REGISTER;
    const unsigned cycles = loads || store == TIMING_STORE_BY_REGISTER ? 2 : 1;
    return (timing_t){.kind = loads ? TIMING_LOAD : store,
                      .cycles = cycles,
                      .loaded = loads ? data : TIMING_NONE,
                      .base = base,
                      .offset = offset};
}

static inline timing_t timing_narrow(uint16_t op) {
    if ((op & 0xF600) == 0xB400) { /* push, pop */
        return timing_plain(TIMING_OTHER, timing_several(op & 0x1FF));
    }
    if (op >> 12 == 0xC) { /* ldm, stm */
        return timing_plain(TIMING_OTHER, timing_several(op & 0xFF));
    }
    if (op >> 11 == 0x09) { /* ldr of a literal */
        return timing_access(true, op >> 8 & 7, TIMING_NONE, TIMING_NONE);
    }
    if (op >> 12 == 5) { /* by register: 0 to 2 are the stores */
        return timing_access((op >> 9 & 7) > 2, op & 7, op >> 3 & 7, op >> 6 & 7);
    }
    if (op >> 13 == 3 || op >> 12 == 8) {
        return timing_access(op & 0x800, op & 7, op >> 3 & 7, TIMING_NONE);
    }
    if (op >> 12 == 9) { /* relative to the stack pointer */
        return timing_access(op & 0x800, op >> 8 & 7, 13, TIMING_NONE);
    }
    return timing_plain(TIMING_DATA, 1);
}

static inline timing_t timing_floating(uint16_t op, uint16_t next) {
    if ((op & 0xFE00) == 0xEC00) {
        if ((op & 0xFE0) == 0xC40) { /* two registers at once */
            return timing_plain(TIMING_OTHER, 2);
        }
        const bool single = (op & 0xF20) == 0xD00; /* vldr, vstr */
        return timing_plain(TIMING_OTHER, single ? 2u + (next >> 8 & 1) : 1u + (next & 0xFF));
    }
    const int kind = op >> 4 & 0xB;
    if (kind == 8 || ((op & 0xBF) == 0xB1 && (next & 0xC0) == 0xC0)) {
        return timing_plain(TIMING_DATA, 14);
    }
    return timing_plain(TIMING_DATA, kind < 2 ? 3 : 1);
}

static inline timing_t timing_wide(uint16_t op, uint16_t next) {
    if ((op & 0xFE40) == 0xE800) { /* ldm, stm */
        return timing_plain(TIMING_OTHER, timing_several(next));
    }
    if ((op & 0xFE40) == 0xE840) { /* table branch; two registers */
        const bool table = (op & 0xFFF0) == 0xE8D0 && (next & 0xFFE0) == 0xF000;
        return timing_plain(TIMING_OTHER, table ? 2 : 3);
    }
    if ((op & 0xFE00) == 0xF800) {
        const bool loads = op & 0x10, literal = (op & 0xF) == 15;
        if (loads && next >> 12 == 15 && !literal && (op & 0x60) != 0x40) { /* a hint to preload */
            return timing_plain(TIMING_DATA, 1);
        }
        const bool by_register = !(op & 0x80) && !(next & 0x800) && !literal;
        return timing_access(loads, next >> 12, op & 0xF, by_register ? next & 0xF : TIMING_NONE);
    }
    if ((op & 0xFFD0) == 0xFB90) {
        return timing_plain(TIMING_DATA, 7);
    }
    if ((op & 0xFE00) == 0xEC00 || ((op & 0xFF00) == 0xEE00 && (next & 0x0E10) == 0x0A00)) {
        return timing_floating(op, next);
    }
    return timing_plain(TIMING_DATA, 1);
}

static inline timing_t timing_alone(uint16_t op, uint16_t next) {
    return timing_is_wide(op) ? timing_wide(op, next) : timing_narrow(op);
}

/* Of an instruction after `before`: a load, or a store by register, right after a load that it does not take its
 * address from, takes one cycle less. */
static inline timing_t timing_after(uint16_t op, uint16_t next, timing_t before) {
    timing_t found = timing_alone(op, next);
    const bool follows = found.kind == TIMING_LOAD || found.kind == TIMING_STORE_BY_REGISTER;
    if (before.kind == TIMING_LOAD && follows && found.base != before.loaded && found.offset != before.loaded) {
        found.cycles--;
    }
    return found;
}

#endif
