/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of QEMU's plugin interface, version 4, that the virtual PMU uses, declared
 * from its documentation (Debian ships no header for it), and the required part of GLib.
 * QEMU 9.2 and 10.0 have this version; the functions are resolved when QEMU loads the
 * plugin.
 */
#ifndef TOLL_QEMU_API_H
#define TOLL_QEMU_API_H

#include "../qemu_types.h"
#define QEMU_PLUGIN_VERSION 4

/* --- GLib --- */

typedef struct {
	uint8_t *data;
	unsigned int len;
} GByteArray;

typedef struct {
	char *data;
	unsigned int len;
} GArray;

GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length);

/* --- QEMU --- */

struct qemu_plugin_register;

typedef struct {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
} qemu_plugin_reg_descriptor;

/* Effect of a callback on the guest's registers. */
enum { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };

typedef void (*qemu_block_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*qemu_exec_cb)(unsigned int vcpu, void *data);
typedef void (*qemu_memory_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info,
			       uint64_t address, void *data);
typedef void (*qemu_vcpu_cb)(qemu_plugin_id_t id, unsigned int vcpu);
typedef void (*qemu_simple_cb)(qemu_plugin_id_t id);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_block_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, qemu_exec_cb cb,
					  int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_exec_cb cb,
					    int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_memory_cb cb,
				      int flags, int rw, void *data);
typedef void (*qemu_exit_cb)(qemu_plugin_id_t id, void *data);
/* QEMU ends. */
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_exit_cb cb, void *data);
/* All translated blocks are flushed. */
void qemu_plugin_register_flush_cb(qemu_plugin_id_t id, qemu_simple_cb cb);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block,
						 size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

enum {
	QEMU_PLUGIN_MEM_VALUE_U8,
	QEMU_PLUGIN_MEM_VALUE_U16,
	QEMU_PLUGIN_MEM_VALUE_U32,
	QEMU_PLUGIN_MEM_VALUE_U64,
	QEMU_PLUGIN_MEM_VALUE_U128,
};

typedef struct {
	int type;
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		struct {
			uint64_t low, high;
		} u128;
	} data;
} qemu_plugin_mem_value;

struct qemu_plugin_hwaddr;

/* What was loaded or stored. */
qemu_plugin_mem_value qemu_plugin_mem_get_value(qemu_plugin_meminfo_t info);
/* Where an access goes to; only in its callback. */
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *place);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
/* log2 of the access size in bytes. */
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);

/* GArray of qemu_plugin_reg_descriptor; only while a CPU is initialised. */
GArray *qemu_plugin_get_registers(void);
/* Appends the value; its length in bytes, or -1. */
int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to);
bool qemu_plugin_read_memory_vaddr(uint64_t address, GByteArray *to, size_t length);

#endif
