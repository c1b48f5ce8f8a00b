/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the guest's kernel says about itself (toll_lab_magic.h), and what follows
 * from it: which process a count belongs to, how many instructions a page fault
 * or an allocation takes, and why a CPU was interrupted to flush. Nothing of QEMU
 * here.
 *
 * A ledger is used by its own virtual CPU alone, but for `asks`, which another
 * CPU reads while this one waits for it.
 */
#ifndef TOLL_TASKS_H
#define TOLL_TASKS_H

#include "../../kernel/lab/include/linux/toll_lab_magic.h"
#include "cpu.h"
#include "histogram.h"

enum { TASK_NAME_LENGTH = 16 };

struct task {
	uint64_t id; /* tgid << 32 | pid */
	char name[TASK_NAME_LENGTH];
	/* Page faults begun and not ended, and instructions since the first of them began. */
	unsigned int faults;
	uint64_t fault_instructions;
	/* Whether it is in an allocation, and instructions since that began. */
	bool is_allocating;
	uint64_t alloc_instructions;
	/* Pages in its batch of flushes that are put off, and those that could have waited. */
	uint64_t batch, batch_eligible;
	/* How deep it is in each reason. */
	unsigned int reasons[TOLL_LAB_REASONS];
	uint64_t counts[COUNTERS];
	/* Its counts at the begin and at the end of the section. */
	uint64_t snapshots[2][COUNTERS];
	struct task *next;
};

enum { MAX_CPUS = 64 };

/*
 * The guest: its CPUs, and all tasks that were ever seen. A pid that comes again
 * is another task only if its tgid differs.
 */
struct machine;

/* NULL if memory is short. */
struct machine *machine_new(void);
void machine_free(struct machine *machine);
/* A task by its id, made if it is new; NULL if memory is short. May be called by any thread. */
struct task *machine_task(struct machine *machine, uint64_t id);
void machine_each_task(struct machine *machine, void (*act)(struct task *task, void *context),
		       void *context);

/* Of what the instructions are counted one by one. */
enum latency { LATENCY_FAULT, LATENCY_ALLOC, LATENCIES };

/* Whose flush runs on a CPU. */
enum flush { FLUSH_NONE, FLUSH_BATCH, FLUSH_SPACE };

struct ledger {
	unsigned int index;
	struct cpu *cpu;
	struct machine *machine;
	/* What runs here; never NULL. */
	struct task *task;
	/* This CPU's counts up to which its tasks have got theirs. */
	uint64_t settled[COUNTERS];
	/* Kernel instructions up to which the open fault and allocation have got theirs. */
	uint64_t mark;
	unsigned int interrupts;
	enum flush flush;
	/* What an interrupt counts as that this CPU makes another one flush a batch by. */
	enum counter asks;
	struct histogram latencies[LATENCIES];
};

/* The ledger of CPU `index`; false if memory is short or there are too many CPUs. */
bool ledger_init(struct ledger *ledger, struct machine *machine, unsigned int index,
		 struct cpu *cpu);

/* Takes the snapshot 0 or 1 of every task, running ones included. */
void machine_snapshot(struct machine *machine, unsigned int which);

/* An operation of toll_lab_magic.h with its arguments. */
struct said {
	uint64_t what, first, second;
};

/*
 * The kernel said something. `unfinished`: instructions that this CPU has counted
 * already but not run yet. False if memory is short.
 */
bool ledger_hear(struct ledger *ledger, struct said said, uint64_t unfinished);

#endif
