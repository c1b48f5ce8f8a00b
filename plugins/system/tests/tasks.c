/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of the state derived from a guest kernel's messages: two CPUs, and a few tasks.
 */
#include "../tasks.h"

#include "../../user/tests/check.h"

#include <stdlib.h>
#include <string.h>

#define PTE_RO 1
#define PTE_RW 3
#define AN_MM 0xffff888000001000ull

static struct cpu cpus[2];
static struct ledger ledgers[2];
static struct machine *machine;

static void start(void)
{
	machine = machine_new();
	memset(cpus, 0, sizeof(cpus));
	for (unsigned int i = 0; i < 2; i++) {
		if (!machine || !ledger_init(&ledgers[i], machine, i, &cpus[i])) {
			printf("no memory\n");
			exit(1);
		}
	}
}

static void say(unsigned int cpu, uint64_t what, uint64_t first, uint64_t second)
{
	EXPECT("memory", ledger_hear(&ledgers[cpu], (struct said){ what, first, second }, 0), true);
}

static void run(unsigned int cpu, uint64_t instructions)
{
	cpus[cpu].counts[INSTRUCTIONS_KERNEL] += instructions;
}

static void interrupt(unsigned int cpu, uint64_t instructions)
{
	say(cpu, TOLL_LAB_IRQ_ENTER, 0, 0);
	run(cpu, instructions);
	say(cpu, TOLL_LAB_IRQ_EXIT, 0, 0);
}

/* Faults or allocations of this many instructions, in the histogram of a CPU. */
static uint64_t latencies_of(unsigned int cpu, enum latency latency, uint64_t instructions)
{
	return ledgers[cpu].latencies[latency].counts[histogram_bucket(instructions)];
}

static uint64_t faults_of(unsigned int cpu, uint64_t instructions)
{
	return latencies_of(cpu, LATENCY_FAULT, instructions);
}

/* Returns a task's kernel instructions in a new snapshot. */
static uint64_t instructions(unsigned int snapshot, uint64_t id)
{
	machine_snapshot(machine, snapshot);
	return machine_task(machine, id)->snapshots[snapshot][INSTRUCTIONS_KERNEL];
}

static void processes(void)
{
	start();
	run(0, 100);
	say(0, TOLL_LAB_TASK, 7ull << 32 | 7, 0);
	run(0, 30);
	say(0, TOLL_LAB_TASK, 7ull << 32 | 8, 0);
	run(0, 5);
	/* The first task continues on the other CPU. */
	say(1, TOLL_LAB_TASK, 7ull << 32 | 7, 0);
	run(1, 2);
	EXPECT("before the first switch", instructions(0, 0), 100);
	EXPECT("on both CPUs", instructions(0, 7ull << 32 | 7), 32);
	EXPECT("a thread", instructions(0, 7ull << 32 | 8), 5);
	/* A second snapshot, after more of the thread and of CPU 1's idle task. */
	run(0, 3);
	say(1, TOLL_LAB_TASK, 0, 0);
	run(1, 50);
	EXPECT("went on", instructions(1, 7ull << 32 | 8), 8);
	EXPECT("idle", instructions(1, 1), 50);
	EXPECT("the first stays", instructions(1, 7ull << 32 | 7), 32);
	machine_free(machine);
}

static void faults(void)
{
	start();
	say(0, TOLL_LAB_TASK, 7, 0);
	run(0, 1000);
	say(0, TOLL_LAB_FAULT_BEGIN, 0, 0);
	run(0, 10);
	interrupt(0, 500);
	run(0, 1);
	/* It sleeps, another task runs and faults, and it continues elsewhere. */
	say(0, TOLL_LAB_TASK, 8, 0);
	say(0, TOLL_LAB_FAULT_BEGIN, 0, 0);
	run(0, 4);
	say(0, TOLL_LAB_FAULT_END, 0, 0);
	run(1, 300);
	say(1, TOLL_LAB_TASK, 7, 0);
	run(1, 2);
	say(1, TOLL_LAB_FAULT_END, 0, 0);
	EXPECT("without interrupts and others", faults_of(1, 13), 1);
	EXPECT("the other one", faults_of(0, 4), 1);
	EXPECT("faults", cpus[0].counts[PAGE_FAULTS], 2);
	EXPECT("of the other one", cpus[0].counts[FAULT_INSTRUCTIONS], 4);
	EXPECT("of the first", cpus[1].counts[FAULT_INSTRUCTIONS], 13);
	EXPECT("interrupts", cpus[0].counts[INTERRUPTS], 1);
	/* The end of one that began before the first message. */
	say(1, TOLL_LAB_FAULT_END, 0, 0);
	EXPECT("max", ledgers[1].latencies[LATENCY_FAULT].max, 13);
	machine_free(machine);
}

static void allocations(void)
{
	start();
	say(0, TOLL_LAB_TASK, 7, 0);
	run(0, 1000);
	say(0, TOLL_LAB_ALLOC_BEGIN, 0, 0);
	run(0, 20);
	/* It waits for the interrupts on top of it, so their work counts. */
	interrupt(0, 500);
	/*
	 * It reclaims and sleeps; another task allocates, with its own interrupt; it
	 * continues elsewhere.
	 */
	say(0, TOLL_LAB_TASK, 8, 0);
	say(0, TOLL_LAB_ALLOC_BEGIN, 0, 0);
	run(0, 4);
	interrupt(0, 30);
	say(0, TOLL_LAB_ALLOC_END, 1, 0);
	run(1, 300);
	say(1, TOLL_LAB_TASK, 7, 0);
	run(1, 2);
	say(1, TOLL_LAB_ALLOC_END, 0, 0);
	run(1, 99);
	EXPECT("with interrupts, without others", latencies_of(1, LATENCY_ALLOC, 522), 1);
	EXPECT("its max", ledgers[1].latencies[LATENCY_ALLOC].max, 522);
	EXPECT("the other one", latencies_of(0, LATENCY_ALLOC, 34), 1);
	EXPECT("one each", cpus[0].counts[ALLOCS] + 10 * cpus[1].counts[ALLOCS], 11);
	EXPECT("one failed", cpus[0].counts[ALLOC_FAILURES], 1);
	EXPECT("the other one did not", cpus[1].counts[ALLOC_FAILURES], 0);
	EXPECT("sum", cpus[0].counts[ALLOC_INSTRUCTIONS] + cpus[1].counts[ALLOC_INSTRUCTIONS], 556);
	/* The next one starts at 0. */
	say(1, TOLL_LAB_ALLOC_BEGIN, 0, 0);
	run(1, 3);
	say(1, TOLL_LAB_ALLOC_END, 0, 0);
	EXPECT("the next one", latencies_of(1, LATENCY_ALLOC, 3), 1);
	EXPECT("no fault", cpus[0].counts[PAGE_FAULTS] + cpus[1].counts[PAGE_FAULTS], 0);
	machine_free(machine);
}

/* Instructions that are counted in a block but not run yet do not belong to the fault. */
static void unfinished(void)
{
	start();
	run(0, 20);
	ledger_hear(&ledgers[0], (struct said){ TOLL_LAB_FAULT_BEGIN, 0, 0 }, 8);
	run(0, 5);
	ledger_hear(&ledgers[0], (struct said){ TOLL_LAB_FAULT_END, 0, 0 }, 3);
	EXPECT("8 of the first block, 2 of the second", faults_of(0, 10), 1);
	machine_free(machine);
}

/* CPU 0 flushes a batch of two pages, eligible or not; CPU 1 is interrupted for it. */
static void flush_batch(bool first, bool second)
{
	say(0, TOLL_LAB_BATCH_ADD, PTE_RO, first);
	say(0, TOLL_LAB_BATCH_ADD, PTE_RO, second);
	say(0, TOLL_LAB_BATCH_FLUSH, 0, 0);
	say(0, TOLL_LAB_FLUSH_BEGIN, 0, 0);
	EXPECT("a batch", ledgers[0].flush, FLUSH_BATCH);
	say(0, TOLL_LAB_FLUSH_END, 0, 0);
	EXPECT("over", ledgers[0].flush, FLUSH_NONE);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, 0);
	say(1, TOLL_LAB_FLUSH_END, 0, 0);
}

static void causes(void)
{
	const uint64_t *got = cpus[1].counts;

	start();
	flush_batch(true, true);
	EXPECT("both", got[SHOOTDOWNS_ELIGIBLE], 1);
	flush_batch(false, true);
	EXPECT("one", got[SHOOTDOWNS_MIXED], 1);
	flush_batch(false, false);
	EXPECT("none", got[SHOOTDOWNS_UNMAP], 1);
	flush_batch(true, true);
	EXPECT("which the next batch does not inherit", got[SHOOTDOWNS_ELIGIBLE], 2);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, AN_MM);
	EXPECT("a space", ledgers[1].flush, FLUSH_SPACE);
	EXPECT("munmap", got[SHOOTDOWNS_MM], 1);
	say(0, TOLL_LAB_REASON_BEGIN, TOLL_LAB_REASON_NUMA, 0);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, AN_MM);
	EXPECT("NUMA scan", got[SHOOTDOWNS_NUMA], 1);
	say(0, TOLL_LAB_REASON_END, TOLL_LAB_REASON_NUMA, 0);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, AN_MM);
	EXPECT("munmap", got[SHOOTDOWNS_MM], 2);
	say(0, TOLL_LAB_REASON_BEGIN, TOLL_LAB_REASON_COMPACTION, 0);
	flush_batch(true, false);
	EXPECT("compaction", got[SHOOTDOWNS_COMPACTION], 1);
	flush_batch(true, true);
	EXPECT("compaction, both", got[SHOOTDOWNS_COMPACTION_ELIGIBLE], 1);
	say(0, TOLL_LAB_BATCH_FLUSH, 0, 0);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, 0);
	EXPECT("compaction, what waited", got[SHOOTDOWNS_COMPACTION_ELIGIBLE], 2);
	say(0, TOLL_LAB_REASON_END, TOLL_LAB_REASON_COMPACTION, 0);
	say(0, TOLL_LAB_BATCH_FLUSH, 0, 0);
	say(1, TOLL_LAB_FLUSH_BEGIN, 0, 0);
	EXPECT("drain", got[SHOOTDOWNS_DRAIN], 1);
	for (enum counter counter = SHOOTDOWNS_ELIGIBLE; counter <= SHOOTDOWNS_KERNEL; counter++)
		EXPECT("the one that asks is not interrupted", cpus[0].counts[counter], 0);
	say(0, TOLL_LAB_FLUSH_KERNEL, 0, 0);
	EXPECT("nor is it for kernel addresses", cpus[0].counts[SHOOTDOWNS_KERNEL], 0);
	say(1, TOLL_LAB_IRQ_ENTER, 0, 0);
	say(1, TOLL_LAB_FLUSH_KERNEL, 0, 0);
	EXPECT("kernel", got[SHOOTDOWNS_KERNEL], 1);
	machine_free(machine);
}

static void unmaps(void)
{
	start();
	say(0, TOLL_LAB_UNMAP, PTE_RO, 0);
	say(0, TOLL_LAB_UNMAP, PTE_RO, 0);
	say(0, TOLL_LAB_UNMAP, PTE_RW, 0);
	EXPECT("read-only", cpus[0].counts[UNMAPPED_RO], 2);
	EXPECT("writable", cpus[0].counts[UNMAPPED_RW], 1);
	machine_free(machine);
}

static void nonsense(void)
{
	start();
	say(0, 12345, 1, 2);
	say(0, TOLL_LAB_IRQ_EXIT, 0, 0);
	EXPECT("no interrupt", ledgers[0].interrupts, 0);
	say(0, TOLL_LAB_REASON_END, TOLL_LAB_REASON_NUMA, 0);
	say(0, TOLL_LAB_REASON_BEGIN, TOLL_LAB_REASONS, 0);
	say(0, TOLL_LAB_FLUSH_BEGIN, 1ull << 40, 0);
	EXPECT("from no CPU", cpus[0].counts[SHOOTDOWNS_UNMAP], 0);
	say(0, TOLL_LAB_ALLOC_END, 1, 0);
	EXPECT("no allocation", cpus[0].counts[ALLOCS] + cpus[0].counts[ALLOC_FAILURES], 0);
	machine_free(machine);
}

int main(void)
{
	processes();
	faults();
	allocations();
	unfinished();
	causes();
	unmaps();
	nonsense();
	return finish("system/tasks");
}
