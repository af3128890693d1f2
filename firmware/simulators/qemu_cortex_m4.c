/* A plugin for QEMU that counts what an inference on a Cortex-M4 takes time for. The firmware's port
 * marks its begin and end by two hints that do nothing (0xBF70, 0xBF80). A line for each inference:
 *
 *     instructions cycles taken unaligned instruction_misses data_misses
 *
 * cycles are those of cortex_m4_timing.h; taken are branches, calls and returns; unaligned are the
 * cycles that accesses across words add; misses are reads of flash that neither of its two caches holds. A cache has lines
 * of several reads, each of them there or not, and gives up the line unused for longest.
 *
 * Options: out=FILE flash_bytes=N read_log2=N line_log2=N instruction_lines=N data_lines=N.
 * pipeline/targets/qemu_cycles.py compiles it and makes cycles of the counts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cortex_m4_timing.h"
#include "qemu_plugin_v1.h"

#define BEGIN_HINT 0xBF70
#define END_HINT 0xBF80
#define MOST_LINES 64

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

typedef struct {
    uint64_t instructions, cycles, taken, unaligned, instruction_misses, data_misses;
} counts_t;

typedef struct {
    uint32_t tag, used, held; /* held: a bit for each read */
} line_t;

typedef struct {
    line_t lines[MOST_LINES];
    uint32_t count, clock;
} cache_t;

/* A block of instructions that QEMU translates at once. */
typedef struct {
    uint32_t start, end, instructions, cycles;
} block_t;

/* A hint, and how much of its block comes before it. */
typedef struct {
    const block_t *block;
    uint32_t instructions, cycles;
    bool begins;
} mark_t;

static struct {
    FILE *out;
    uint32_t flash_bytes, read_log2, line_log2;
} options = {NULL, 0, 3, 5};
static counts_t counts, begun;
static cache_t instruction_cache, data_cache;
static uint32_t expected; /* where execution goes on without a branch */

static bool misses(cache_t *cache, uint32_t address) {
    const uint32_t tag = address >> options.line_log2;
    const uint32_t reads = 1u << (options.line_log2 - options.read_log2);
    const uint32_t bit = 1u << (address >> options.read_log2 & (reads - 1));
    line_t *oldest = cache->lines;
    cache->clock++;
    for (line_t *line = cache->lines; line < cache->lines + cache->count; line++) {
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

static void executed(unsigned cpu, void *data) {
    const block_t *block = data;
    (void)cpu;
    counts.instructions += block->instructions;
    counts.cycles += block->cycles;
    counts.taken += block->start != expected;
    expected = block->end;
    const uint32_t read_bytes = 1u << options.read_log2;
    for (uint32_t at = block->start & -read_bytes; at < block->end; at += read_bytes) {
        counts.instruction_misses += misses(&instruction_cache, at);
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
        counts.unaligned += address & 1 ? bytes / 2 : (address & (bytes - 1)) != 0;
    }
    if (address < options.flash_bytes) {
        counts.data_misses += misses(&data_cache, address);
        const uint32_t last = address + bytes - 1;
        if (last >> options.read_log2 != address >> options.read_log2) {
            counts.data_misses += misses(&data_cache, last);
        }
    }
}

static void marked(unsigned cpu, void *data) {
    const mark_t *mark = data;
    counts_t now = counts; /* the whole block is in it already */
    (void)cpu;
    now.instructions -= mark->block->instructions - mark->instructions;
    now.cycles -= mark->block->cycles - mark->cycles;
    if (mark->begins) {
        begun = now;
        return;
    }
    fprintf(options.out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
            now.instructions - begun.instructions, now.cycles - begun.cycles,
            now.taken - begun.taken, now.unaligned - begun.unaligned,
            now.instruction_misses - begun.instruction_misses, now.data_misses - begun.data_misses);
}

/* Blocks and marks live as long as QEMU: it may run them at any time. */
static void *made(size_t bytes) {
    void *place = calloc(1, bytes);
    if (place == NULL) {
        abort();
    }
    return place;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    block_t *block = made(sizeof *block);
    timing_t before = timing_plain(TIMING_DATA, 0);
    (void)id;
    block->start = block->end = (uint32_t)qemu_plugin_tb_vaddr(tb);
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, n);
        uint16_t halves[2] = {0, 0};
        memcpy(halves, qemu_plugin_insn_data(instruction), sizeof halves[0]);
        const bool wide = timing_is_wide(halves[0]);
        memcpy(halves, qemu_plugin_insn_data(instruction), wide ? 4 : 2);
        before = timing_of(halves[0], halves[1], before);
        block->end += wide ? 4 : 2; /* QEMU's own size is wrong at the end of a page */
        block->instructions++;
        block->cycles += before.cycles;
        if (before.kind != TIMING_DATA) {
            qemu_plugin_register_vcpu_mem_cb(instruction, accessed, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, NULL);
        }
        if (halves[0] == BEGIN_HINT || halves[0] == END_HINT) {
            mark_t *mark = made(sizeof *mark);
            *mark = (mark_t){block, block->instructions, block->cycles, halves[0] == BEGIN_HINT};
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, QEMU_PLUGIN_CB_NO_REGS, mark);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    fclose(options.out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                           char **words) {
    (void)info;
    for (int n = 0; n < count; n++) {
        if (strncmp(words[n], "out=", 4) == 0) {
            options.out = fopen(words[n] + 4, "w");
        }
        (void)sscanf(words[n], "flash_bytes=%" SCNu32, &options.flash_bytes);
        (void)sscanf(words[n], "read_log2=%" SCNu32, &options.read_log2);
        (void)sscanf(words[n], "line_log2=%" SCNu32, &options.line_log2);
        (void)sscanf(words[n], "instruction_lines=%" SCNu32, &instruction_cache.count);
        (void)sscanf(words[n], "data_lines=%" SCNu32, &data_cache.count);
    }
    if (options.out == NULL || instruction_cache.count > MOST_LINES || data_cache.count > MOST_LINES) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
