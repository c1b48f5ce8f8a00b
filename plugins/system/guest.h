/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What plugins for whole systems have in common: their options, a virtual CPU's registers and
 * memory, which CPU is running, and the instructions that the lab knows.
 */
#ifndef TOLL_GUEST_H
#define TOLL_GUEST_H

#include "decode.h"
#include "qemu_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUEST_CPUS = 64 };

/* The first 16 are numbered as in instructions. */
enum { RDX = 2, RSP = 4, RSI = 6, RDI, GS_BASE = 16, KERNEL_GS_BASE, CR3, CR4, REGISTERS };

struct guest_cpu {
	unsigned int index;
	struct qemu_plugin_register *registers[REGISTERS];
	GByteArray *buffer;
	/* Address of the kernel's per-CPU data; 0: not reported yet. */
	uint64_t own_data;
};

/* Options that all have: out=DIR, one_thread=on, direct_map=ADDRESS. */
struct guest_options {
	const char *out;
	/* Whether one host thread runs all CPUs. */
	bool has_one_thread;
	/* Start of the kernel's direct map of physical memory. */
	uint64_t direct_map;
};

extern struct guest_options guest_options;
/* CPUs that QEMU has initialised. */
extern struct guest_cpu guest_cpus[GUEST_CPUS];
extern unsigned int guest_cpu_count;

/*
 * Reads the options; those of the plugin itself by `set`, which returns false for what it does
 * not know. False after a message that begins with `plugin`.
 */
bool guest_read_options(const char *plugin, const qemu_info_t *info, int argc, char **argv,
			bool (*set)(const char *name, const char *value));
bool guest_number(const char *text, uint64_t *value);
void guest_complain(const char *what, const char *detail);

/* A missing register ends QEMU. */
void guest_add_cpu(unsigned int index);

/* Only for the running CPU, and registers only in callbacks that may read them. */
bool guest_read_memory(struct guest_cpu *cpu, uint64_t address, void *to, size_t length);
bool guest_read_physical(struct guest_cpu *cpu, uint64_t physical, void *to, size_t length);
uint64_t guest_register(struct guest_cpu *cpu, uint8_t number);
/* The address of an instruction's operand; `next` is that of the next instruction. */
uint64_t guest_address_of(struct guest_cpu *cpu, const struct operand *operand, uint64_t next);

/*
 * If one host thread runs all CPUs, QEMU 10 passes to callbacks the CPU that translated the
 * code, although other CPUs run it too. In this case guest_find_running() determines the
 * running CPU before each block, by a value that is unique to each CPU.
 */
unsigned int guest_running(unsigned int index);
void guest_find_running(unsigned int index);
/* The kernel reports that it runs on a CPU. True the first time. */
bool guest_learn_running(uint64_t index);

/* An instruction that invalidates; `next` is the address of the following one. */
struct flushing {
	struct instruction instruction;
	uint64_t next;
};

struct guest_handlers {
	qemu_exec_cb on_say;	  /* a message; data: `said` of guest_watch() */
	qemu_exec_cb on_keep;	  /* the next write of CR3 keeps translations */
	qemu_exec_cb on_flushing; /* data: a struct flushing */
};

/* Calls a handler where the instruction is one that the lab knows. */
void guest_watch(struct qemu_plugin_insn *insn, const struct guest_handlers *handlers, void *said);

/* Copies callback data; it lives until QEMU flushes its translated blocks. */
void *guest_keep(const void *value, size_t size);
void guest_forget_kept(qemu_plugin_id_t id);

#endif
