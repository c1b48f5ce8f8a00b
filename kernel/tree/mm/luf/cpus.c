// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flush of the TLBs of the CPUs of a batch. CPUs that have flushed since the batch was
 * completed are not interrupted. include/linux/luf.h says when a CPU has.
 */

#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <asm/tlbflush.h>

#include "internal.h"

DEFINE_PER_CPU(u64, luf_flushed_since);
DEFINE_PER_CPU(unsigned long[LUF_COUNTS], luf_counts);

/* Separate from the task's own batch, which may be in use. */
static DEFINE_PER_CPU(struct arch_tlbflush_unmap_batch, luf_cpus);

static bool luf_cpu_has_flushed(unsigned int cpu, u64 completed)
{
	return READ_ONCE(per_cpu(luf_flushed_since, cpu)) >= completed;
}

unsigned int luf_flush_cpus(const struct cpumask *cpus, u64 completed)
{
	struct arch_tlbflush_unmap_batch *own = &get_cpu_var(luf_cpus);
	unsigned int cpu, interrupted = 0, spared = 0;

	cpumask_clear(&own->cpumask);
	for_each_cpu(cpu, cpus) {
		if (luf_cpu_has_flushed(cpu, completed)) {
			spared++;
		} else {
			cpumask_set_cpu(cpu, &own->cpumask);
			interrupted++;
		}
	}
	luf_count_many(LUF_CPUS_INTERRUPTED, interrupted);
	luf_count_many(LUF_CPUS_SPARED, spared);
	if (interrupted)
		arch_tlbbatch_flush(own);
	put_cpu_var(luf_cpus);
	return interrupted;
}
