/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of mm/ asks the estimator. Each call stands where stock code has
 * decided to do something, and may only say no to it; what the user has decided
 * by MADV_HUGEPAGE or MADV_COLLAPSE is not asked about.
 */
#ifndef _MM_ECON_HOOKS_H
#define _MM_ECON_HOOKS_H

#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "model.h"

/* What a fault has seen on its way. */
enum econ_saw {
	ECON_SAW_ANON = BIT(0),
	ECON_SAW_FILE = BIT(1),
	ECON_SAW_SWAP = BIT(2),
	ECON_SAW_PROTECTION = BIT(3),
	ECON_SAW_ZERO_PAGE = BIT(4),
	/* a block of more than a page, below a huge one */
	ECON_SAW_LARGE = BIT(5),
	/* a huge page was asked for, and was there */
	ECON_SAW_TRY = BIT(6),
	ECON_SAW_HUGE = BIT(7),
	ECON_SAW_ZEROED = BIT(8),
	/* memory was compacted or reclaimed by the task itself */
	ECON_SAW_COMPACTION = BIT(9),
	ECON_SAW_RECLAIM = BIT(10),
};

#ifdef CONFIG_ECON

/**
 * struct econ_watch - something that is being measured
 * @begin: when it began
 * @disturbances: what had happened to the task by then
 * @is_on: whether it is measured at all
 */
struct econ_watch {
	u64 begin;
	u64 disturbances;
	bool is_on;
};

/* The machine observes or acts. */
DECLARE_STATIC_KEY_FALSE(econ_key);

bool __econ_may_be_huge(struct vm_fault *vmf);
unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders);
gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp);
bool __econ_may_promote(struct vm_area_struct *vma, unsigned long address);

/* Faults or costs are measured. */
DECLARE_STATIC_KEY_FALSE(econ_watch_key);

void __econ_watch_begin(struct econ_watch *watch);
bool __econ_watch_end(struct econ_watch *watch, u64 *ns);
void __econ_watch_cost(struct econ_watch *watch, enum econ_price which);
void __econ_fault_begin(struct econ_watch *watch);
void __econ_fault_end(struct econ_watch *watch, vm_fault_t ret);
void __econ_see_entry(const struct vm_fault *vmf);
void __econ_zero_huge(struct folio *folio, unsigned long address);
void __econ_compacted(struct econ_watch *watch, unsigned int order);

static inline bool econ_is_asked(const struct vm_area_struct *vma)
{
	return static_branch_unlikely(&econ_key) &&
	       unlikely(rcu_access_pointer(vma->vm_mm->econ));
}

/**
 * econ_may_be_huge - whether a fault may make a region huge
 * @vmf: the fault; nothing of the region is mapped
 *
 * Return: false if that does not pay.
 */
static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return !econ_is_asked(vmf->vma) || __econ_may_be_huge(vmf);
}

/**
 * econ_orders - which blocks a fault may map
 * @vmf: the fault
 * @orders: a bit for each order that fits, smaller than a huge page's
 *
 * Return: those of @orders that pay.
 */
static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return econ_is_asked(vmf->vma) ? __econ_orders(vmf, orders) : orders;
}

/**
 * econ_gfp - how hard a fault may try to get a block
 * @vma: where
 * @address: where in it
 * @gfp: as hard as stock code would
 *
 * Return: @gfp, without what does not pay.
 */
static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return econ_is_asked(vma) ? __econ_gfp(vma, address, gfp) : gfp;
}

/**
 * econ_may_promote - whether khugepaged may look at a region
 * @vma: where
 * @address: the region
 *
 * Return: false if copying it together does not pay.
 */
static inline bool econ_may_promote(struct vm_area_struct *vma,
				    unsigned long address)
{
	return !econ_is_asked(vma) || __econ_may_promote(vma, address);
}

/**
 * econ_watch_begin - an operation begins that has a price
 * @watch: for econ_watch_end()
 */
static inline void econ_watch_begin(struct econ_watch *watch)
{
	watch->is_on = static_branch_unlikely(&econ_watch_key);
	if (watch->is_on)
		__econ_watch_begin(watch);
}

/**
 * econ_watch_end - it is done
 * @watch: what econ_watch_begin() was given
 * @which: whose price it tells
 */
static inline void econ_watch_end(struct econ_watch *watch,
				  enum econ_price which)
{
	if (watch->is_on)
		__econ_watch_cost(watch, which);
}

/* A page fault begins. */
static inline void econ_fault_begin(struct econ_watch *watch)
{
	watch->is_on = false;
	if (static_branch_unlikely(&econ_watch_key))
		__econ_fault_begin(watch);
}

/**
 * econ_fault_end - it is handled
 * @watch: what econ_fault_begin() was given
 * @ret: what came of it
 */
static inline void econ_fault_end(struct econ_watch *watch, vm_fault_t ret)
{
	if (watch->is_on)
		__econ_fault_end(watch, ret);
}

/* Something of a fault, for what it will be counted as. */
static inline void econ_see(enum econ_saw what)
{
	if (static_branch_unlikely(&econ_watch_key))
		current->econ.seen |= what;
}

/**
 * econ_see_entry - what a fault is, by the entry that it finds
 * @vmf: the fault; its entry is known
 */
static inline void econ_see_entry(const struct vm_fault *vmf)
{
	if (static_branch_unlikely(&econ_watch_key))
		__econ_see_entry(vmf);
}

/**
 * econ_compacted - direct compaction has made a block
 * @watch: what econ_watch_begin() was given
 * @order: of the block
 */
static inline void econ_compacted(struct econ_watch *watch, unsigned int order)
{
	if (watch->is_on)
		__econ_compacted(watch, order);
}

/**
 * econ_zero_huge - clears a huge page for a fault
 * @folio: the page
 * @address: what the fault was about
 */
static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	if (static_branch_unlikely(&econ_watch_key))
		__econ_zero_huge(folio, address);
	else
		folio_zero_user(folio, address);
}

#else /* !CONFIG_ECON */

struct econ_watch {
};

static inline void econ_watch_begin(struct econ_watch *watch)
{
}

static inline void econ_watch_end(struct econ_watch *watch,
				  enum econ_price which)
{
}

static inline void econ_fault_begin(struct econ_watch *watch)
{
}

static inline void econ_fault_end(struct econ_watch *watch, vm_fault_t ret)
{
}

static inline void econ_see(enum econ_saw what)
{
}

static inline void econ_see_entry(const struct vm_fault *vmf)
{
}

static inline void econ_compacted(struct econ_watch *watch, unsigned int order)
{
}

static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	folio_zero_user(folio, address);
}

static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return true;
}

static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return orders;
}

static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return gfp;
}

static inline bool econ_may_promote(struct vm_area_struct *vma,
				    unsigned long address)
{
	return true;
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_HOOKS_H */
