/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual PMU: counts in a whole emulated system what hardware would count.
 *
 *     qemu-system-x86_64 -plugin libtoll_system.so,out=FOLDER,l1_4k=64x4,...
 *
 * It needs a kernel without KASLR and without five-level tables: those of the
 * guest are read through the kernel's direct map. Nothing is modelled until the
 * guest begins its first section (magic.h); the TLBs are empty then.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "decode.h"
#include "magic.h"
#include "qemu_api.h"

#include "../tlb-model/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS 64
#define REGISTERS 16
#define NAME_MAX_LENGTH 63
#define LONGEST_INSTRUCTION 15
/* Flushing for one request uses no more stack than this. */
#define FLUSH_STACK 4096

static const char *const register_names[REGISTERS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

enum { RSP = 4, RSI = 6, RDI = 7, RDX = 2 };

static const char *const counter_names[COUNTERS] = {
	[DTLB_LOAD_MISSES] = "dtlb_load_misses",
	[DTLB_STORE_MISSES] = "dtlb_store_misses",
	[ITLB_MISSES] = "itlb_misses",
	[WALK_STEPS] = "walk_steps",
	[SHADOW_DTLB_LOAD_MISSES] = "shadow_dtlb_load_misses",
	[SHADOW_DTLB_STORE_MISSES] = "shadow_dtlb_store_misses",
	[SHADOW_ITLB_MISSES] = "shadow_itlb_misses",
	[SHADOW_WALK_STEPS] = "shadow_walk_steps",
	[INVLPGS] = "invlpgs",
	[FULL_FLUSHES] = "full_flushes",
	[CR3_WRITES] = "cr3_writes",
	[INSTRUCTIONS_USER] = "instructions_user",
	[INSTRUCTIONS_KERNEL] = "instructions_kernel",
	[SHOOTDOWNS_BATCH] = "shootdowns_batch",
	[SHOOTDOWNS_MM] = "shootdowns_mm",
};

/* What QEMU's command line says. */
static struct {
	const char *out;
	struct tlb_config tlb;
	/* Where the kernel maps all physical memory. */
	uint64_t direct_map;
	/* flush_tlb_func() of the guest's kernel; 0: not told. */
	uint64_t flush_function;
} options = { .direct_map = 0xffff888000000000ull };

/* A virtual CPU, seen by its own thread only, but for the counts. */
struct vcpu {
	struct cpu cpu;
	struct qemu_plugin_register *registers[REGISTERS];
	GByteArray *buffer;
	/* The stack pointer when flush_tlb_func() was called for a batch of unmaps; else 0. */
	uint64_t batch_stack;
	uint64_t at_begin[COUNTERS];
};

static struct vcpu vcpus[CPUS];
static unsigned int vcpu_count;
/* Set by the first section, and then for good. */
static bool is_running;
static char section[NAME_MAX_LENGTH + 1];

static void complain(const char *what, const char *detail)
{
	fprintf(stderr, "toll-system: %s: %s\n", what, detail);
}

/* --- the guest's registers and memory; only for the vCPU that is running --- */

static bool read_memory(struct vcpu *vcpu, uint64_t address, void *to, size_t length)
{
	g_byte_array_set_size(vcpu->buffer, 0);
	if (!qemu_plugin_read_memory_vaddr(address, vcpu->buffer, length))
		return false;
	memcpy(to, vcpu->buffer->data, length);
	return true;
}

static bool read_table(void *context, uint64_t physical, uint64_t *entry)
{
	return read_memory(context, options.direct_map + physical, entry, sizeof(*entry));
}

static uint64_t register_value(struct vcpu *vcpu, uint8_t number)
{
	uint64_t value = 0;

	g_byte_array_set_size(vcpu->buffer, 0);
	if (number < REGISTERS &&
	    qemu_plugin_read_register(vcpu->registers[number], vcpu->buffer) >= (int)sizeof(value))
		memcpy(&value, vcpu->buffer->data, sizeof(value));
	return value;
}

/* --- sections --- */

static void write_counts(FILE *file, const struct vcpu *vcpu)
{
	const char *separator = "";

	fputs("{", file);
	for (int counter = 0; counter < COUNTERS; counter++) {
		fprintf(file, "%s\"%s\": %llu", separator, counter_names[counter],
			(unsigned long long)(vcpu->cpu.counts[counter] - vcpu->at_begin[counter]));
		separator = ", ";
	}
	fputs("}", file);
}

/* One file a section, NAME.json: the counts of each CPU. */
static bool write_section(FILE *file)
{
	fprintf(file, "{\"section\": \"%s\", \"cpus\": [", section);
	for (unsigned int i = 0; i < vcpu_count; i++) {
		fputs(i ? ",\n  " : "\n  ", file);
		write_counts(file, &vcpus[i]);
	}
	fputs("\n]}\n", file);
	return !ferror(file);
}

static void end_section(void)
{
	char *path;
	FILE *file;

	if (!section[0]) {
		complain("the guest ended a section", "none had begun");
		return;
	}
	if (asprintf(&path, "%s/%s.json", options.out, section) < 0)
		return;
	file = fopen(path, "w");
	if (!file || !write_section(file) || fclose(file))
		complain(path, strerror(errno));
	free(path);
	section[0] = '\0';
}

/* Names become files: letters, digits and dashes. */
static bool is_name(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static void begin_section(struct vcpu *vcpu)
{
	uint64_t address = register_value(vcpu, RSI), length = register_value(vcpu, RDX);
	char name[NAME_MAX_LENGTH + 1] = "";

	if (length > NAME_MAX_LENGTH || !read_memory(vcpu, address, name, length) ||
	    !is_name(name)) {
		complain("the guest began a section", "its name is none");
		return;
	}
	if (section[0])
		complain(section, "the section had not ended when the next one began");
	memcpy(section, name, sizeof(section));
	for (unsigned int i = 0; i < vcpu_count; i++)
		memcpy(vcpus[i].at_begin, vcpus[i].cpu.counts, sizeof(vcpus[i].at_begin));
	is_running = true;
}

static void on_magic(unsigned int index, void *data)
{
	struct vcpu *vcpu = &vcpus[index];

	(void)data;
	switch (register_value(vcpu, RDI)) {
	case MAGIC_BEGIN:
		begin_section(vcpu);
		break;
	case MAGIC_END:
		end_section();
		break;
	case MAGIC_CR3:
		vcpu->cpu.announced_cr3 = register_value(vcpu, RSI);
		vcpu->cpu.is_cr3_announced = true;
		break;
	}
}

/* --- flushes --- */

/* Whether what runs was called by flush_tlb_func() for a batch of unmaps. */
static bool is_batch(struct vcpu *vcpu)
{
	uint64_t stack;

	if (!vcpu->batch_stack)
		return false;
	stack = register_value(vcpu, RSP);
	if (stack <= vcpu->batch_stack && vcpu->batch_stack - stack < FLUSH_STACK)
		return true;
	vcpu->batch_stack = 0;
	return false;
}

/* The beginning of struct flush_tlb_info; a batch of unmaps has no mm. */
struct flush_request {
	uint64_t mm, start, end, generation;
	uint32_t initiating_cpu;
};

static void on_flush_function(unsigned int index, void *data)
{
	struct vcpu *vcpu = &vcpus[index];
	struct flush_request request;

	(void)data;
	vcpu->batch_stack = 0;
	if (!read_memory(vcpu, register_value(vcpu, RDI), &request, sizeof(request)))
		return;
	if (!request.mm)
		vcpu->batch_stack = register_value(vcpu, RSP);
	if (request.initiating_cpu != index)
		vcpu->cpu.counts[request.mm ? SHOOTDOWNS_MM : SHOOTDOWNS_BATCH]++;
}

/* An instruction that invalidates; `next` is the address of the one behind it. */
struct flushing {
	struct instruction instruction;
	uint64_t next;
};

static uint64_t address_of(struct vcpu *vcpu, const struct flushing *flushing)
{
	const struct operand *operand = &flushing->instruction.memory;
	uint64_t base = operand->base == RIP_REGISTER ? flushing->next :
							register_value(vcpu, operand->base);

	return base + register_value(vcpu, operand->index) * operand->scale +
	       (int64_t)operand->displacement;
}

static void on_flushing(unsigned int index, void *data)
{
	struct vcpu *vcpu = &vcpus[index];
	const struct flushing *flushing = data;
	const struct instruction *instruction = &flushing->instruction;

	switch (instruction->what) {
	case DECODED_INVLPG:
		cpu_invlpg(&vcpu->cpu, address_of(vcpu, flushing), is_batch(vcpu));
		break;
	case DECODED_WRITE_CR3:
		cpu_write_cr3(&vcpu->cpu, register_value(vcpu, instruction->source),
			      is_batch(vcpu));
		break;
	case DECODED_WRITE_CR4:
	case DECODED_INVPCID: /* not offered by the emulated CPU */
	default:
		cpu_flush_global(&vcpu->cpu, is_batch(vcpu));
		break;
	}
}

/* --- accesses and instructions --- */

static void on_memory(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)data;
	if (is_running)
		cpu_access(&vcpus[index].cpu,
			   qemu_plugin_mem_is_store(info) ? ACCESS_STORE : ACCESS_LOAD, address);
}

/* A translated block. */
struct block {
	uint64_t first, last; /* addresses of its instructions */
	uint64_t count;
};

static void on_block_run(unsigned int index, void *data)
{
	const struct block *block = data;
	struct cpu *cpu = &vcpus[index].cpu;

	if (!is_running)
		return;
	cpu->counts[block->first >> 63 ? INSTRUCTIONS_KERNEL : INSTRUCTIONS_USER] += block->count;
	cpu_access(cpu, ACCESS_CODE, block->first);
	if ((block->first ^ block->last) >> 12)
		cpu_access(cpu, ACCESS_CODE, block->last);
}

/* What callbacks point to lives until QEMU throws its blocks away; translating is serialised by QEMU. */
static struct kept {
	struct kept *next;
	uint64_t words[];
} *kept;

static void *keep(const void *value, size_t size)
{
	struct kept *new = malloc(sizeof(*new) + size);

	if (!new) {
		complain("translating", "no memory");
		abort();
	}
	new->next = kept;
	kept = new;
	return memcpy(new->words, value, size);
}

static void on_blocks_gone(qemu_plugin_id_t id)
{
	(void)id;
	while (kept) {
		struct kept *next = kept->next;

		free(kept);
		kept = next;
	}
}

static void watch_instruction(struct qemu_plugin_insn *insn)
{
	uint8_t code[LONGEST_INSTRUCTION];
	size_t length = qemu_plugin_insn_data(insn, code, sizeof(code));
	struct flushing flushing = {
		.instruction = decode(code, length),
		.next = qemu_plugin_insn_vaddr(insn) + length,
	};

	if (flushing.instruction.what == DECODED_MAGIC)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_magic, QEMU_PLUGIN_CB_R_REGS, NULL);
	else if (flushing.instruction.what != DECODED_OTHER)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_flushing, QEMU_PLUGIN_CB_R_REGS,
						       keep(&flushing, sizeof(flushing)));
	if (options.flush_function && qemu_plugin_insn_vaddr(insn) == options.flush_function)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_flush_function,
						       QEMU_PLUGIN_CB_R_REGS, NULL);
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
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block_run, QEMU_PLUGIN_CB_NO_REGS,
					     keep(&block, sizeof(block)));
}

/* --- beginning --- */

static void find_registers(struct vcpu *vcpu)
{
	GArray *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *found = (const void *)all->data;

	for (unsigned int i = 0; i < all->len; i++)
		for (int number = 0; number < REGISTERS; number++)
			if (!strcmp(found[i].name, register_names[number]))
				vcpu->registers[number] = found[i].handle;
	for (int number = 0; number < REGISTERS; number++) {
		if (!vcpu->registers[number]) {
			complain(register_names[number], "QEMU does not show this register");
			exit(1);
		}
	}
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	struct vcpu *vcpu = &vcpus[index % CPUS];

	(void)id;
	if (index >= CPUS || !cpu_init(&vcpu->cpu, &options.tlb, read_table, vcpu)) {
		complain("CPU", "too many of them, an impossible TLB, or no memory");
		exit(1);
	}
	vcpu->buffer = g_byte_array_new();
	find_registers(vcpu);
	if (index >= vcpu_count)
		vcpu_count = index + 1;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text && !*end;
}

static bool set_option(const char *name, const char *value)
{
	if (!strcmp(name, "out"))
		return (options.out = value)[0] != 0;
	if (!strcmp(name, "direct_map"))
		return number(value, &options.direct_map);
	if (!strcmp(name, "flush_function"))
		return number(value, &options.flush_function);
	return tlb_config_set(&options.tlb, name, value);
}

static bool parse(const char *argument)
{
	/* Values point into the copy, which lives as long as QEMU. */
	char *name = strdup(argument), *value = name ? strchr(name, '=') : NULL;

	if (!value)
		return false;
	*value++ = '\0';
	return set_option(name, value);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
		complain(info->target_name, "not the emulation of x86-64 systems");
		return -1;
	}
	for (int i = 0; i < argc; i++) {
		if (!parse(argv[i])) {
			complain(argv[i], "not understood");
			return -1;
		}
	}
	if (!options.out) {
		complain("out", "not given");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	qemu_plugin_register_flush_cb(id, on_blocks_gone);
	return 0;
}
