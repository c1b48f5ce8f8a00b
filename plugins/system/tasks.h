/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of the guest's kernel from its messages (toll_lab_magic.h), and values derived
 * from it: the process that a count belongs to, the instructions of a page fault or an
 * allocation, and the cause of a flush interrupt. Independent of QEMU.
 *
 * A ledger is used only by its own virtual CPU, except for `asks`, which another CPU
 * reads while this one waits for it.
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
	/*
	 * Nesting depth of open page faults, and instructions since the first of them
	 * began.
	 */
	unsigned int faults;
	uint64_t fault_instructions;
	/* Whether it is in an allocation, and instructions since its start. */
	bool is_allocating;
	uint64_t alloc_instructions;
	/* Pages in its batch of deferred flushes, and those that could have waited. */
	uint64_t batch, batch_eligible;
	/* Nesting depth of each cause. */
	unsigned int reasons[TOLL_LAB_REASONS];
	uint64_t counts[COUNTERS];
	/* Its counts at the start and at the end of the section. */
	uint64_t snapshots[2][COUNTERS];
	struct task *next;
};

enum { MAX_CPUS = 64 };

/*
 * The guest: its CPUs, and all tasks seen so far. A reused pid is a new task only if its
 * tgid differs.
 */
struct machine;

/* NULL if memory is short. */
struct machine *machine_new(void);
void machine_free(struct machine *machine);
/*
 * Finds a task by its id and creates it if necessary; NULL if memory is short. Safe to
 * call from any thread.
 */
struct task *machine_task(struct machine *machine, uint64_t id);
void machine_each_task(struct machine *machine, void (*act)(struct task *task, void *context),
		       void *context);

/* Operations with separate instruction counts. */
enum latency { LATENCY_FAULT, LATENCY_ALLOC, LATENCIES };

/* Kind of the flush that runs on a CPU. */
enum flush { FLUSH_NONE, FLUSH_BATCH, FLUSH_SPACE };

struct ledger {
	unsigned int index;
	struct cpu *cpu;
	struct machine *machine;
	/* The running task; never NULL. */
	struct task *task;
	/* Counts of this CPU that were already added to its tasks. */
	uint64_t settled[COUNTERS];
	/*
	 * Kernel instructions that were already added to the open fault and allocation.
	 */
	uint64_t mark;
	unsigned int interrupts;
	enum flush flush;
	/*
	 * Cause counted for interrupts by which this CPU makes another one flush a batch.
	 */
	enum counter asks;
	struct histogram latencies[LATENCIES];
};

/*
 * Returns the ledger of CPU `index`; false if memory is short or there are too many CPUs.
 */
bool ledger_init(struct ledger *ledger, struct machine *machine, unsigned int index,
		 struct cpu *cpu);

/* Takes snapshot 0 or 1 of every task, including running ones. */
void machine_snapshot(struct machine *machine, unsigned int which);

/* An operation of toll_lab_magic.h with its arguments. */
struct said {
	uint64_t what, first, second;
};

/*
 * Handles a message of the kernel. `unfinished`: instructions that this CPU has counted
 * but not run yet. False if memory is short.
 */
bool ledger_hear(struct ledger *ledger, struct said said, uint64_t unfinished);

#endif
