// SPDX-License-Identifier: GPL-2.0-only
/*
 * Costs of operations on this machine, measured while they happen, and latencies of
 * faults by kind.
 *
 * A sample is the time that the task itself ran: time in which it waited or other tasks
 * had its CPU is subtracted, and so are interrupts and stolen time where the scheduler
 * accounts for them (CONFIG_IRQ_TIME_ACCOUNTING, CONFIG_PARAVIRT_TIME_ACCOUNTING). No
 * sample is dropped because of them: else operations that are longer than a tick would
 * have no samples, and would seem as cheap as the shortest of them.
 *
 * samples.c makes a cost of the samples.
 */

#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/cputime.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "internal.h"

/*
 * One of this many faults is measured, alternately as a whole and its clearing; each
 * huge page that is cleared is. A prime number, because faults come in patterns: a fault
 * that reads a page is followed by its own retry. A measurement takes 1,300 instructions:
 * this rate keeps all faults of a machine without profiles below 1 % more.
 */
#define FAULTS_A_SAMPLE		509
/* Reclaim of fewer pages gives no sample: it says little about the cost of one. */
#define PAGES_A_SAMPLE		16

DEFINE_STATIC_KEY_FALSE(econ_watch_key);

unsigned long econ_frozen_costs;
bool econ_faults_counted;
struct econ_samples econ_samples[ECON_COSTS];
atomic_long_t econ_fault_times[ECON_FAULT_KINDS][TOLLFREE_HISTOGRAM_BUCKETS];

static DEFINE_SPINLOCK(samples_lock); /* protects econ_samples */
DEFINE_PER_CPU(int, econ_faults_left);
static DEFINE_PER_CPU(unsigned int, faults_seen);

/* Time in which the current task did not run, at a time after its start. */
static u64 econ_disturbances(u64 now)
{
	return now - task_sched_runtime(current);
}

/*
 * The clock is read last here and first in __econ_watch_end(), so that the time between
 * the two is not that of these functions.
 */
void __econ_watch_begin(struct econ_watch *watch)
{
	watch->disturbances = econ_disturbances(ktime_get_ns());
	watch->begin = ktime_get_ns();
}

static void econ_sample_locked(enum econ_cost which, u64 ns)
{
	struct econ_samples *all = &econ_samples[which];

	/* The cost so far is one: the first measurement alone says little. */
	if (!all->seen)
		econ_samples_add(all, econ_costs.ns[which], ktime_get_ns());
	if (econ_samples_add(all, ns, ktime_get_ns()))
		WRITE_ONCE(econ_costs.ns[which], econ_samples_cost(all));
}

/**
 * econ_sample - add a sample to a cost
 * @which: the cost
 * @ns: sample in nanoseconds
 *
 * Context: any; the sample is dropped if the lock is taken.
 */
void econ_sample(enum econ_cost which, u64 ns)
{
	unsigned long flags;

	if (econ_is_frozen(which))
		return;
	/* Drop the sample if the lock is taken. */
	if (!spin_trylock_irqsave(&samples_lock, flags))
		return;
	econ_sample_locked(which, ns);
	spin_unlock_irqrestore(&samples_lock, flags);
}

/**
 * econ_forget_samples - drop all samples; costs stay until there are new ones
 *
 * Context: any; takes a spinlock.
 */
void econ_forget_samples(void)
{
	guard(spinlock_irqsave)(&samples_lock);
	memset(econ_samples, 0, sizeof(econ_samples));
}

/* Time that the task ran from the start of a measurement to @end. */
static u64 econ_ran(const struct econ_watch *watch, u64 end)
{
	s64 disturbed = econ_disturbances(end) - watch->disturbances;

	/* Two clocks: the difference of their rates may exceed what is left. */
	return max_t(s64, end - watch->begin - disturbed, 0);
}

/**
 * __econ_watch_end - end a measurement
 * @watch: argument of econ_watch_begin(); it is on
 *
 * Context: any.
 * Return: time that the task ran, in nanoseconds.
 */
u64 __econ_watch_end(struct econ_watch *watch)
{
	return econ_ran(watch, ktime_get_ns());
}

void __econ_watch_cost(struct econ_watch *watch, enum econ_cost which)
{
	econ_sample(which, __econ_watch_end(watch));
}

void __econ_clear_begin(void)
{
	__econ_watch_begin(&current->econ.clearing);
}

void __econ_clear_end(void)
{
	__econ_watch_cost(&current->econ.clearing, ECON_CLEAR_PAGE);
}

void __econ_reclaimed(struct econ_watch *watch, unsigned int pages)
{
	if (pages >= PAGES_A_SAMPLE)
		econ_sample(ECON_RECLAIM_PAGE,
			    div_u64(__econ_watch_end(watch), pages));
}

/* Faults */

static void econ_measure_next(void *unused)
{
	this_cpu_write(econ_faults_left, 0);
}

/**
 * econ_count_faults - apply a change of econ_faults_counted
 *
 * Each CPU measures its next fault.
 *
 * Context: may sleep.
 */
void econ_count_faults(void)
{
	on_each_cpu(econ_measure_next, NULL, 1);
}

/* Return: the kind of a fault, from its events. */
static enum econ_fault_kind econ_fault_kind_of(unsigned int seen, vm_fault_t ret)
{
	bool is_huge = seen & ECON_SAW_HUGE;

	if (ret & VM_FAULT_ERROR)
		return ECON_FAULT_OTHER;
	if (seen & ECON_SAW_RECLAIM && seen & ECON_SAW_TRY)
		return is_huge ? ECON_FAULT_HUGE_RECLAIMED :
				 ECON_FAULT_FELL_BACK_RECLAIMED;
	if (seen & ECON_SAW_COMPACTION && seen & ECON_SAW_TRY)
		return is_huge ? ECON_FAULT_HUGE_COMPACTED :
				 ECON_FAULT_FELL_BACK_COMPACTED;
	if (is_huge)
		return seen & ECON_SAW_ZEROED ? ECON_FAULT_HUGE_ZEROED :
						ECON_FAULT_HUGE_CLEARED;
	if (seen & ECON_SAW_TRY)
		return ECON_FAULT_FELL_BACK;
	if (seen & ECON_SAW_SWAP)
		return ECON_FAULT_SWAP;
	if (seen & ECON_SAW_FILE)
		return ECON_FAULT_FILE;
	if (seen & ECON_SAW_PROTECTION)
		return ECON_FAULT_PROTECTION;
	if (seen & ECON_SAW_ZERO_PAGE)
		return ECON_FAULT_ZERO_PAGE;
	if (seen & ECON_SAW_LARGE)
		return ECON_FAULT_LARGE;
	return seen & ECON_SAW_ANON ? ECON_FAULT_BASE : ECON_FAULT_OTHER;
}

void __econ_fault_saw_entry(const struct vm_fault *vmf)
{
	if (vmf->pte && !pte_present(vmf->orig_pte))
		econ_fault_saw(ECON_SAW_SWAP);
	else if (vmf->pte)
		econ_fault_saw(vmf->flags & FAULT_FLAG_WRITE ? ECON_SAW_PROTECTION : 0);
	else if (!vma_is_anonymous(vmf->vma))
		econ_fault_saw(ECON_SAW_FILE);
	else
		econ_fault_saw(vmf->flags & FAULT_FLAG_WRITE ? ECON_SAW_ANON :
							       ECON_SAW_ZERO_PAGE);
}

/* Blocks that are made pay for the attempts that make none. */
void __econ_compacted(struct econ_watch *watch, unsigned int order, unsigned int in_way,
		      bool is_made)
{
	enum econ_cost cost = in_way ? ECON_MOVE_PAGE : ECON_COMPACT_BLOCK;
	u64 ns;

	if (order != HPAGE_PMD_ORDER || econ_is_frozen(cost))
		return;
	ns = __econ_watch_end(watch);
	if (in_way)
		ns /= in_way;
	guard(spinlock_irqsave)(&samples_lock);
	if (econ_samples_charge(&econ_samples[cost], &ns, is_made, econ_costs.ns[cost]))
		econ_sample_locked(cost, ns);
}

void __econ_fault_begin(void)
{
	current->econ.seen = ECON_SEES_ENTRY;
	current->econ.cleared_ns = 0;
	/* After a migration the next fault of the other CPU is measured. */
	if (this_cpu_read(econ_faults_left) <= 0) {
		this_cpu_write(econ_faults_left,
			       READ_ONCE(econ_faults_counted) ? 1 :
								FAULTS_A_SAMPLE);
		if (this_cpu_inc_return(faults_seen) % 2 &&
		    !econ_is_frozen(ECON_CLEAR_PAGE))
			current->econ.seen |= ECON_SEES_CLEARING;
	}
	__econ_watch_begin(&current->econ.fault);
}

void __econ_fault_end(vm_fault_t ret)
{
	unsigned int seen = current->econ.seen;
	enum econ_fault_kind kind;
	u64 end = ktime_get_ns();
	u64 latency = end - current->econ.fault.begin;
	u64 ns = econ_ran(&current->econ.fault, end);

	current->econ.seen = 0;
	kind = econ_fault_kind_of(seen, ret);
	if (READ_ONCE(econ_faults_counted))
		atomic_long_inc(&econ_fault_times[kind]
						 [tollfree_histogram_bucket(latency)]);
	/* The wait is the cost. */
	if (ret & VM_FAULT_MAJOR)
		econ_sample(ECON_READ_AGAIN, latency);
	/* Measuring the clearing took time as well. */
	if (seen & ECON_SEES_CLEARING)
		return;
	if (kind == ECON_FAULT_BASE)
		econ_sample(ECON_FAULT, ns);
	else if (kind == ECON_FAULT_HUGE_ZEROED)
		econ_sample(ECON_HUGE_FAULT, ns);
	else if (kind == ECON_FAULT_HUGE_CLEARED &&
		 ns > current->econ.cleared_ns && current->econ.cleared_ns)
		econ_sample(ECON_HUGE_FAULT, ns - current->econ.cleared_ns);
}

void __econ_zero_huge(struct folio *folio, unsigned long address)
{
	struct econ_watch watch;

	__econ_watch_begin(&watch);
	folio_zero_user(folio, address);
	current->econ.cleared_ns = __econ_watch_end(&watch);
	econ_sample(ECON_CLEAR_HUGE, current->econ.cleared_ns);
}
