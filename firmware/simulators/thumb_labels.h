/* How labels go through the instructions of a Cortex-M: qemu_labels.c. */
#ifndef THIMBLE_THUMB_LABELS_H
#define THIMBLE_THUMB_LABELS_H

#include "declared_steps.h"

#define ALWAYS 14u
#define NO_SPLIT 0xFFu

/* What flags a condition reads: eq ne hs lo mi pl vs vc hi ls ge lt gt le, always. The last bit of a condition's code
 * is its opposite's. */
static const uint8_t condition_flags[ALWAYS + 1] = {NZ,     NZ,     C,      C,      NZ,     NZ,     V, V,
                                                    NZ | C, NZ | C, NZ | V, NZ | V, NZ | V, NZ | V, 0};

/* Nobody sees here whether a predicated instruction does anything. Where its condition depends on no data, registers
 * have two labels until flags change, or an access shows which way it went: [1] where the code's last bit holds. */
static uint32_t registers[2][REGISTERS];
static uint32_t split = NO_SPLIT; /* the code without its last bit */
static uint8_t flags[FLAGS];
static bool running;
static uint32_t back, expected, given; /* given: what was stored last outside of the window */
static op_t *now;
static uint32_t nth, condition_label, address_label;
static uint64_t executed, met; /* met: when the branch was whose arms run, which depends on data */
static op_t *arms;
static uint32_t arms_label;

static uint8_t all(uint32_t label) { return (uint8_t)(label | label >> 8 | label >> 16 | label >> 24); }

static uint32_t everywhere(uint8_t label) { return label * 0x01010101u; }

static uint32_t through(uint32_t label, uint32_t lanes) {
    if (label == 0 || lanes == SAME_LANE) {
        return label;
    }
    if (lanes == EVERY_LANE) {
        return everywhere(all(label));
    }
    uint32_t found = 0;
    for (uint32_t n = 0; n < LANES * LANES; n++) {
        if (lanes >> n & 1) {
            found |= (label >> 8 * (n % LANES) & 0xFF) << 8 * (n / LANES);
        }
    }
    return found;
}

static void depends(op_t *op, int cause, uint32_t label) {
    odd(op, cause, 0);
    op->labels |= all(label);
}

/* A value that a byte not meant for the step is part of must reach nothing. */
static void used(op_t *op, uint32_t label) {
    if (all(label) & OVERWRITTEN) {
        odd(op, USES, 0);
    }
    if (all(label) & UNDECLARED) {
        odd(op, READS, 0);
    }
}

static uint32_t either(uint32_t number) { return registers[0][number] | registers[1][number]; }

static void set(uint32_t number, uint32_t label) { registers[0][number] = registers[1][number] = label; }

static void join(void) {
    for (uint32_t n = 0; n < REGISTERS && split != NO_SPLIT; n++) {
        set(n, either(n));
    }
    split = NO_SPLIT;
}

/* The condition that registers are split by turns out to be the one with this last bit. */
static void settle(uint32_t side) {
    memcpy(registers[!side], registers[side], sizeof registers[0]);
    split = NO_SPLIT;
}

static bool splits(const op_t *op) { return op->row.condition < ALWAYS && !condition_label; }

static void part(const op_t *op) {
    if (split != op->row.condition >> 1) {
        join();
        split = op->row.condition >> 1;
    }
}

static void enter_window(void) {
    join();
    for (uint32_t n = 0; n < REGISTERS; n++) {
        set(n, n < LR - 1 || n > PC ? everywhere(CALLER) : 0);
    }
    memset(flags, CALLER, sizeof flags);
    running = true;
}

static void begin(void) {
    for (const range_t *each = net_ends.rows; each < net_ends.rows + net_ends.count; each++) {
        if (!each->what) {
            memset(memory + facts.arena + each->start, INPUT, each->bytes);
        }
    }
    enter_window();
    now = NULL;
    back = 0;
    if (!invoked) {
        invoked = true;
        executed = 0;
        step = last = 0;
        entered = &begins;
        end_steps();
    }
}

/* nn_feed: where the byte is and that it is one does not depend on what it is. */
static void feed(void) {
    begin();
    for (uint32_t n = 0; n < 4; n++) {
        set(n, 0);
    }
    memory[given] = INPUT;
    back = expected;
}

static void end(void) {
    end_steps();
    entered = &ends;
    if (step != step_count || last != step_count) {
        odd(&ends, ORDER, 0);
    }
    if (!answers_depend()) { /* labels were lost on the way */
        odd(&ends, CONSTANT, facts.arena);
    }
    running = invoked = false;
}

static uint32_t reads(const op_t *op, uint32_t side) {
    uint32_t label = 0;
    for (uint32_t n = 0; n < op->row.source_count; n++) {
        label |= through(registers[side][op->row.sources[n].number], op->row.sources[n].lanes);
    }
    return label;
}

static uint32_t of_flags(uint32_t set) {
    uint8_t label = 0;
    for (; set; set &= set - 1) {
        label |= flags[__builtin_ctz(set)];
    }
    return everywhere(label);
}

static void label_flags(uint32_t set, uint8_t kept, uint8_t label) {
    for (; set; set &= set - 1) {
        uint8_t *flag = flags + __builtin_ctz(set);
        *flag = (*flag & kept) | label;
    }
}

static void set_flags(const op_t *op, uint8_t result) {
    label_flags(op->row.sets, op->row.condition < ALWAYS ? 0xFF : 0, result);
    if (op->row.sets == NZ) { /* C may stay as it is or get what a shift leaves out, V stays */
        for (uint32_t n = 0; n < op->row.source_count; n++) {
            result |= all(either(op->row.sources[n].number));
        }
        label_flags(C, 0xFF, result);
    }
    if (op->row.sets != GE) {
        join();
    }
}

static void computes(op_t *op) {
    const uint32_t more = condition_label | of_flags(op->row.flags);
    if (splits(op)) {
        part(op);
    }
    uint32_t result = 0;
    for (uint32_t side = 0; side < 2; side++) {
        if (splits(op) && side != (op->row.condition & 1)) {
            continue;
        }
        const uint32_t label = reads(op, side) | more;
        for (uint32_t m = op->row.writes; m; m &= m - 1) {
            uint32_t *written = registers[side] + __builtin_ctz(m);
            *written = condition_label ? *written | label : label;
        }
        result |= label;
    }
    if (op->row.variable && result) {
        depends(op, VARIABLE, result);
    }
    if (op->row.sets) {
        set_flags(op, all(result));
    }
}

/* Whichever way it goes: what any of the arms writes depends on what all read. */
static void part_ways(op_t *op, uint32_t label) {
    for (uint32_t m = op->row.arms_read & 0xFFFF; m; m &= m - 1) {
        label |= either((uint32_t)__builtin_ctz(m));
    }
    label |= op->row.arms_read >> 16 ? of_flags(NZ | C | V) : 0;
    arms = op;
    arms_label = everywhere(all(label));
    met = executed;
}

static void meet(void) {
    join();
    for (uint32_t m = arms->row.arms_write; m; m &= m - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(m);
        set(number, either(number) | arms_label);
    }
    label_flags(NZ | C | V, 0xFF, (uint8_t)arms_label);
    executed = met + arms->row.longest;
    arms = NULL;
}

static void branches(op_t *op) {
    const uint32_t label = reads(op, 0) | reads(op, 1) | condition_label;
    if (label) {
        used(op, label);
    }
    join();
    if (label && !arms) {
        depends(op, op->row.join ? ARMS : BRANCH, label);
        if (op->row.join) {
            part_ways(op, label);
        }
    }
    if (op->row.writes) {
        set(LR, 0);
    }
}

/* Addresses are judged at the access: what a predicate skips has none. */
static void addresses(op_t *op) {
    if (splits(op)) {
        part(op);
    }
    address_label = 0;
    for (uint32_t m = op->row.addresses; m; m &= m - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(m);
        address_label |= splits(op) ? registers[op->row.condition & 1][number] : either(number);
    }
    if (condition_label) {
        depends(op, PREDICATED, condition_label);
    }
    for (uint32_t m = op->row.writes; m; m &= m - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(m);
        set(number, either(number) | everywhere(all(address_label)) | condition_label);
    }
    for (uint32_t n = 0; condition_label && op->row.kind == 'L' && n < op->row.count; n++) {
        set(op->row.list[n], either(op->row.list[n]) | condition_label);
    }
}

static void stepped(op_t *op) {
    if (op->row.kind == 'b' || op->row.kind == 'e') {
        op->row.kind == 'b' ? begin() : end();
        return;
    }
    if (running && op->row.at == back) { /* nn_init or nn_feed has returned */
        running = false;
    }
    if (!running && op->row.at == facts.init) {
        for (uint32_t n = 0; n < zones.count; n++) {
            if (zones.rows[n].what & 2) {
                memset(memory + zones.rows[n].start, STALE, zones.rows[n].bytes);
            }
        }
        enter_window();
        invoked = false;
        back = expected;
    } else if (!running && op->row.at == facts.feed) {
        feed();
    }
    expected = op->row.at + op->row.size;
    if (!running) {
        return;
    }
    if (arms && op->row.at == arms->row.join) {
        meet();
    }
    executed++;
    if (invoked && called && op->row.owner == CALLS) {
        return_from_call();
    } else if (invoked && !called && op->row.enters) {
        begin_step(op);
    }
    if (now && (now->row.kind == 'L' || now->row.kind == 'S') && splits(now) && nth == 0) {
        settle(!(now->row.condition & 1)); /* it was skipped */
    }
    now = op;
    nth = 0;
    condition_label = of_flags(condition_flags[op->row.condition]);
    switch (op->row.kind) {
    case 'D':
        computes(op);
        break;
    case 'B':
        branches(op);
        break;
    case 'L':
    case 'S':
        addresses(op);
        break;
    default:
        depends(op, REFUSED, 0);
    }
}

static bool inside(uint32_t address, uint32_t bytes, uint32_t rights) {
    for (uint32_t n = 0; n < zones.count; n++) {
        const range_t *zone = zones.rows + n;
        if ((zone->what & rights) && address - zone->start < zone->bytes &&
            bytes <= zone->bytes - (address - zone->start)) {
            return true;
        }
    }
    return false;
}

/* A table that is read at a byte: for any byte that is near what is read now, in memory for constants. */
static bool indexed(const op_t *op, uint32_t address, uint32_t bytes) {
    const uint32_t reach = 255 * (op->row.scale + 1); /* index and base may both be known but for a byte */
    return op->row.kind == 'L' && (address_label & ~0xFFu) == 0 && address >= reach &&
           inside(address - reach, 2 * reach + bytes, 4);
}

static void stores(op_t *op, uint32_t address, uint32_t bytes, uint32_t value) {
    const bool arena = address - facts.arena < facts.arena_bytes;
    for (uint32_t n = 0; n < bytes; n++) {
        uint8_t label = (uint8_t)(value >> 8 * n);
        conforms(op, address + n, true);
        if (arena) {
            used(op, label);
            label &= (uint8_t)~UNMEANT;
        }
        memory[address + n] = label;
    }
}

static void loads(op_t *op, uint32_t address, uint32_t bytes, uint32_t number) {
    uint32_t label = 0;
    for (uint32_t n = 0; n < bytes; n++) {
        label |= (memory[address + n] | conforms(op, address + n, false)) << 8 * n;
    }
    if (op->row.extends) {
        for (uint32_t n = bytes; n < LANES; n++) {
            label |= (label >> 8 * (bytes - 1) & 0xFF) << 8 * n;
        }
    }
    label |= everywhere(all(address_label)) | condition_label;
    if (number == PC) {
        if (label) {
            depends(op, BRANCH, label);
        }
    } else {
        set(number, label);
    }
}

static void accessed(op_t *op, uint32_t address, uint32_t bytes, bool store) {
    if (!running) {
        given = address;
        if (store && facts.feed) {
            memset(memory + address, STALE, bytes);
        }
        return;
    }
    if (now != op || store != (op->row.kind == 'S') || nth >= op->row.count) {
        depends(op, REFUSED, 0);
        return;
    }
    if (nth == 0 && splits(op)) {
        settle(op->row.condition & 1);
    }
    if (nth == 0 && address_label) {
        used(op, address_label);
        depends(op, indexed(op, address, bytes) ? INDEX : ADDRESS, address_label);
    }
    if (!inside(address, bytes, store ? 2 : 1)) {
        odd(op, OUTSIDE, address);
    }
    const uint32_t each = bytes > LANES ? LANES : bytes;
    for (uint32_t at = address; at < address + bytes && nth < op->row.count; at += each) {
        const uint32_t number = op->row.list[nth++];
        if (store) {
            stores(op, at, each, either(number) | everywhere(all(address_label)) | condition_label);
        } else {
            loads(op, at, each, number);
        }
    }
}
#endif
