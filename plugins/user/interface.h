/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the versions of QEMU's plugin interface. interface.c is compiled
 * once for each group of versions, into a library of its own; all else is the same code.
 *
 *	library			declares	versions of QEMU	interface
 *	libtoll_user.so		1		6.0 to 8.x		1
 *	libtoll_user-2.so	2		from 9.0		2 to 6
 *	libtoll_user-7.so	7		11.1			7
 *
 * A QEMU loads a plugin only if the version that it declares is in the QEMU's range: 0 to
 * 1, 2 to N, or only 7. Of the changes, these concern the simulator:
 *
 * - From version 3 on, qemu_plugin_insn_data copies the code instead of returning a
 *   pointer. This depends on the QEMU, not on the version that the plugin declares.
 * - From version 7 on, callbacks have the pointer given at their registration as last
 *   argument, and no longer the plugin's ID as first.
 */
#ifndef TOLL_INTERFACE_H
#define TOLL_INTERFACE_H

#include "qemu_api.h"

/* No instruction is longer; 15 in fact. */
#define LONGEST_INSN 16

/* Registers the callbacks below. */
void interface_register(qemu_plugin_id_t id, const qemu_info_t *info);

/*
 * Returns the code of an instruction, which may be in `buffer` (LONGEST_INSN bytes).
 * Valid until the end of on_block.
 */
const uint8_t *interface_code(const struct qemu_plugin_insn *insn, uint8_t *buffer);

/* The callbacks, in plugin.c. */
void on_block(struct qemu_plugin_tb *block);
void on_exit_vcpu(unsigned int vcpu);
void on_syscall(unsigned int vcpu, int64_t number, const uint64_t arguments[6]);
void on_syscall_return(unsigned int vcpu, int64_t number, int64_t result);
void on_end(void);

#endif
