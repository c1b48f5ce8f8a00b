/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the guest's kernel, from its messages: see tasks.h. */
#include "tasks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
#define PTE_WRITABLE 2

struct machine {
	struct ledger *ledgers[MAX_CPUS];
	pthread_mutex_t lock; /* protects the lists, not the tasks in them */
	struct task *buckets[BUCKETS];
};

struct machine *machine_new(void)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	if (machine)
		pthread_mutex_init(&machine->lock, NULL);
	return machine;
}

static void free_task(struct task *task, void *context)
{
	(void)context;
	free(task);
}

void machine_free(struct machine *machine)
{
	if (!machine)
		return;
	machine_each_task(machine, free_task, NULL);
	pthread_mutex_destroy(&machine->lock);
	free(machine);
}

static struct task *find(struct task *task, uint64_t id)
{
	while (task && task->id != id)
		task = task->next;
	return task;
}

struct task *machine_task(struct machine *machine, uint64_t id)
{
	struct task **bucket = &machine->buckets[id % BUCKETS], *task;

	pthread_mutex_lock(&machine->lock);
	task = find(*bucket, id);
	if (!task) {
		task = calloc(1, sizeof(*task));
		if (task) {
			task->id = id;
			task->next = *bucket;
			*bucket = task;
		}
	}
	pthread_mutex_unlock(&machine->lock);
	return task;
}

void machine_each_task(struct machine *machine, void (*act)(struct task *, void *), void *context)
{
	pthread_mutex_lock(&machine->lock);
	for (unsigned int bucket = 0; bucket < BUCKETS; bucket++) {
		struct task *next, *task = machine->buckets[bucket];

		for (; task; task = next) {
			next = task->next;
			act(task, context);
		}
	}
	pthread_mutex_unlock(&machine->lock);
}

bool ledger_init(struct ledger *ledger, struct machine *machine, unsigned int index,
		 struct cpu *cpu)
{
	if (index >= MAX_CPUS)
		return false;
	memset(ledger, 0, sizeof(*ledger));
	ledger->index = index;
	ledger->cpu = cpu;
	ledger->machine = machine;
	ledger->task = machine_task(machine, index);
	ledger->asks = SHOOTDOWNS_UNMAP;
	machine->ledgers[index] = ledger;
	return ledger->task != NULL;
}

/* Adds the counts of the CPU since the last call to the running task. */
static void settle(struct ledger *ledger)
{
	const uint64_t *counts = ledger->cpu->counts;

	for (int counter = 0; counter < COUNTERS; counter++)
		ledger->task->counts[counter] += counts[counter] - ledger->settled[counter];
	memcpy(ledger->settled, counts, sizeof(ledger->settled));
}

static void take_snapshot(struct task *task, void *context)
{
	const unsigned int *which = context;

	memcpy(task->snapshots[*which], task->counts, sizeof(task->counts));
}

void machine_snapshot(struct machine *machine, unsigned int which)
{
	machine_each_task(machine, take_snapshot, &which);
	for (unsigned int i = 0; i < MAX_CPUS; i++) {
		const struct ledger *ledger = machine->ledgers[i];

		for (int counter = 0; ledger && counter < COUNTERS; counter++)
			ledger->task->snapshots[which][counter] +=
				ledger->cpu->counts[counter] - ledger->settled[counter];
	}
}

/*
 * Adds the instructions up to now to open faults and allocations. Interrupts do not count
 * for a page fault, but they count for an allocation, which waits for them too.
 */
static void settle_open(struct ledger *ledger, uint64_t unfinished)
{
	uint64_t now = ledger->cpu->counts[INSTRUCTIONS_KERNEL] - unfinished;
	struct task *task = ledger->task;

	if (task->faults && !ledger->interrupts)
		task->fault_instructions += now - ledger->mark;
	if (task->is_allocating)
		task->alloc_instructions += now - ledger->mark;
	ledger->mark = now;
}

static void fault_begins(struct ledger *ledger)
{
	if (!ledger->task->faults++)
		ledger->task->fault_instructions = 0;
	ledger->cpu->counts[PAGE_FAULTS]++;
}

static void fault_ends(struct ledger *ledger)
{
	struct task *task = ledger->task;

	/* It began before the first section. */
	if (!task->faults)
		return;
	if (--task->faults)
		return;
	ledger->cpu->counts[FAULT_INSTRUCTIONS] += task->fault_instructions;
	histogram_add(&ledger->latencies[LATENCY_FAULT], task->fault_instructions);
}

static void alloc_begins(struct task *task)
{
	task->is_allocating = true;
	task->alloc_instructions = 0;
}

static void alloc_ends(struct ledger *ledger, bool has_failed)
{
	struct task *task = ledger->task;
	uint64_t *counts = ledger->cpu->counts;

	if (!task->is_allocating)
		return;
	task->is_allocating = false;
	counts[ALLOCS]++;
	counts[ALLOC_FAILURES] += has_failed;
	counts[ALLOC_INSTRUCTIONS] += task->alloc_instructions;
	histogram_add(&ledger->latencies[LATENCY_ALLOC], task->alloc_instructions);
}

static bool task_comes(struct ledger *ledger, uint64_t id)
{
	/* Every CPU has an idle task, each with id 0. */
	struct task *task = machine_task(ledger->machine, id ? id : ledger->index);

	if (!task)
		return false;
	settle(ledger);
	ledger->task = task;
	return true;
}

static void batch_is_flushed(struct ledger *ledger)
{
	struct task *task = ledger->task;

	/* Nothing was added since its last flush: it is the batch of a pool. */
	if (!task->batch)
		ledger->asks = SHOOTDOWNS_DRAIN;
	else if (!task->batch_eligible)
		ledger->asks = SHOOTDOWNS_UNMAP;
	else if (task->batch_eligible == task->batch)
		ledger->asks = SHOOTDOWNS_ELIGIBLE;
	else
		ledger->asks = SHOOTDOWNS_MIXED;
	task->batch = 0;
	task->batch_eligible = 0;
}

static enum counter cause(const struct ledger *asking, enum flush flush)
{
	const unsigned int *reasons = asking->task->reasons;
	enum counter asks = flush == FLUSH_BATCH ? asking->asks : SHOOTDOWNS_MM;

	if (reasons[TOLL_LAB_REASON_COMPACTION])
		return asks == SHOOTDOWNS_ELIGIBLE || asks == SHOOTDOWNS_DRAIN ?
			       SHOOTDOWNS_COMPACTION_ELIGIBLE :
			       SHOOTDOWNS_COMPACTION;
	if (reasons[TOLL_LAB_REASON_NUMA])
		return SHOOTDOWNS_NUMA;
	return asks;
}

static void flush_begins(struct ledger *ledger, uint64_t asking_cpu, bool is_batch)
{
	const struct ledger *asking =
		asking_cpu < MAX_CPUS ? ledger->machine->ledgers[asking_cpu] : NULL;

	ledger->flush = is_batch ? FLUSH_BATCH : FLUSH_SPACE;
	if (asking && asking != ledger)
		ledger->cpu->counts[cause(asking, ledger->flush)]++;
}

static void reason(struct task *task, uint64_t which, int change)
{
	if (which < TOLL_LAB_REASONS && (change > 0 || task->reasons[which]))
		task->reasons[which] += change;
}

bool ledger_hear(struct ledger *ledger, struct said said, uint64_t unfinished)
{
	struct task *task = ledger->task;

	settle_open(ledger, unfinished);
	switch (said.what) {
	case TOLL_LAB_TASK:
		return task_comes(ledger, said.first);
	case TOLL_LAB_FAULT_BEGIN:
		fault_begins(ledger);
		break;
	case TOLL_LAB_FAULT_END:
		fault_ends(ledger);
		break;
	case TOLL_LAB_IRQ_ENTER:
		ledger->interrupts++;
		ledger->cpu->counts[INTERRUPTS]++;
		break;
	case TOLL_LAB_IRQ_EXIT:
		ledger->interrupts -= ledger->interrupts > 0;
		break;
	case TOLL_LAB_UNMAP:
		ledger->cpu->counts[said.first & PTE_WRITABLE ? UNMAPPED_RW : UNMAPPED_RO]++;
		break;
	case TOLL_LAB_BATCH_ADD:
		task->batch++;
		task->batch_eligible += said.second;
		break;
	case TOLL_LAB_BATCH_FLUSH:
		batch_is_flushed(ledger);
		break;
	case TOLL_LAB_FLUSH_BEGIN:
		flush_begins(ledger, said.first, !said.second);
		break;
	case TOLL_LAB_FLUSH_END:
		ledger->flush = FLUSH_NONE;
		break;
	case TOLL_LAB_FLUSH_KERNEL:
		/* The requesting CPU runs it too, but not in an interrupt. */
		ledger->cpu->counts[SHOOTDOWNS_KERNEL] += ledger->interrupts > 0;
		break;
	case TOLL_LAB_REASON_BEGIN:
		reason(task, said.first, 1);
		break;
	case TOLL_LAB_REASON_END:
		reason(task, said.first, -1);
		break;
	case TOLL_LAB_ALLOC_BEGIN:
		alloc_begins(task);
		break;
	case TOLL_LAB_ALLOC_END:
		alloc_ends(ledger, said.first);
		break;
	}
	return true;
}
