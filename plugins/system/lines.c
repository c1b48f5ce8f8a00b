/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cache lines that more than one CPU writes, in the kernel of a whole emulated
 * system:
 *
 *     qemu-system-x86_64 -plugin libtoll_lines.so,out=DIR
 *
 * Each section of the guest (toll_lab_magic.h) writes DIR/NAME.lines, a name
 * and a number per line:
 *
 *     lines_shared		lines written by two or more CPUs
 *     lines_shared_stores	stores to these lines
 *     lines_moved		stores to a line last written by another CPU
 *     lines_moved_N		lines that were moved N times or more
 *
 * followed, after a #, by the lines that moved most: address, CPUs, stores, moves, and
 * the instruction that moved it last. Requires a host thread for each CPU, so that stores
 * interleave as they occur.
 *
 * Lines are identified by their kernel addresses; stores by programs are excluded.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 63
#define LONGEST_INSTRUCTION 15
#define SLOTS (1u << 23)
#define LOCKS 1024
#define SHOWN 20
/* The fixmap: each CPU maps its own APIC at the same address. */
#define FIXMAP 0xffffffffff000000ull

enum { BEGIN = 1, END = 2 };
/* A line; address 0: an empty slot. */
struct line {
	uint64_t address, cpus, stores, moves, by;
	unsigned int last;
};

static struct line *lines;
static pthread_mutex_t locks[LOCKS];
static pthread_mutex_t section_lock = PTHREAD_MUTEX_INITIALIZER;
static char section[NAME_MAX_LENGTH + 1];
static bool is_running, is_full;
static const char *out;

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "libtoll_lines: %s: %s\n", what, why);
}

/* --- counting --- */

static uint64_t hash(uint64_t address)
{
	return (address >> 6) * 0x9e3779b97f4a7c15ull >> 20;
}

/* The line's slot. A group of slots shares a lock, which must be held. */
static struct line *find(uint64_t address, uint64_t home)
{
	uint64_t first = home % SLOTS & ~(uint64_t)63;

	for (unsigned int i = 0; i < 64; i++) {
		struct line *line = &lines[first + (home + i) % 64];

		if (line->address == address || !line->address) {
			line->address = address;
			return line;
		}
	}
	return NULL;
}

static void on_store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *by)
{
	uint64_t line_address = address & ~63ull, home = hash(line_address);
	pthread_mutex_t *lock = &locks[home % SLOTS / 64 % LOCKS];
	struct line *line;

	(void)info;
	if (!is_running || !(address >> 63) || address >= FIXMAP)
		return;
	pthread_mutex_lock(lock);
	line = find(line_address, home);
	if (!line) {
		is_full = true;
	} else {
		if (line->cpus && line->last != index) {
			line->moves++;
			line->by = (uintptr_t)by;
		}
		line->cpus |= 1ull << index;
		line->last = index;
		line->stores++;
	}
	pthread_mutex_unlock(lock);
}

/* --- sections --- */

static int by_moves(const void *left, const void *right)
{
	const struct line *const *a = left, *const *b = right;

	return ((*a)->moves < (*b)->moves) - ((*a)->moves > (*b)->moves);
}

static void write_lines(FILE *file)
{
	struct line **shared = calloc(SLOTS, sizeof(*shared));
	uint64_t count = 0, stores = 0, moves = 0;

	for (unsigned int i = 0; shared && i < SLOTS; i++) {
		if (!(lines[i].cpus & (lines[i].cpus - 1)))
			continue;
		shared[count++] = &lines[i];
		stores += lines[i].stores;
		moves += lines[i].moves;
	}
	fprintf(file, "lines_shared %lu\nlines_shared_stores %lu\nlines_moved %lu\n", count, stores, moves);
	if (shared)
		qsort(shared, count, sizeof(*shared), by_moves);
	for (uint64_t least = 64; least <= 1 << 20; least *= 2) {
		uint64_t many = 0;

		while (many < count && shared[many]->moves >= least)
			many++;
		fprintf(file, "lines_moved_%lu %lu\n", least, many);
	}
	for (unsigned int i = 0; i < SHOWN && i < count; i++)
		fprintf(file, "# %#lx %#lx %lu %lu %#lx\n", shared[i]->address, shared[i]->cpus, shared[i]->stores,
			shared[i]->moves, shared[i]->by);
	free(shared);
}

static void end_section(void)
{
	char *path;
	FILE *file;

	is_running = false;
	if (asprintf(&path, "%s/%s.lines", out, section) < 0)
		return;
	/* Write no incomplete file. */
	file = is_full ? NULL : fopen(path, "w");
	if (file)
		write_lines(file);
	if (!file || fclose(file))
		complain(path, is_full ? "too many lines" : "cannot be written");
	free(path);
}

static void begin_section(unsigned int index)
{
	struct guest_cpu *cpu = &guest_cpus[index];
	uint64_t length = guest_register(cpu, RDX);
	char name[NAME_MAX_LENGTH + 1] = "";

	if (length > NAME_MAX_LENGTH ||
	    !guest_read_memory(cpu, guest_register(cpu, RSI), name, length)) {
		complain("the guest began a section", "its name is none");
		return;
	}
	memcpy(section, name, sizeof(section));
	memset(lines, 0, SLOTS * sizeof(*lines));
	is_full = false;
	is_running = true;
}

static void on_say(unsigned int index, void *data)
{
	uint64_t what = guest_register(&guest_cpus[index], RDI);

	(void)data;
	pthread_mutex_lock(&section_lock);
	if (what == BEGIN)
		begin_section(index);
	else if (what == END && is_running)
		end_section();
	pthread_mutex_unlock(&section_lock);
}

/* --- QEMU callbacks --- */

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);
		uint8_t code[LONGEST_INSTRUCTION];
		size_t length = qemu_plugin_insn_data(insn, code, sizeof(code));

		if (decode(code, length).what == DECODED_SAY)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_say, QEMU_PLUGIN_CB_R_REGS, NULL);
		if (at >> 63)
			qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W,
							 (void *)(uintptr_t)at);
	}
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	if (index >= GUEST_CPUS) {
		complain("CPU", "too many of them");
		exit(1);
	}
	guest_add_cpu(index);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	if (!info->system_emulation || argc != 1 || strncmp(argv[0], "out=", 4)) {
		complain("arguments", "expected out=DIR and system emulation");
		return -1;
	}
	/* Never freed. */
	out = strdup(argv[0] + 4);
	lines = calloc(SLOTS, sizeof(*lines));
	if (!out || !lines) {
		complain("beginning", "no memory");
		return -1;
	}
	for (unsigned int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	return 0;
}
