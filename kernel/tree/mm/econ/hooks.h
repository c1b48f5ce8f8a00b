/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of mm/ asks the estimator. Each call stands where stock code has
 * decided to do something, and may only say no to it; what the user has decided
 * by MADV_HUGEPAGE or MADV_COLLAPSE is not asked about.
 */
#ifndef _MM_ECON_HOOKS_H
#define _MM_ECON_HOOKS_H

#include <linux/econ_types.h>
#include <linux/jump_label.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
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
	/* somebody asks what it was, and what clearing costs it */
	ECON_SEES_ENTRY = BIT(11),
	ECON_SEES_CLEARING = BIT(12),
};

#ifdef CONFIG_ECON

/**
 * struct econ_compaction - what kcompactd does about a node
 * @watch: what it takes
 * @began_ns: what kcompactd had run before, if it is paid for
 * @nid: the node
 * @order: of the block that is wanted
 * @is_ours: whether it is paid from the node's ledger
 */
struct econ_compaction {
	struct econ_watch watch;
	u64 began_ns;
	int nid;
	unsigned int order;
	bool is_ours;
};

/**
 * struct econ_promotion - what khugepaged is about to do
 * @estimate: what it costs and saves
 * @is_due: it pays, and is to be counted when it is done
 */
struct econ_promotion {
	struct econ_estimate estimate;
	bool is_due;
};

/* The machine observes or acts. */
DECLARE_STATIC_KEY_FALSE(econ_key);

bool __econ_may_be_huge(struct vm_fault *vmf);
unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders,
			    enum econ_kind kind);
gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp);
bool __econ_may_promote(struct econ_promotion *it, struct vm_area_struct *vma,
			unsigned long address, int nid);
void __econ_promoted(const struct econ_promotion *it, struct mm_struct *mm,
		     unsigned long address);
bool __econ_may_demote(struct folio *folio);
struct folio *__econ_take_zeroed(struct vm_area_struct *vma,
				 unsigned long address);

/* ledger.c */
void econ_compaction_begin(struct econ_compaction *it, int nid,
			   unsigned int order);
bool econ_may_compact(struct econ_compaction *it);
void econ_compaction_end(struct econ_compaction *it, bool is_made);

/* prezero.c */
void __econ_was_zeroed(struct folio *folio);
void __econ_put_block(struct folio *folio);
bool __econ_refill(struct zone *zone, unsigned int order, unsigned long mark,
		   int highest_zoneidx, unsigned int alloc_flags);
void __econ_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx);
void econ_drain_all(void);
void __econ_drain_zone(struct zone *zone);
void econ_block_zone(struct zone *zone);
void econ_unblock_zone(struct zone *zone);
unsigned long econ_zeroed_blocks(void);

/* Faults or costs are measured. */
DECLARE_STATIC_KEY_FALSE(econ_watch_key);
/* How many faults go by until one is. */
DECLARE_PER_CPU(int, econ_faults_left);

void __econ_watch_begin(struct econ_watch *watch);
bool __econ_watch_end(struct econ_watch *watch, u64 *ns);
void __econ_watch_cost(struct econ_watch *watch, enum econ_cost which);
void __econ_fault_begin(void);
void __econ_fault_end(vm_fault_t ret);
void __econ_clear_begin(void);
void __econ_clear_end(void);
void __econ_fault_saw_entry(const struct vm_fault *vmf);
void __econ_zero_huge(struct folio *folio, unsigned long address);
void __econ_compacted(struct econ_watch *watch, unsigned int order);
void __econ_pool_flushed(struct econ_watch *watch, unsigned int cpus);
void __econ_refaulted(int nid, unsigned long distance);
void __econ_reclaimed(struct econ_watch *watch, unsigned int pages);

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
	return orders && econ_is_asked(vmf->vma) ?
	       __econ_orders(vmf, orders, ECON_LARGE) : orders;
}

/**
 * econ_swap_orders - which blocks a fault may read from swap
 * @vmf: the fault
 * @orders: a bit for each order that fits, smaller than a huge page's
 *
 * Return: those of @orders that pay.
 */
static inline unsigned long econ_swap_orders(struct vm_fault *vmf,
					     unsigned long orders)
{
	return orders && econ_is_asked(vmf->vma) ?
	       __econ_orders(vmf, orders, ECON_SWAP_IN) : orders;
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
 * econ_may_promote - whether khugepaged may copy a region together
 * @it: for econ_promoted()
 * @vma: where; its mmap lock is held
 * @address: the region, which has been looked at: it can be done
 * @is_khugepaged: false for MADV_COLLAPSE, which is not asked about
 * @nid: the node on which the huge page will be
 *
 * Return: false if that does not pay.
 */
static inline bool econ_may_promote(struct econ_promotion *it,
				    struct vm_area_struct *vma,
				    unsigned long address,
				    bool is_khugepaged, int nid)
{
	it->is_due = false;
	return !is_khugepaged || !econ_is_asked(vma) ||
	       __econ_may_promote(it, vma, address, nid);
}

/**
 * econ_promoted - khugepaged has tried
 * @it: what econ_may_promote() was given
 * @mm: where; its locks are not held
 * @address: the region
 * @is_done: whether it is huge now
 */
static inline void econ_promoted(const struct econ_promotion *it,
				 struct mm_struct *mm, unsigned long address,
				 bool is_done)
{
	if (unlikely(it->is_due) && is_done)
		__econ_promoted(it, mm, address);
}

/**
 * econ_may_demote - whether a huge page may be split that is mostly zeros
 * @folio: the page, of which the caller has a reference
 *
 * Return: false if its walks would cost more than its empty pages are worth.
 */
static inline bool econ_may_demote(struct folio *folio)
{
	return !static_branch_unlikely(&econ_key) || __econ_may_demote(folio);
}

/**
 * econ_watch_begin - an operation begins that has a cost
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
 * @which: whose cost it tells
 */
static inline void econ_watch_end(struct econ_watch *watch,
				  enum econ_cost which)
{
	if (watch->is_on)
		__econ_watch_cost(watch, which);
}

/* A page fault begins. One of many is measured, and its task knows that. */
static inline void econ_fault_begin(void)
{
	if (!static_branch_unlikely(&econ_watch_key))
		return;
	this_cpu_dec(econ_faults_left);
	if (unlikely(this_cpu_read(econ_faults_left) <= 0))
		__econ_fault_begin();
}

/**
 * econ_fault_end - it is handled
 * @ret: what came of it
 */
static inline void econ_fault_end(vm_fault_t ret)
{
	if (static_branch_unlikely(&econ_watch_key) &&
	    unlikely(current->econ.seen & ECON_SEES_ENTRY))
		__econ_fault_end(ret);
}

/* Something of a fault, for what it will be counted as. */
static inline void econ_fault_saw(enum econ_saw what)
{
	if (static_branch_unlikely(&econ_watch_key))
		current->econ.seen |= what;
}

/**
 * econ_fault_saw_entry - what a fault is, by the entry that it finds
 * @vmf: the fault; its entry is known
 */
static inline void econ_fault_saw_entry(const struct vm_fault *vmf)
{
	if (static_branch_unlikely(&econ_watch_key) &&
	    unlikely(current->econ.seen & ECON_SEES_ENTRY))
		__econ_fault_saw_entry(vmf);
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
 * econ_pool_flushed - a pool of pages that waited was flushed
 * @watch: what econ_watch_begin() was given
 * @cpus: how many CPUs that interrupted
 */
static inline void econ_pool_flushed(struct econ_watch *watch,
				     unsigned int cpus)
{
	if (static_branch_unlikely(&econ_key) && cpus)
		__econ_pool_flushed(watch, cpus);
}

/**
 * econ_refaulted - a page is read again
 * @nid: where it had been
 * @memcg: whose limit it was reclaimed for
 * @distance: how many others would have had to stay for it to stay as well
 *
 * What a group's own limit took is not the pools' doing.
 */
static inline void econ_refaulted(int nid, struct mem_cgroup *memcg,
				  unsigned long distance)
{
	if (static_branch_unlikely(&econ_key) &&
	    (!memcg || mem_cgroup_is_root(memcg)))
		__econ_refaulted(nid, distance);
}

/**
 * econ_clear_begin - a page is taken for a fault
 * @is_cleared: whether it is cleared as well
 */
static inline void econ_clear_begin(bool is_cleared)
{
	if (static_branch_unlikely(&econ_watch_key) && is_cleared &&
	    unlikely(current->econ.seen & ECON_SEES_CLEARING))
		__econ_clear_begin();
}

/**
 * econ_clear_end - the page is there
 * @is_cleared: as econ_clear_begin() was told
 */
static inline void econ_clear_end(bool is_cleared)
{
	if (static_branch_unlikely(&econ_watch_key) && is_cleared &&
	    unlikely(current->econ.seen & ECON_SEES_CLEARING))
		__econ_clear_end();
}

/**
 * econ_split_begin - a page is split, of which only huge ones have a cost
 * @watch: for econ_watch_end()
 * @folio: the page
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
 * econ_reclaimed - a list of pages was looked through
 * @watch: what econ_watch_begin() was given
 * @pages: how many were reclaimed
 */
static inline void econ_reclaimed(struct econ_watch *watch, unsigned int pages)
{
	if (watch->is_on)
		__econ_reclaimed(watch, pages);
}

/**
 * econ_alloc_huge - a huge page for a fault
 * @gfp: as for vma_alloc_folio()
 * @vma: where
 * @address: the region
 *
 * Return: one that may have been zeroed ahead, or NULL.
 */
static inline struct folio *econ_alloc_huge(gfp_t gfp,
					    struct vm_area_struct *vma,
					    unsigned long address)
{
	struct folio *folio = NULL;

	if (econ_is_asked(vma))
		folio = __econ_take_zeroed(vma, address);
	return folio ?: vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address,
					true);
}

/* The keeper has marked it, until somebody has seen that. */
static inline bool econ_is_zeroed(const struct folio *folio)
{
	return unlikely(folio->private);
}

/**
 * econ_put_huge - a fault may not have a huge page
 * @folio: as econ_alloc_huge() gave it
 */
static inline void econ_put_huge(struct folio *folio)
{
	if (econ_is_zeroed(folio))
		__econ_put_block(folio);
	else
		folio_put(folio);
}

/**
 * econ_zero_huge - clears a huge page for a fault, unless that was done ahead
 * @folio: as econ_alloc_huge() gave it
 * @address: what the fault was about
 */
static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	if (econ_is_zeroed(folio))
		__econ_was_zeroed(folio);
	else if (static_branch_unlikely(&econ_watch_key))
		__econ_zero_huge(folio, address);
	else
		folio_zero_user(folio, address);
}

/**
 * econ_refill - an allocation found too little in a zone
 * @zone: the zone
 * @order: of the allocation
 * @mark: the watermark that it failed at
 * @highest_zoneidx: of the allocation
 * @alloc_flags: of the allocation
 *
 * Return: true if enough is there now, of what was kept.
 */
static inline bool econ_refill(struct zone *zone, unsigned int order,
			       unsigned long mark, int highest_zoneidx,
			       unsigned int alloc_flags)
{
	return static_branch_unlikely(&econ_key) &&
	       __econ_refill(zone, order, mark, highest_zoneidx, alloc_flags);
}

/**
 * econ_balance - kswapd looks at a node, and has what is kept before it reclaims
 * @pgdat: the node
 * @order: what somebody needs
 * @highest_zoneidx: up to which zone
 */
static inline void econ_balance(pg_data_t *pgdat, unsigned int order,
				int highest_zoneidx)
{
	if (static_branch_unlikely(&econ_key))
		__econ_balance(pgdat, order, highest_zoneidx);
}

/* What is kept of a zone is in the allocator then. May sleep. */
static inline void econ_drain_zone(struct zone *zone)
{
	if (static_branch_unlikely(&econ_key))
		__econ_drain_zone(zone);
}

/* How many pages are kept. */
static inline unsigned long econ_pages(void)
{
	if (static_branch_unlikely(&econ_key))
		return econ_zeroed_blocks() * HPAGE_PMD_NR;
	return 0;
}

#else /* !CONFIG_ECON */

struct econ_watch {
};

struct econ_compaction {
};

struct econ_promotion {
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

static inline void econ_compacted(struct econ_watch *watch, unsigned int order)
{
}

static inline void econ_pool_flushed(struct econ_watch *watch,
				     unsigned int cpus)
{
}

static inline void econ_refaulted(int nid, struct mem_cgroup *memcg,
				  unsigned long distance)
{
}

static inline void econ_clear_begin(bool is_cleared)
{
}

static inline void econ_clear_end(bool is_cleared)
{
}

static inline void econ_split_begin(struct econ_watch *watch,
				    const struct folio *folio)
{
}

static inline void econ_reclaimed(struct econ_watch *watch, unsigned int pages)
{
}

static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	folio_zero_user(folio, address);
}

/* Not even their arguments may leave a trace in the objects. */
#define econ_alloc_huge(gfp, vma, address)	\
	vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address, true)
#define econ_drain_zone(...)	do { } while (0)
#define econ_may_promote(...)	true

static inline void econ_put_huge(struct folio *folio)
{
	folio_put(folio);
}

static inline bool econ_refill(struct zone *zone, unsigned int order,
			       unsigned long mark, int highest_zoneidx,
			       unsigned int alloc_flags)
{
	return false;
}

static inline void econ_balance(pg_data_t *pgdat, unsigned int order,
				int highest_zoneidx)
{
}

static inline void econ_drain_all(void)
{
}

static inline void econ_block_zone(struct zone *zone)
{
}

static inline void econ_unblock_zone(struct zone *zone)
{
}

static inline unsigned long econ_pages(void)
{
	return 0;
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

static inline unsigned long econ_swap_orders(struct vm_fault *vmf,
					     unsigned long orders)
{
	return orders;
}

static inline void econ_promoted(const struct econ_promotion *it,
				 struct mm_struct *mm, unsigned long address,
				 bool is_done)
{
}

static inline bool econ_may_demote(struct folio *folio)
{
	return true;
}

static inline void econ_compaction_begin(struct econ_compaction *it, int nid,
					 unsigned int order)
{
}

static inline bool econ_may_compact(struct econ_compaction *it)
{
	return true;
}

static inline void econ_compaction_end(struct econ_compaction *it, bool is_made)
{
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_HOOKS_H */
