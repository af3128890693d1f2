/* A QEMU plugin (interface version 1) that carries labels through one inference on a Cortex-M, and compares what
 * it accesses with what its plan declares. Each byte of a register and of memory has a label: which inputs, stale
 * bytes or registers of the caller it may depend on. An instruction that branches, addresses or takes its time by
 * a labelled value is counted as dependent; where none is, every input runs the same instructions on the same
 * addresses. It refuses what its table does not know.
 *
 * The window: nn_init, when all of RAM is stale; then from the hint 0xBF70 to 0xBF80, nn_invoke's begin and end,
 * when the input's bytes are the input and registers are the caller's. Where the input streams in, nn_feed, too, of
 * a byte each time, which is what its caller stored last.
 *
 * Options: job=FILE, words of 32 bits: the facts; then counts, each with so many rows behind it, of zones (start,
 * bytes, rights: 1 to read, 2 to write, 4 holds constants), bytes of inputs (start, count, 0) and outputs (1) in the arena, steps,
 * what they declare (start, bytes, role) and instructions by address. out=FILE gets the findings.
 * pipeline/machine compiles it, writes the one and reads the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "qemu_plugin_v1.h"
#include "thumb_labels.h"

#define BEGIN_HINT 0xBF70
#define END_HINT 0xBF80
#define SPACE (1ull << 32)

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static const char *const names[FINDINGS] = {
    "branch", "arms", "address", "index", "predicated", "variable", "refused", /* dependences; then deviations */
    "outside", "between", "write", "read", "overwritten", "unwritten", "unread", "impure", "order", "constant"};
static const char *out_path;
static op_t *ops;
static uint32_t op_count;

static void executes(unsigned cpu, void *data) {
    (void)cpu;
    stepped(data);
}

static void accesses(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t place, void *data) {
    (void)cpu;
    accessed(data, (uint32_t)place, 1u << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info));
}

static int compared(const void *address, const void *op) {
    const uint32_t at = *(const uint32_t *)address, there = ((const op_t *)op)->row.at;
    return (at > there) - (at < there);
}

static void *made(size_t count, size_t bytes) {
    void *place = calloc(count + 1, bytes);
    if (place == NULL) {
        abort();
    }
    return place;
}

/* Lives as long as QEMU, which may run it at any time. */
static op_t *unknown(uint32_t address, bool wide) {
    op_t *op = made(1, sizeof *op);
    op->row = (row_t){.at = address, .size = wide ? 4 : 2, .kind = 'U', .owner = OTHER};
    return op;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    uint32_t at = (uint32_t)qemu_plugin_tb_vaddr(tb);
    (void)id;
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, n);
        uint16_t half;
        memcpy(&half, qemu_plugin_insn_data(instruction), sizeof half);
        op_t *op = half == BEGIN_HINT ? &begins : half == END_HINT ? &ends : bsearch(&at, ops, op_count, sizeof *ops, compared);
        if (op == NULL) {
            op = unknown(at, half >> 11 >= 0x1D);
        }
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, executes, QEMU_PLUGIN_CB_NO_REGS, op);
        if (op->row.kind == 'L' || op->row.kind == 'S' || op->row.kind == 'U') {
            qemu_plugin_register_vcpu_mem_cb(instruction, accesses, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             op);
        }
        at += op->row.size;
    }
}

static void print(FILE *out, const op_t *op) {
    for (int n = 0; n < FINDINGS; n++) {
        const finding_t *found = op->found + n;
        const bool depends = n < DEPENDENCES;
        if (found->count) {
            fprintf(out, "%s %s %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %u\n", depends ? "depends" : "deviates",
                    names[n], op->row.at, found->count, found->step, found->address, depends ? op->labels : 0u);
        }
    }
}

static void ended(qemu_plugin_id_t id, void *data) {
    FILE *out = fopen(out_path, "w");
    (void)id;
    (void)data;
    if (out == NULL) {
        return;
    }
    for (uint32_t n = 0; n < op_count; n++) {
        print(out, ops + n);
    }
    print(out, &begins);
    print(out, &ends);
    fprintf(out, "executed %" PRIu64 "\n", executed);
    fclose(out);
}

static ranges_t ranges(const uint32_t **words) {
    const uint32_t count = *(*words)++;
    const range_t *rows = (const range_t *)*words;
    *words += count * sizeof *rows / sizeof **words;
    return (ranges_t){rows, count};
}

static bool read_job(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END)) {
        return false;
    }
    const size_t bytes = (size_t)ftell(file);
    uint32_t *content = made(1, bytes);
    rewind(file);
    const bool whole = fread(content, 1, bytes, file) == bytes;
    fclose(file);
    const uint32_t *words = content;
    memcpy(&facts, words, sizeof facts);
    words += sizeof facts / sizeof *words;
    zones = ranges(&words);
    net_ends = ranges(&words);
    const ranges_t known = ranges(&words); /* a step is three words, too */
    steps = (const step_t *)known.rows;
    step_count = known.count;
    declared = ranges(&words);
    op_count = *words++;
    ops = made(op_count, sizeof *ops);
    for (uint32_t n = 0; n < op_count; n++, words += sizeof(row_t) / sizeof *words) {
        memcpy(&ops[n].row, words, sizeof(row_t));
    }
    return whole;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                           char **words) {
    bool whole = false;
    (void)info;
    for (int n = 0; n < count; n++) {
        if (strncmp(words[n], "job=", 4) == 0) {
            whole = read_job(words[n] + 4);
        } else if (strncmp(words[n], "out=", 4) == 0) {
            out_path = strdup(words[n] + 4);
        }
    }
    roles = made(facts.arena_bytes, 1);
    memory = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!whole || !out_path || memory == MAP_FAILED) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
