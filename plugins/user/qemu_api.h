/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of QEMU's plugin interface, version 1, that the simulator uses, declared from
 * its documentation (Debian 12 ships no header for it). QEMU 4.2 to 8.x have this
 * version; its functions are resolved when QEMU loads the plugin.
 */
#ifndef TOLL_QEMU_API_H
#define TOLL_QEMU_API_H

#include "../qemu_types.h"

/* Effect of a callback on the guest's registers: none. */
enum { QEMU_PLUGIN_CB_NO_REGS = 0 };

typedef void (*qemu_block_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*qemu_memory_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info,
			       uint64_t address, void *data);
typedef void (*qemu_vcpu_cb)(qemu_plugin_id_t id, unsigned int vcpu);
typedef void (*qemu_end_cb)(qemu_plugin_id_t id, void *data);
typedef void (*qemu_syscall_cb)(qemu_plugin_id_t id, unsigned int vcpu, int64_t number,
				uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
				uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
typedef void (*qemu_syscall_return_cb)(qemu_plugin_id_t id, unsigned int vcpu,
				       int64_t number, int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_block_cb cb);
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, qemu_syscall_cb cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id,
					      qemu_syscall_return_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_end_cb cb, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_memory_cb cb,
				      int flags, int rw, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block,
						 size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#endif
