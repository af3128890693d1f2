/* What the steps of a plan may access, and what they do: qemu_labels.c. */
#ifndef THIMBLE_DECLARED_STEPS_H
#define THIMBLE_DECLARED_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LANES 4
#define EVERY_LANE 0xFFFFu
#define SAME_LANE 0x8421u
#define REGISTERS 48 /* those of single precision from 16 on */
#define MOST_LISTED 16
#define LR 14
#define PC 15
#define OTHER 0xFFFFu  /* owner of what neither is a layer's nor calls one */
#define CALLS 0xFFFEu  /* of what calls layers; of a step: it has no function of its own */

enum { INPUT = 1, STALE = 2, CALLER = 4, OVERWRITTEN = 8, UNDECLARED = 16 };
#define UNMEANT (OVERWRITTEN | UNDECLARED) /* for the step that reads it: a word may have such bytes that reach nothing */
enum { IN = 1, OUT = 2, SCRATCH = 4, WROTE = 8, READ = 16 }; /* of a byte of the arena, in a step */
enum { NZ = 1, C = 2, V = 4, GE = 8, FLAGS = 4 }; /* bits of sets of flags; logic sets NZ, and adds to C */
enum { BRANCH, ARMS, ADDRESS, INDEX, PREDICATED, VARIABLE, REFUSED, DEPENDENCES };
enum { OUTSIDE = DEPENDENCES, BETWEEN, WRITE, READS, USES, UNWRITTEN, UNREAD, IMPURE, ORDER, CONSTANT, FINDINGS };

/* Words of the job's file, as pipeline/machine/job.py writes them. Bit 4 i + j of `lanes`: byte i of the result
 * depends on byte j of the register. */
typedef struct {
    uint32_t start, bytes, what;
} range_t;

typedef struct {
    uint32_t owner, first, count; /* of the ranges */
} step_t;

typedef struct {
    uint32_t at, size, kind, condition /* its code */, sets, flags, variable, extends, writes, addresses, scale, owner, enters;
    struct {
        uint32_t number, lanes;
    } sources[4];
    uint32_t source_count, count, list[MOST_LISTED]; /* loaded or stored, in order */
    uint32_t join, longest, arms_read, arms_write; /* of a branch whose arms meet; 0: they may not */
} row_t;

typedef struct {
    uint64_t count;
    uint32_t step, address; /* of the first */
} finding_t;

typedef struct {
    row_t row;
    uint8_t labels; /* that it depends on */
    finding_t found[FINDINGS];
} op_t;

typedef struct {
    const range_t *rows;
    uint32_t count;
} ranges_t;

typedef struct {
    uint32_t init, feed, arena, arena_bytes; /* feed: 0, or where nn_feed begins, which computes */
} facts_t;

static facts_t facts;
static ranges_t zones, net_ends /* inputs and outputs */, declared;
static const step_t *steps;
static uint32_t step_count;
static op_t begins = {.row = {.kind = 'b'}}, ends = {.row = {.kind = 'e'}};

static uint8_t *memory; /* a label for each byte of 4 GiB: pages come as they are written */
static uint8_t *roles; /* of the arena's bytes */
static bool invoked, called; /* nn_invoke runs; and in it a function of a layer */
static uint32_t step, last; /* the step that runs, and one past those that run with it */
static op_t *entered;

static void odd(op_t *op, int what, uint32_t address) {
    if (op->found[what].count++ == 0) {
        op->found[what].step = step;
        op->found[what].address = address;
    }
}

/* Every byte k of the arena that a step declares, with its range; some more than once. */
#define EACH_BYTE(step) \
    for (const range_t *range = declared.rows + (step)->first, *end = range + (step)->count; range < end; range++) \
        for (uint32_t k = range->start; k < range->start + range->bytes && k < facts.arena_bytes; k++)

/* Roles of a step's bytes; what scratch holds before it means nothing. */
static void open_step(const step_t *opened) {
    EACH_BYTE(opened) {
        roles[k] |= (uint8_t)range->what;
        if (range->what == SCRATCH) {
            memory[facts.arena + k] |= STALE;
        }
    }
}

/* What a step left undone. Code of several in their caller may keep in a register what one of them made for the next. */
static void compare(const step_t *ended) {
    const uint8_t known = last - step > 1 ? READ | OUT : READ;
    EACH_BYTE(ended) {
        const uint32_t address = facts.arena + k;
        if (range->what & OUT && !(roles[k] & WROTE)) {
            odd(entered, UNWRITTEN, address);
        }
        if (range->what & OUT && memory[address] & ~INPUT) {
            odd(entered, IMPURE, address);
            memory[address] &= INPUT; /* it is said once */
        }
        if (range->what == IN && !(roles[k] & known)) {
            odd(entered, UNREAD, address);
        }
    }
}

/* Some byte of an output carries the input's label. */
static bool answers_depend(void) {
    for (const range_t *each = net_ends.rows; each < net_ends.rows + net_ends.count; each++) {
        if (each->what && memchr(memory + facts.arena + each->start, INPUT, each->bytes)) {
            return true;
        }
    }
    return false;
}

/* The steps that run end, together, for they may share bytes; those without a function of their own that follow begin, inside their caller. */
static void end_steps(void) {
    for (uint32_t n = step; n < last; n++) {
        compare(steps + n);
    }
    for (uint32_t n = step; n < last; n++) {
        EACH_BYTE(steps + n) {
            roles[k] = 0;
        }
    }
    called = false;
    for (step = last; last < step_count && steps[last].owner == CALLS; last++) {
        open_step(steps + last);
    }
}

static bool unfinished(void) {
    if (step < last) {
        EACH_BYTE(steps + step) {
            if (range->what & OUT && !(roles[k] & WROTE)) {
                return true;
            }
        }
    }
    return false;
}

/* A step may be several calls, such as one for each row: it ends when all of its output is written. */
static void return_from_call(void) {
    if (unfinished()) {
        called = false;
    } else {
        end_steps();
    }
}

static void begin_step(op_t *op) {
    const bool goes_on = step < last && steps[step].owner == op->row.owner && unfinished();
    if (step < last && !goes_on) { /* those that ran inside the caller */
        end_steps();
    }
    called = true;
    entered = op;
    if (goes_on) {
        return;
    }
    if (step >= step_count || steps[step].owner != op->row.owner) {
        odd(op, ORDER, 0);
        last = step;
        return;
    }
    open_step(steps + step);
    last = step + 1;
}

static uint32_t conforms(op_t *op, uint32_t address, bool store) {
    const uint32_t place = address - facts.arena;
    if (place >= facts.arena_bytes || !invoked) {
        return 0;
    }
    uint8_t *role = roles + place;
    const uint8_t able = store ? OUT | SCRATCH : IN | SCRATCH | WROTE;
    if (!called && !(*role & able)) { /* a step whose function became part of its caller begins with it */
        if (step < last && !unfinished()) {
            end_steps();
        }
        if (step == last && step < step_count) {
            open_step(steps + last++);
        }
    }
    if (step == last) {
        odd(op, BETWEEN, address);
    } else if (store && !(*role & able)) {
        odd(op, WRITE, address);
    }
    if (store) {
        *role |= *role ? WROTE : 0;
        return 0;
    }
    if (!(*role & able)) {
        return UNDECLARED;
    }
    *role |= *role ? READ : 0;
    return (*role & (IN | SCRATCH | WROTE)) == (IN | WROTE) ? OVERWRITTEN : 0;
}
#endif
