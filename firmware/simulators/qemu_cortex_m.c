/* A plugin for QEMU that counts what an inference on a Cortex-M takes time for. The firmware's port marks
 * nn_invoke's begin and end by two hints that do nothing (0xBF70, 0xBF80). A line for each inference:
 *
 *     instructions cycles paired taken unaligned jump_misses next_misses data_misses rom_misses ram_misses
 *
 * cycles are those of the core's own header (-DTIMING); paired are instructions issued together with
 * another, which have no cycles; taken are branches, calls and returns; unaligned are the cycles that
 * accesses across words add; misses are reads that no cache holds: of flash for an instruction where
 * a branch went, for one that follows, and for data; rom and ram: of memory outside of the chip. A cache has
 * lines of several reads, each of them there or not, in sets of which each gives up the line unused for
 * longest. Without lines every read is a miss. After these, in the same line, the same ten for each function
 * of the file functions=FILE, a line each: its start and its end in hexadecimal, ascending, and 1 where its calls
 * are counted. All that comes twice: of nn_invoke, and of the whole inference, which the end of the one before opens,
 * or the call of the function at `init`; what functions at `feed` and `listen` do, until they return, belongs to it, too.
 *
 * Each call that is counted is a line of calls=FILE: the number of the function that is called, then the ten with
 * what that calls in turn, but not what runs between two more hints (0xBF90, 0xBFA0), by which a simulated card's
 * interrupt begins and ends. A line with nothing ends an inference.
 *
 * Options, numbers: init feed listen flash_start flash_bytes rom_start ram_start outside_bytes read_log2 line_log2
 * instruction_lines instruction_ways data_lines data_ways unified; out=FILE, functions=FILE, calls=FILE.
 * pipeline/targets/qemu_cycles.py compiles it and makes cycles of the counts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin_v1.h"
#include TIMING

#define BEGIN_HINT 0xBF70
#define END_HINT 0xBF80
#define HALT_HINT 0xBF90
#define RESUME_HINT 0xBFA0
#define MOST_LINES 2048
#define MOST_FUNCTIONS 4096

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum {
    INSTRUCTIONS, CYCLES, PAIRED, TAKEN, UNALIGNED,
    JUMP_MISSES, NEXT_MISSES, DATA_MISSES, ROM_MISSES, RAM_MISSES, KINDS
};

typedef struct {
    uint64_t of[KINDS];
} counts_t;

typedef struct {
    uint32_t tag, used, held; /* held: a bit for each read */
} line_t;

typedef struct {
    line_t lines[MOST_LINES];
    uint32_t count, ways, clock; /* ways: lines of a set */
} cache_t;

/* A block of instructions that QEMU translates at once; function: the number of the one it is in. */
typedef struct {
    uint32_t start, end, function;
    counts_t counts;
} block_t;

typedef struct {
    uint32_t start, end, calls;
    counts_t before, invoked; /* in nn_init and nn_feed, and in nn_invoke, of this inference */
} function_t;

/* A hint, and how much of its block comes before it. */
typedef struct {
    const block_t *block;
    counts_t before;
    uint16_t hint;
} mark_t;

static struct {
    FILE *out, *calls;
    uint32_t flash_start, flash_bytes, rom_start, ram_start, outside_bytes;
    uint32_t read_log2, line_log2, unified, init, feed, listen;
} options = {.read_log2 = 3, .line_log2 = 5};
static counts_t counts, since; /* all; when the function that runs was entered */
static uint32_t back; /* where the call that is being counted returns to; 0: there is none */
static bool invoking;
static function_t functions[MOST_FUNCTIONS + 1]; /* the one behind the last: none of them */
static uint32_t function_count, running;
static counts_t entered, halted; /* when the call that runs began, less what halted it; when it was halted */
static uint32_t callee; /* of that call */
static cache_t instruction_cache, data_cache;
static uint32_t expected; /* where execution goes on without a branch */

static bool misses(cache_t *cache, uint32_t address) {
    const uint32_t tag = address >> options.line_log2;
    const uint32_t reads = 1u << (options.line_log2 - options.read_log2);
    const uint32_t bit = 1u << (address >> options.read_log2 & (reads - 1));
    if (cache->count == 0) {
        return true;
    }
    line_t *set = cache->lines + tag % (cache->count / cache->ways) * cache->ways, *oldest = set;
    cache->clock++;
    for (line_t *line = set; line < set + cache->ways; line++) {
        if (line->held && line->tag == tag) {
            const bool missing = !(line->held & bit);
            line->held |= bit;
            line->used = cache->clock;
            return missing;
        }
        if (line->used < oldest->used) {
            oldest = line;
        }
    }
    *oldest = (line_t){tag, cache->clock, bit};
    return true;
}

static counts_t apart(const counts_t *after, const counts_t *before) {
    counts_t found;
    for (int kind = 0; kind < KINDS; kind++) {
        found.of[kind] = after->of[kind] - before->of[kind];
    }
    return found;
}

static void add(counts_t *sum, const counts_t *more) {
    for (int kind = 0; kind < KINDS; kind++) {
        sum->of[kind] += more->of[kind];
    }
}

/* All that was counted since then is the running function's, if it is of the inference. */
static void leave(const counts_t *now) {
    if (back || invoking) {
        const counts_t own = apart(now, &since);
        add(invoking ? &functions[running].invoked : &functions[running].before, &own);
    }
    since = *now;
}

static void opened(void) {
    for (uint32_t n = 0; n <= function_count; n++) {
        functions[n].before = functions[n].invoked = (counts_t){0};
    }
}

/* Before the block that begins at `start`: whether a call that counts begins or ends there. */
static void called(uint32_t start) {
    if (start == back) {
        leave(&counts);
        back = 0;
    } else if (!back && !invoking && (start == options.init || start == options.feed || start == options.listen)) {
        if (start == options.init) {
            opened();
        }
        leave(&counts);
        back = expected;
    }
}

static void print(FILE *file, const counts_t *counts) {
    for (int kind = 0; kind < KINDS; kind++) {
        fprintf(file, "%" PRIu64 " ", counts->of[kind]);
    }
}

/* Print what functions took in nn_invoke: all together, then each. */
static void print_invoked(void) {
    counts_t all = {0};
    for (uint32_t n = 0; n <= function_count; n++) {
        add(&all, &functions[n].invoked);
    }
    print(options.out, &all);
    for (uint32_t n = 0; n < function_count; n++) {
        print(options.out, &functions[n].invoked);
    }
}

/* Calls begin and end where what calls is left and entered. */
static void enter(uint32_t function) {
    if (functions[running].calls) {
        callee = function;
        entered = counts;
    } else if (functions[function].calls) {
        const counts_t own = apart(&counts, &entered);
        fprintf(options.calls, "%" PRIu32 " ", callee);
        print(options.calls, &own);
        fputc('\n', options.calls);
    }
    running = function;
}

static void executed(unsigned cpu, void *data) {
    const block_t *block = data;
    (void)cpu;
    called(block->start);
    if (block->function != running) {
        leave(&counts);
        enter(block->function);
    }
    add(&counts, &block->counts);
    bool jumped = block->start != expected;
    counts.of[TAKEN] += jumped;
    expected = block->end;
    const uint32_t read_bytes = 1u << options.read_log2;
    for (uint32_t at = block->start & -read_bytes; at < block->end; at += read_bytes) {
        const bool missing = misses(&instruction_cache, at);
        counts.of[jumped ? JUMP_MISSES : NEXT_MISSES] += missing;
        jumped = false;
    }
}

static void accessed(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t place, void *data) {
    const uint32_t address = (uint32_t)place, bytes = 1u << qemu_plugin_mem_size_shift(info);
    (void)cpu;
    (void)data;
    if (qemu_plugin_mem_is_store(info)) {
        return;
    }
    if (bytes == 2 || bytes == 4) {
        counts.of[UNALIGNED] += address & 1 ? bytes / 2 : (address & (bytes - 1)) != 0;
    }
    const int kind = address - options.flash_start < options.flash_bytes  ? DATA_MISSES
                     : address - options.rom_start < options.outside_bytes ? ROM_MISSES
                     : address - options.ram_start < options.outside_bytes ? RAM_MISSES
                                                                           : KINDS;
    if (kind < KINDS) {
        cache_t *cache = options.unified ? &instruction_cache : &data_cache;
        counts.of[kind] += misses(cache, address);
        const uint32_t last = address + bytes - 1;
        if (last >> options.read_log2 != address >> options.read_log2) {
            counts.of[kind] += misses(cache, last);
        }
    }
}

static void marked(unsigned cpu, void *data) {
    const mark_t *mark = data;
    const counts_t after = apart(&mark->block->counts, &mark->before);
    const counts_t now = apart(&counts, &after); /* the whole block is in it already */
    (void)cpu;
    if (mark->hint == HALT_HINT) {
        halted = now;
        return;
    }
    if (mark->hint == RESUME_HINT) { /* as if the call had begun later by what was between them */
        halted = apart(&halted, &entered);
        entered = apart(&now, &halted);
        return;
    }
    if (mark->hint == BEGIN_HINT) {
        since = now;
        invoking = true;
        return;
    }
    leave(&now);
    invoking = false;
    print_invoked();
    for (uint32_t n = 0; n <= function_count; n++) {
        add(&functions[n].invoked, &functions[n].before);
    }
    print_invoked();
    opened(); /* a network with states is not begun anew */
    fputc('\n', options.out);
    if (options.calls) {
        fputc('\n', options.calls);
    }
}

/* Blocks and marks live as long as QEMU: it may run them at any time. */
static void *made(size_t bytes) {
    void *place = calloc(1, bytes);
    if (place == NULL) {
        abort();
    }
    return place;
}

/* The number of the function at an address; that of none where there is none. */
static uint32_t function_at(uint32_t address) {
    uint32_t low = 0, high = function_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (functions[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < function_count && functions[low].start <= address ? low : function_count;
}

static bool read_functions(const char *path) {
    FILE *file = fopen(path, "r");
    while (file && function_count < MOST_FUNCTIONS &&
           fscanf(file, "%" SCNx32 " %" SCNx32 " %" SCNu32, &functions[function_count].start,
                  &functions[function_count].end, &functions[function_count].calls) == 3) {
        function_count++;
    }
    running = callee = function_count;
    return file && fclose(file) == 0;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    block_t *block = made(sizeof *block);
    timing_t before = timing_plain(TIMING_DATA, 0);
    (void)id;
    block->start = block->end = (uint32_t)qemu_plugin_tb_vaddr(tb);
    block->function = function_at(block->start);
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, n);
        uint16_t halves[2] = {0, 0};
        memcpy(halves, qemu_plugin_insn_data(instruction), sizeof halves[0]);
        const bool wide = timing_is_wide(halves[0]);
        memcpy(halves, qemu_plugin_insn_data(instruction), wide ? 4 : 2);
        before = timing_of(halves[0], halves[1], before);
        block->end += wide ? 4 : 2; /* QEMU's own size is wrong at the end of a page */
        block->counts.of[INSTRUCTIONS]++;
        block->counts.of[CYCLES] += before.pairs ? 0 : before.cycles;
        block->counts.of[PAIRED] += before.pairs;
        if (before.kind != TIMING_DATA) {
            qemu_plugin_register_vcpu_mem_cb(instruction, accessed, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, NULL);
        }
        if (halves[0] == BEGIN_HINT || halves[0] == END_HINT || halves[0] == HALT_HINT ||
            halves[0] == RESUME_HINT) {
            mark_t *mark = made(sizeof *mark);
            *mark = (mark_t){block, block->counts, halves[0]};
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, QEMU_PLUGIN_CB_NO_REGS, mark);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    fclose(options.out);
    if (options.calls) {
        fclose(options.calls);
    }
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                           char **words) {
    const struct {
        const char *name;
        uint32_t *value;
    } known[] = {
        {"init", &options.init},
        {"feed", &options.feed},
        {"listen", &options.listen},
        {"flash_start", &options.flash_start},
        {"flash_bytes", &options.flash_bytes},
        {"rom_start", &options.rom_start},
        {"ram_start", &options.ram_start},
        {"outside_bytes", &options.outside_bytes},
        {"read_log2", &options.read_log2},
        {"line_log2", &options.line_log2},
        {"unified", &options.unified},
        {"instruction_lines", &instruction_cache.count},
        {"instruction_ways", &instruction_cache.ways},
        {"data_lines", &data_cache.count},
        {"data_ways", &data_cache.ways},
    };
    (void)info;
    for (int n = 0; n < count; n++) {
        const char *equals = strchr(words[n], '=');
        if (strncmp(words[n], "out=", 4) == 0) {
            options.out = fopen(words[n] + 4, "w");
        }
        if (strncmp(words[n], "calls=", 6) == 0) {
            options.calls = fopen(words[n] + 6, "w");
        }
        if (strncmp(words[n], "functions=", 10) == 0 && !read_functions(words[n] + 10)) {
            return -1;
        }
        for (size_t k = 0; equals && k < sizeof known / sizeof known[0]; k++) {
            if (strncmp(words[n], known[k].name, strlen(known[k].name)) == 0 &&
                strlen(known[k].name) == (size_t)(equals - words[n])) {
                *known[k].value = (uint32_t)strtoul(equals + 1, NULL, 0);
            }
        }
    }
    for (cache_t *cache = &instruction_cache; cache; cache = cache == &data_cache ? NULL : &data_cache) {
        if (cache->ways == 0) { /* any line anywhere */
            cache->ways = cache->count;
        }
        if (cache->count > MOST_LINES || (cache->count && cache->count % cache->ways)) {
            return -1;
        }
    }
    if (options.out == NULL) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
