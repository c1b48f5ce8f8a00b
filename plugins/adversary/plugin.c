// SPDX-License-Identifier: GPL-2.0-only
/*
 * The adversarial TLB (world.h) as a plugin for QEMU:
 *
 *     qemu-system-x86_64 -plugin libtoll_adversary.so,out=DIR[,one_thread=on][,levels=5]
 *
 * Use one_thread=on if one host thread runs several CPUs (icount). The kernel must have been built
 * with the lab-only seams, and run without KASLR and with toll_lab_frames; with five levels of page
 * tables, direct_map=ADDRESS is needed too.
 *
 * Checking starts with the guest's first section; DIR/adversary.json is written at the end of
 * each section. The file has counts and findings, one for each cause, with the callers of what
 * unmapped, freed and took. Those are return addresses found on the stack, so that an old one may
 * be among them.
 */
#define _GNU_SOURCE
#include "world.h"

#include "../system/guest.h"
#include "../../kernel/lab/include/linux/toll_lab_magic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_IMAGE 0xffffffff80000000ull
#define KERNEL_TEXT 0xffffffff81000000ull
#define KERNEL_END 0xffffffffff000000ull
#define DIRECT_MAP_SIZE (1ull << 46)
/*
 * A CPU that comes online begins with tables below this address. They lack the direct map, and map
 * memory at its physical address.
 */
#define START_TABLES_END (1ull << 20)

/* Bits of CR4 that matter to translations, when they change. */
#define CR4_PAE (1ull << 5)
#define CR4_PGE (1ull << 7)
#define CR4_PCIDE (1ull << 17)
#define CR4_SMEP (1ull << 20)

/* Levels of the guest's page tables. */
static uint64_t levels = 4;

struct vcpu {
	struct cpu *cpu;
	struct guest_cpu *guest;
	/* Whether the current callback may read registers. */
	bool has_registers;
};

static struct vcpu vcpus[GUEST_CPUS];
static struct world *world;
static unsigned int causes_written;

static struct vcpu *vcpu_of(unsigned int index)
{
	return &vcpus[guest_running(index)];
}

/* --- what the model asks of the guest --- */

static bool read_guest(void *context, uint64_t physical, void *to, size_t length)
{
	const struct vcpu *vcpu = context;

	return guest_read_physical(vcpu->guest, physical, to, length) ||
	       (vcpu->cpu->root < START_TABLES_END &&
		guest_read_memory(vcpu->guest, physical, to, length));
}

/* Whether an instruction that calls stands before an address. */
static bool follows_call(struct vcpu *vcpu, uint64_t address)
{
	static struct {
		uint64_t address;
		bool is_call;
	} known[1 << 14];
	unsigned int slot = (address ^ address >> 14) % (1 << 14);
	uint8_t code[7];
	int32_t distance;

	if (address < KERNEL_TEXT || address >= KERNEL_END)
		return false;
	if (known[slot].address == address)
		return known[slot].is_call;
	known[slot].address = address;
	known[slot].is_call = false;
	if (!guest_read_memory(vcpu->guest, address - sizeof(code), code, sizeof(code)))
		return false;
	memcpy(&distance, code + 3, sizeof(distance));
	known[slot].is_call = (code[2] == 0xe8 && address + distance >= KERNEL_TEXT) ||
			      (code[5] == 0xff && (code[6] & 0x38) == 0x10);
	return known[slot].is_call;
}

/* With the lock of the world held. */
static unsigned int find_calls(void *context, uint64_t *calls)
{
	struct vcpu *vcpu = context;
	uint64_t stack = vcpu->has_registers ? guest_register(vcpu->guest, RSP) : 0, words[160];
	unsigned int count = 0, size = sizeof(words) / sizeof(*words);

	if (!(stack >> 63))
		return 0;
	while (size && !guest_read_memory(vcpu->guest, stack, words, size * sizeof(*words)))
		size /= 2;
	for (unsigned int i = 0; i < size && count < CALLS; i++)
		if (follows_call(vcpu, words[i]))
			calls[count++] = words[i];
	return count;
}

/* --- messages of the guest --- */

/* Without the lock: when the guest ends, or at a message. */
static void write_findings(void)
{
	char *path;
	FILE *file;

	pthread_mutex_lock(&world->lock);
	if (asprintf(&path, "%s/adversary.json", guest_options.out) < 0)
		abort();
	file = fopen(path, "w");
	if (!file || !world_write(world, file) || fclose(file))
		guest_complain(path, strerror(errno));
	free(path);
	causes_written = world->causes;
	pthread_mutex_unlock(&world->lock);
}

/* A guest that a planted bug breaks may never end a section. */
static void on_exit_of_guest(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	if (world->is_running)
		write_findings();
}

static void on_task(struct vcpu *vcpu, uint64_t id, uint64_t where)
{
	char name[NAME_LENGTH] = "";

	guest_read_memory(vcpu->guest, where, name, sizeof(name));
	cpu_run_task(vcpu->cpu, id, name);
}

static void on_message(struct vcpu *vcpu, uint64_t what, uint64_t first, uint64_t second)
{
	switch (what) {
	case TOLL_LAB_BEGIN:
		world_begin(world);
		break;
	case TOLL_LAB_END:
		write_findings();
		break;
	case TOLL_LAB_TASK:
		on_task(vcpu, first, second);
		break;
	case TOLL_LAB_FAULT_BEGIN:
		if (world->is_running)
			cpu_fault(vcpu->cpu, first, second);
		break;
	case TOLL_LAB_FRAMES_TAKEN:
		if (world->is_running)
			cpu_frames_taken(vcpu->cpu, first, second);
		break;
	case TOLL_LAB_FRAMES_FREED:
		if (world->is_running)
			cpu_frames_freed(vcpu->cpu, first, second);
		break;
	case TOLL_LAB_PLANTED:
		world->planted += world->is_running;
		break;
	}
}

static void on_say(unsigned int index, void *data)
{
	struct guest_cpu *guest = vcpu_of(index)->guest;
	uint64_t what = guest_register(guest, RDI), first = guest_register(guest, RSI);
	struct vcpu *vcpu;

	(void)data;
	if (guest_options.has_one_thread && what == TOLL_LAB_IRQ_ENTER &&
	    guest_learn_running(first))
		cpu_load_root(vcpus[first].cpu, guest_register(&guest_cpus[first], CR3));
	vcpu = vcpu_of(index);
	vcpu->has_registers = true;
	on_message(vcpu, what, first, guest_register(guest, RDX));
	vcpu->has_registers = false;
	if (world->causes != causes_written)
		write_findings();
}

static void on_keep(unsigned int index, void *data)
{
	(void)data;
	vcpu_of(index)->cpu->keeps = true;
}

/* --- invalidations --- */

/* 4.10.4.1, "Operations that Invalidate TLBs and Paging-Structure Caches" */
static void write_cr4(struct vcpu *vcpu, uint64_t new)
{
	uint64_t old = guest_register(vcpu->guest, CR4), changed = old ^ new;

	if (changed & CR4_PGE || changed & old & CR4_PCIDE)
		cpu_invalidate_all(vcpu->cpu, true);
	else if (changed & CR4_PAE || changed & new & CR4_SMEP)
		cpu_invalidate_space(vcpu->cpu, vcpu->cpu->pcid);
}

static void invpcid(struct vcpu *vcpu, uint64_t type, uint64_t where)
{
	uint64_t descriptor[2] = { 0, 0 };

	if (!guest_read_memory(vcpu->guest, where, descriptor, sizeof(descriptor))) {
		world->lost++;
		return;
	}
	switch (type) {
	case 0:
		cpu_invalidate_address_of(vcpu->cpu, descriptor[0] & 0xfff, descriptor[1]);
		break;
	case 1:
		cpu_invalidate_space(vcpu->cpu, descriptor[0] & 0xfff);
		break;
	case 2:
	case 3:
		cpu_invalidate_all(vcpu->cpu, type == 2);
		break;
	}
}

static void on_flushing(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);
	const struct flushing *flushing = data;
	const struct instruction *instruction = &flushing->instruction;
	uint64_t address = guest_address_of(vcpu->guest, &instruction->memory, flushing->next);
	uint64_t source = guest_register(vcpu->guest, instruction->source);

	vcpu->has_registers = true;
	switch (instruction->what) {
	case DECODED_INVLPG:
		cpu_invalidate_address(vcpu->cpu, address);
		break;
	case DECODED_WRITE_CR3:
		cpu_load_root(vcpu->cpu, source);
		break;
	case DECODED_WRITE_CR4:
		write_cr4(vcpu, source);
		break;
	case DECODED_INVPCID:
		invpcid(vcpu, source, address);
		break;
	default:
		break;
	}
	vcpu->has_registers = false;
}

/* --- accesses --- */

static void access_pages(struct cpu *cpu, enum kind kind, uint64_t address, unsigned int size)
{
	unsigned int first = 4096 - (address & 4095);

	if (size <= first) {
		cpu_access(cpu, kind, address, size);
		return;
	}
	cpu_access(cpu, kind, address, first);
	cpu_access(cpu, kind, address + first, size - first);
}

static void on_memory(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)data;
	if (world->is_running)
		access_pages(vcpu_of(index)->cpu,
			     qemu_plugin_mem_is_store(info) ? KIND_STORE : KIND_LOAD, address,
			     1u << qemu_plugin_mem_size_shift(info));
}

/* The physical address of a kernel address that always maps the same memory; ~0: others. */
static uint64_t fixed_physical(uint64_t address)
{
	if (address - guest_options.direct_map < DIRECT_MAP_SIZE)
		return address - guest_options.direct_map;
	if (address >= KERNEL_IMAGE && address < KERNEL_END)
		return address - KERNEL_IMAGE;
	return ~0ull;
}

/* By the kernel: it may be to a page table. */
static void on_kernel_memory(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			     void *data)
{
	uint64_t physical = fixed_physical(address);

	if (world->is_running && qemu_plugin_mem_is_store(info) && physical != ~0ull &&
	    world_is_table(world, physical)) {
		struct vcpu *vcpu = vcpu_of(index);

		vcpu->has_registers = true;
		cpu_store_to_table(vcpu->cpu, physical, 1u << qemu_plugin_mem_size_shift(info));
		vcpu->has_registers = false;
	}
	on_memory(index, info, address, data);
}

/* A translated block. */
struct block {
	uint64_t first, last; /* addresses of its instructions */
	uint64_t count;
};

static void on_block_run(unsigned int index, void *data)
{
	const struct block *block = data;
	bool is_user = !(block->first >> 63);
	struct cpu *cpu;

	if (guest_options.has_one_thread)
		guest_find_running(index);
	cpu = vcpu_of(index)->cpu;
	cpu->instructions += block->count;
	if (is_user && !cpu->is_user)
		cpu_enter_user(cpu);
	else if (!is_user && cpu->is_user)
		cpu_leave_user(cpu);
	if (!world->is_running)
		return;
	cpu_access(cpu, KIND_FETCH, block->first, 1);
	if ((block->first ^ block->last) >> 12)
		cpu_access(cpu, KIND_FETCH, block->last, 1);
}

static void watch_instruction(struct qemu_plugin_insn *insn)
{
	static const struct guest_handlers handlers = { on_say, on_keep, on_flushing };

	guest_watch(insn, &handlers, NULL);
	if (qemu_plugin_insn_vaddr(insn) >> 63)
		qemu_plugin_register_vcpu_mem_cb(insn, on_kernel_memory, QEMU_PLUGIN_CB_R_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	else
		qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct block block = { .first = qemu_plugin_tb_vaddr(tb), .count = count };

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		block.last = qemu_plugin_insn_vaddr(insn);
		watch_instruction(insn);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, on_block_run, guest_options.has_one_thread ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS,
		guest_keep(&block, sizeof(block)));
}

/* --- initialisation --- */

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	struct vcpu *vcpu = &vcpus[index % GUEST_CPUS];

	(void)id;
	vcpu->cpu = world_cpu(world, index, vcpu);
	if (!vcpu->cpu) {
		guest_complain("CPU", "too many CPUs, or out of memory");
		exit(1);
	}
	guest_add_cpu(index);
	vcpu->guest = &guest_cpus[index];
}

static bool set_option(const char *name, const char *value)
{
	return !strcmp(name, "levels") && guest_number(value, &levels) &&
	       (levels == 4 || levels == 5);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	if (!guest_read_options("toll-adversary", info, argc, argv, set_option))
		return -1;
	world = world_new(levels, read_guest, find_calls);
	if (!world) {
		guest_complain("beginning", "no memory");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	qemu_plugin_register_flush_cb(id, guest_forget_kept);
	qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
	return 0;
}
