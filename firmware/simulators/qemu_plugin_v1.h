/* What the cycle model uses of QEMU's plugin interface, version 1 (QEMU 4.2 to 8; its documentation,
 * devel/tcg-plugins): the distributions package no header for it. */
#ifndef QEMU_PLUGIN_V1_H
#define QEMU_PLUGIN_V1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))
#define QEMU_PLUGIN_VERSION 1

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_plugin_translate_t)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*qemu_plugin_execute_t)(unsigned cpu, void *data);
typedef void (*qemu_plugin_access_t)(unsigned cpu, qemu_plugin_meminfo_t, uint64_t address, void *data);
typedef void (*qemu_plugin_exit_t)(qemu_plugin_id_t, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_translate_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, qemu_plugin_execute_t,
                                          enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_execute_t,
                                            enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_plugin_access_t,
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_exit_t, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t at);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);

#endif
