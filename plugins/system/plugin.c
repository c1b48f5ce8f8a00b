/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual PMU: counts in a whole emulated system what hardware would count.
 *
 *     qemu-system-x86_64 -plugin libtoll_system.so,out=DIR,l1_4k=64x4,...
 *
 * Use one_thread=on if one host thread runs several CPUs (icount).
 *
 * Requires a kernel without KASLR and without five-level page tables: the guest's tables
 * are read through the kernel's direct map. The kernel reports its actions itself
 * (toll_lab_magic.h, the lab-only seams). Nothing is modelled until the guest starts its
 * first section; the TLBs are empty then.
 *
 * Instructions are counted per block, when the block starts. If the guest sends a message
 * in the middle of a block, the rest is subtracted; if an instruction faults, the rest of
 * its block is counted although it runs later.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guest.h"
#include "tasks.h"

#include "../tlb-model/config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 63

static const char *const counter_names[COUNTERS] = {
	[DTLB_LOAD_MISSES] = "dtlb_load_misses",
	[DTLB_STORE_MISSES] = "dtlb_store_misses",
	[ITLB_MISSES] = "itlb_misses",
	[WALK_STEPS] = "walk_steps",
	[SHADOW_DTLB_LOAD_MISSES] = "shadow_dtlb_load_misses",
	[SHADOW_DTLB_STORE_MISSES] = "shadow_dtlb_store_misses",
	[SHADOW_ITLB_MISSES] = "shadow_itlb_misses",
	[SHADOW_WALK_STEPS] = "shadow_walk_steps",
	[WATCHED_LOAD_MISSES] = "watched_load_misses",
	[WATCHED_STORE_MISSES] = "watched_store_misses",
	[WATCHED_FETCH_MISSES] = "watched_fetch_misses",
	[WALKS_4K] = "walks_4k",
	[WALKS_2M] = "walks_2m",
	[WALKS_1G] = "walks_1g",
	[WALKS_UNMAPPED] = "walks_unmapped",
	[INVLPGS] = "invlpgs",
	[FULL_FLUSHES] = "full_flushes",
	[CR3_WRITES] = "cr3_writes",
	[INSTRUCTIONS_USER] = "instructions_user",
	[INSTRUCTIONS_KERNEL] = "instructions_kernel",
	[PAGE_FAULTS] = "page_faults",
	[FAULT_INSTRUCTIONS] = "fault_instructions",
	[ALLOCS] = "allocs",
	[ALLOC_FAILURES] = "alloc_failures",
	[ALLOC_INSTRUCTIONS] = "alloc_instructions",
	[INTERRUPTS] = "interrupts",
	[SHOOTDOWNS_ELIGIBLE] = "shootdowns_eligible",
	[SHOOTDOWNS_MIXED] = "shootdowns_mixed",
	[SHOOTDOWNS_UNMAP] = "shootdowns_unmap",
	[SHOOTDOWNS_COMPACTION] = "shootdowns_compaction",
	[SHOOTDOWNS_COMPACTION_ELIGIBLE] = "shootdowns_compaction_eligible",
	[SHOOTDOWNS_DRAIN] = "shootdowns_drain",
	[SHOOTDOWNS_MM] = "shootdowns_mm",
	[SHOOTDOWNS_NUMA] = "shootdowns_numa",
	[SHOOTDOWNS_KERNEL] = "shootdowns_kernel",
	[UNMAPPED_RO] = "unmapped_ro",
	[UNMAPPED_RW] = "unmapped_rw",
};

static const char *const latency_names[LATENCIES] = {
	[LATENCY_FAULT] = "faults",
	[LATENCY_ALLOC] = "allocs",
};

/* Options of QEMU's command line. */
static struct {
	struct tlb_config tlb;
} options;

/* A virtual CPU, used only by its own thread; sections read its counts. */
struct vcpu {
	struct cpu cpu;
	struct ledger ledger;
	struct guest_cpu *guest;
	/* Start time of the section. */
	uint64_t at_begin[COUNTERS];
	struct histogram latencies_at_begin[LATENCIES];
};

static struct vcpu vcpus[MAX_CPUS];
static struct machine *machine;
/* Set permanently by the first section. */
static bool is_running;
/* Name of the section; empty: none is open. */
static char section[NAME_MAX_LENGTH + 1];
static pthread_mutex_t section_lock = PTHREAD_MUTEX_INITIALIZER;

static bool read_table(void *context, uint64_t physical, uint64_t *entry)
{
	const struct vcpu *vcpu = context;

	return guest_read_physical(vcpu->guest, physical, entry, sizeof(*entry));
}

static struct vcpu *vcpu_of(unsigned int index)
{
	return &vcpus[guest_running(index)];
}

/* The kernel reports its CPU; earlier work may belong to another CPU. */
static void learn_running(uint64_t index)
{
	if (guest_learn_running(index))
		cpu_write_cr3(&vcpus[index].cpu, guest_register(&guest_cpus[index], CR3), false);
}

/* --- sections --- */

static void write_counts(FILE *file, const uint64_t *from, const uint64_t *to)
{
	const char *separator = "";

	for (int counter = 0; counter < COUNTERS; counter++) {
		fprintf(file, "%s\"%s\": %llu", separator, counter_names[counter],
			(unsigned long long)(to[counter] - from[counter]));
		separator = ", ";
	}
}

/* A task's name may contain any bytes. */
static void write_name(FILE *file, const char *name)
{
	for (int i = 0; i < TASK_NAME_LENGTH && name[i]; i++)
		fputc(name[i] < ' ' || name[i] > '~' || strchr("\"\\", name[i]) ? '?' : name[i],
		      file);
}

struct list {
	FILE *file;
	const char *separator;
};

static void write_task(struct task *task, void *context)
{
	struct list *list = context;

	if (!memcmp(task->snapshots[0], task->snapshots[1], sizeof(task->snapshots[0])))
		return;
	fprintf(list->file, "%s{\"tgid\": %u, \"pid\": %u, \"name\": \"", list->separator,
		(unsigned int)(task->id >> 32), (unsigned int)task->id);
	write_name(list->file, task->name);
	fputs("\", ", list->file);
	write_counts(list->file, task->snapshots[0], task->snapshots[1]);
	fputs("}", list->file);
	list->separator = ",\n  ";
}

static void write_cpus(FILE *file)
{
	for (unsigned int i = 0; i < guest_cpu_count; i++) {
		fputs(i ? ",\n  {" : "\n  {", file);
		write_counts(file, vcpus[i].at_begin, vcpus[i].cpu.counts);
		fputs("}", file);
	}
}

/*
 * Page faults or allocations by their kernel instructions: the largest value, and pairs
 * of a bucket's smallest value and its count.
 */
static void write_latency(FILE *file, enum latency latency)
{
	const char *separator = "";
	uint64_t max = 0;

	for (unsigned int i = 0; i < guest_cpu_count; i++)
		if (vcpus[i].ledger.latencies[latency].max > max)
			max = vcpus[i].ledger.latencies[latency].max;
	fprintf(file, "\"%s\": {\"max\": %llu, \"buckets\": [", latency_names[latency],
		(unsigned long long)max);
	for (unsigned int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint64_t count = 0;

		for (unsigned int i = 0; i < guest_cpu_count; i++)
			count += vcpus[i].ledger.latencies[latency].counts[bucket] -
				 vcpus[i].latencies_at_begin[latency].counts[bucket];
		if (!count)
			continue;
		fprintf(file, "%s[%llu, %llu]", separator,
			(unsigned long long)histogram_low(bucket), (unsigned long long)count);
		separator = ", ";
	}
	fputs("]}", file);
}

/*
 * Writes one file per section, NAME.json: counts of each CPU and each task, page faults,
 * allocations.
 */
static bool write_section(FILE *file)
{
	struct list list = { file, "\n  " };

	fprintf(file, "{\"section\": \"%s\", \"cpus\": [", section);
	write_cpus(file);
	fputs("\n], \"tasks\": [", file);
	machine_each_task(machine, write_task, &list);
	fputs("\n]", file);
	for (int latency = 0; latency < LATENCIES; latency++) {
		fputs(",\n", file);
		write_latency(file, latency);
	}
	fputs("}\n", file);
	return !ferror(file);
}

/* Instructions of the current block that are counted but come after this one. */
static void take_off(struct vcpu *vcpu, uint64_t unfinished, bool is_back)
{
	uint64_t *count = &vcpu->cpu.counts[INSTRUCTIONS_USER];

	*count = is_back ? *count + unfinished : *count - unfinished;
}

static void end_section(void)
{
	char *path;
	FILE *file;

	if (!section[0]) {
		guest_complain("the guest ended a section", "none had begun");
		return;
	}
	machine_snapshot(machine, 1);
	if (asprintf(&path, "%s/%s.json", guest_options.out, section) < 0)
		return;
	file = fopen(path, "w");
	if (!file || !write_section(file) || fclose(file))
		guest_complain(path, strerror(errno));
	free(path);
	section[0] = '\0';
}

/* Names are used as file names: letters, digits and dashes. */
static bool is_name(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static void begin_section(struct vcpu *vcpu, struct said said)
{
	char name[NAME_MAX_LENGTH + 1] = "";

	if (said.second > NAME_MAX_LENGTH || !guest_read_memory(vcpu->guest, said.first, name, said.second) ||
	    !is_name(name)) {
		guest_complain("the guest began a section", "its name is none");
		return;
	}
	if (section[0])
		guest_complain(section, "the section had not ended when the next one began");
	memcpy(section, name, sizeof(section));
	for (unsigned int i = 0; i < guest_cpu_count; i++) {
		struct vcpu *each = &vcpus[i];

		memcpy(each->at_begin, each->cpu.counts, sizeof(each->at_begin));
		memcpy(each->latencies_at_begin, each->ledger.latencies,
		       sizeof(each->latencies_at_begin));
		for (int latency = 0; latency < LATENCIES; latency++)
			each->ledger.latencies[latency].max = 0;
	}
	machine_snapshot(machine, 0);
	is_running = true;
}

static void watch(struct said said)
{
	for (unsigned int i = 0; i < guest_cpu_count; i++) {
		vcpus[i].cpu.watch_start = said.first;
		vcpus[i].cpu.watch_end = said.first + said.second;
	}
}

/* Handles messages of programs; the kernel's go to the ledger. */
static void on_program(struct vcpu *vcpu, struct said said, uint64_t unfinished)
{
	pthread_mutex_lock(&section_lock);
	take_off(vcpu, unfinished, false);
	if (said.what == TOLL_LAB_BEGIN)
		begin_section(vcpu, said);
	else if (said.what == TOLL_LAB_END)
		end_section();
	else
		watch(said);
	take_off(vcpu, unfinished, true);
	pthread_mutex_unlock(&section_lock);
}

/* `data`: number of instructions of the same block after this one. */
static void on_say(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);
	uint64_t unfinished = (uintptr_t)data;
	struct said said = {
		guest_register(vcpu->guest, RDI),
		guest_register(vcpu->guest, RSI),
		guest_register(vcpu->guest, RDX),
	};

	if (guest_options.has_one_thread && said.what == TOLL_LAB_IRQ_ENTER) {
		learn_running(said.first);
		vcpu = vcpu_of(index);
	}
	if (said.what <= TOLL_LAB_WATCH) {
		on_program(vcpu, said, unfinished);
		return;
	}
	if (!ledger_hear(&vcpu->ledger, said, unfinished)) {
		guest_complain("a task", "no memory");
		abort();
	}
	if (said.what == TOLL_LAB_TASK)
		guest_read_memory(vcpu->guest, said.second, vcpu->ledger.task->name,
				  TASK_NAME_LENGTH);
}

static void on_keep(unsigned int index, void *data)
{
	(void)data;
	vcpu_of(index)->cpu.is_keep_announced = true;
}

/* --- flushes --- */

static bool is_batch(const struct vcpu *vcpu)
{
	return vcpu->ledger.flush == FLUSH_BATCH;
}

static void on_flushing(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);
	const struct flushing *flushing = data;
	const struct instruction *instruction = &flushing->instruction;

	switch (instruction->what) {
	case DECODED_INVLPG:
		cpu_invlpg(&vcpu->cpu,
			   guest_address_of(vcpu->guest, &instruction->memory, flushing->next),
			   is_batch(vcpu));
		break;
	case DECODED_WRITE_CR3:
		cpu_write_cr3(&vcpu->cpu, guest_register(vcpu->guest, instruction->source),
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
	uint64_t last = address + (1ull << qemu_plugin_mem_size_shift(info)) - 1;
	enum access access = qemu_plugin_mem_is_store(info) ? ACCESS_STORE : ACCESS_LOAD;
	struct cpu *cpu = &vcpu_of(index)->cpu;

	(void)data;
	if (!is_running)
		return;
	cpu_access(cpu, access, address);
	if ((address ^ last) >> 12)
		cpu_access(cpu, access, last);
}

/* A translated block. */
struct block {
	uint64_t first, last; /* addresses of its instructions */
	uint64_t count;
};

static void on_block_run(unsigned int index, void *data)
{
	const struct block *block = data;
	struct cpu *cpu;

	if (guest_options.has_one_thread)
		guest_find_running(index);
	if (!is_running)
		return;
	cpu = &vcpu_of(index)->cpu;
	cpu->counts[block->first >> 63 ? INSTRUCTIONS_KERNEL : INSTRUCTIONS_USER] += block->count;
	cpu_access(cpu, ACCESS_CODE, block->first);
	if ((block->first ^ block->last) >> 12)
		cpu_access(cpu, ACCESS_CODE, block->last);
}

/* `after`: number of instructions of the block after this one. */
static void watch_instruction(struct qemu_plugin_insn *insn, size_t after)
{
	static const struct guest_handlers handlers = { on_say, on_keep, on_flushing };

	guest_watch(insn, &handlers, (void *)(uintptr_t)after);
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
		watch_instruction(insn, count - i - 1);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block_run,
					     guest_options.has_one_thread ? QEMU_PLUGIN_CB_R_REGS :
								      QEMU_PLUGIN_CB_NO_REGS,
					     guest_keep(&block, sizeof(block)));
}

/* --- initialisation --- */

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	struct vcpu *vcpu = &vcpus[index % MAX_CPUS];

	(void)id;
	if (!ledger_init(&vcpu->ledger, machine, index, &vcpu->cpu) ||
	    !cpu_init(&vcpu->cpu, &options.tlb, read_table, vcpu)) {
		guest_complain("CPU", "too many CPUs, an invalid TLB, or out of memory");
		exit(1);
	}
	guest_add_cpu(index);
	vcpu->guest = &guest_cpus[index];
}

static bool set_option(const char *name, const char *value)
{
	return tlb_config_set(&options.tlb, name, value);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	if (!guest_read_options("toll-system", info, argc, argv, set_option))
		return -1;
	machine = machine_new();
	if (!machine) {
		guest_complain("beginning", "no memory");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	qemu_plugin_register_flush_cb(id, guest_forget_kept);
	return 0;
}
