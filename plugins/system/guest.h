/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A virtual CPU of the guest as a plugin for QEMU sees it: its registers, its memory, and
 * which CPU is running.
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

/* CPUs that QEMU has initialised. */
extern struct guest_cpu guest_cpus[GUEST_CPUS];
extern unsigned int guest_cpu_count;
/* Whether one host thread runs all CPUs. Set before the first CPU. */
extern bool guest_has_one_thread;

/* `plugin` is the name in messages. A missing register ends QEMU. */
void guest_add_cpu(const char *plugin, unsigned int index);

/* Only for the running CPU, and registers only in callbacks that may read them. */
bool guest_read_memory(struct guest_cpu *cpu, uint64_t address, void *to, size_t length);
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
/* The kernel reports that it runs on a CPU. False if there is no such CPU. */
bool guest_learn_running(uint64_t index);

/* Copies callback data; it lives until QEMU flushes its translated blocks. */
void *guest_keep(const void *value, size_t size);
void guest_forget_kept(qemu_plugin_id_t id);

#endif
