/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of QEMU's plugin interface that the simulator uses and that is the same in
 * versions 1 to 7, declared from its documentation (Debian 12 ships no header for it).
 * The functions are resolved when QEMU loads the plugin. For the rest see interface.h.
 */
#ifndef TOLL_QEMU_API_H
#define TOLL_QEMU_API_H

#include "../qemu_types.h"

/* Effect of a callback on the guest's registers: none. */
enum { QEMU_PLUGIN_CB_NO_REGS = 0 };

typedef void (*qemu_memory_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info,
			       uint64_t address, void *data);

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_memory_cb cb,
				      int flags, int rw, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block,
						 size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);

#endif
