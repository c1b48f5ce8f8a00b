/* SPDX-License-Identifier: GPL-2.0-only */
/* Hooks that measure costs and page faults, see measure.c. */
#ifndef _MM_ECON_WATCH_H
#define _MM_ECON_WATCH_H

#include <linux/econ_types.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "model.h"

/* Events of a fault. */
enum econ_saw {
	ECON_SAW_ANON = BIT(0),
	ECON_SAW_FILE = BIT(1),
	ECON_SAW_SWAP = BIT(2),
	ECON_SAW_PROTECTION = BIT(3),
	ECON_SAW_ZERO_PAGE = BIT(4),
	/* a block of several pages, smaller than a huge page */
	ECON_SAW_LARGE = BIT(5),
	/* a huge page was requested; and was available */
	ECON_SAW_TRY = BIT(6),
	ECON_SAW_HUGE = BIT(7),
	ECON_SAW_ZEROED = BIT(8),
	/* direct compaction, direct reclaim */
	ECON_SAW_COMPACTION = BIT(9),
	ECON_SAW_RECLAIM = BIT(10),
	/* the fault is measured; and its clearing is */
	ECON_SEES_ENTRY = BIT(11),
	ECON_SEES_CLEARING = BIT(12),
};

#ifdef CONFIG_ECON

/* Faults or costs are measured. */
DECLARE_STATIC_KEY_FALSE(econ_watch_key);
/* Number of faults until the next one is measured. */
DECLARE_PER_CPU(int, econ_faults_left);

void __econ_watch_begin(struct econ_watch *watch);
u64 __econ_watch_end(struct econ_watch *watch);
void __econ_watch_cost(struct econ_watch *watch, enum econ_cost which);
void __econ_fault_begin(void);
void __econ_fault_end(vm_fault_t ret);
void __econ_clear_begin(void);
void __econ_clear_end(void);
void __econ_fault_saw_entry(const struct vm_fault *vmf);
void __econ_compacted(struct econ_watch *watch, unsigned int order, unsigned int in_way,
		      bool is_made);
void __econ_reclaimed(struct econ_watch *watch, unsigned int pages);

/**
 * econ_watch_begin - begin to measure an operation
 * @watch: for econ_watch_end()
 *
 * Context: any.
 */
static inline void econ_watch_begin(struct econ_watch *watch)
{
	watch->is_on = static_branch_unlikely(&econ_watch_key);
	if (watch->is_on)
		__econ_watch_begin(watch);
}

/**
 * econ_watch_end - end a measurement and add a sample
 * @watch: argument of econ_watch_begin()
 * @which: cost that was measured
 *
 * Context: any; takes a spinlock.
 */
static inline void econ_watch_end(struct econ_watch *watch,
				  enum econ_cost which)
{
	if (watch->is_on)
		__econ_watch_cost(watch, which);
}

/**
 * econ_fault_begin - begin a page fault, and measure one of many
 *
 * Context: a page fault.
 */
static inline void econ_fault_begin(void)
{
	if (!static_branch_unlikely(&econ_watch_key))
		return;
	this_cpu_dec(econ_faults_left);
	if (unlikely(this_cpu_read(econ_faults_left) <= 0))
		__econ_fault_begin();
}

/**
 * econ_fault_end - end a page fault
 * @ret: result of the fault
 *
 * Context: a page fault; takes a spinlock.
 */
static inline void econ_fault_end(vm_fault_t ret)
{
	if (static_branch_unlikely(&econ_watch_key) &&
	    unlikely(current->econ.seen & ECON_SEES_ENTRY))
		__econ_fault_end(ret);
}

/**
 * econ_fault_saw - record an event of a fault, which decides its kind
 * @what: the event
 *
 * Context: any.
 */
static inline void econ_fault_saw(enum econ_saw what)
{
	if (static_branch_unlikely(&econ_watch_key))
		current->econ.seen |= what;
}

/**
 * econ_fault_saw_entry - record the kind of a fault by its page-table entry
 * @vmf: the fault; its entry was read
 *
 * Context: a page fault.
 */
static inline void econ_fault_saw_entry(const struct vm_fault *vmf)
{
	if (static_branch_unlikely(&econ_watch_key) &&
	    unlikely(current->econ.seen & ECON_SEES_ENTRY))
		__econ_fault_saw_entry(vmf);
}

/**
 * econ_clear_begin - begin to measure the allocation of a page in a fault
 * @is_cleared: whether the page is cleared
 *
 * Context: a page fault.
 */
static inline void econ_clear_begin(bool is_cleared)
{
	if (static_branch_unlikely(&econ_watch_key) && is_cleared &&
	    unlikely(current->econ.seen & ECON_SEES_CLEARING))
		__econ_clear_begin();
}

/**
 * econ_clear_end - end the measurement of econ_clear_begin()
 * @is_cleared: argument of econ_clear_begin()
 *
 * Context: a page fault; takes a spinlock.
 */
static inline void econ_clear_end(bool is_cleared)
{
	if (static_branch_unlikely(&econ_watch_key) && is_cleared &&
	    unlikely(current->econ.seen & ECON_SEES_CLEARING))
		__econ_clear_end();
}

/**
 * econ_compacted - add a compaction to the cost of a block
 * @watch: argument of econ_watch_begin()
 * @order: order of the block
 * @is_made: whether it was made
 *
 * Context: any; takes a spinlock.
 */
static inline void econ_compacted(struct econ_watch *watch, unsigned int order,
				  bool is_made)
{
	if (watch->is_on)
		__econ_compacted(watch, order, 0, is_made);
}

/**
 * econ_split_begin - begin to measure the split of a huge page
 * @watch: for econ_watch_end()
 * @folio: the page; other sizes are not measured
 *
 * Context: any.
 */
static inline void econ_split_begin(struct econ_watch *watch,
				    const struct folio *folio)
{
	watch->is_on = static_branch_unlikely(&econ_watch_key) &&
		       folio_order(folio) == HPAGE_PMD_ORDER;
	if (watch->is_on)
		__econ_watch_begin(watch);
}

/**
 * econ_reclaimed - add a sample of the reclaim of a list of pages
 * @watch: argument of econ_watch_begin()
 * @pages: number of reclaimed pages
 *
 * Context: any; takes a spinlock.
 */
static inline void econ_reclaimed(struct econ_watch *watch, unsigned int pages)
{
	if (watch->is_on)
		__econ_reclaimed(watch, pages);
}

#else /* !CONFIG_ECON */

struct econ_watch {
};

static inline void econ_watch_begin(struct econ_watch *watch)
{
}

static inline void econ_watch_end(struct econ_watch *watch,
				  enum econ_cost which)
{
}

static inline void econ_fault_begin(void)
{
}

static inline void econ_fault_end(vm_fault_t ret)
{
}

static inline void econ_fault_saw(enum econ_saw what)
{
}

static inline void econ_fault_saw_entry(const struct vm_fault *vmf)
{
}

static inline void econ_clear_begin(bool is_cleared)
{
}

static inline void econ_clear_end(bool is_cleared)
{
}

static inline void econ_compacted(struct econ_watch *watch, unsigned int order,
				  bool is_made)
{
}

static inline void econ_split_begin(struct econ_watch *watch,
				    const struct folio *folio)
{
}

static inline void econ_reclaimed(struct econ_watch *watch, unsigned int pages)
{
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_WATCH_H */
