/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface of the estimator to the rest of mm/. Each call is at a place where stock
 * code has decided to do an operation, and can only refuse it. Operations that the
 * user requested by MADV_HUGEPAGE or MADV_COLLAPSE are always done.
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

/**
 * struct econ_compaction - compaction of a node by kcompactd
 * @watch: measurement of it
 * @began_ns: CPU time of kcompactd at the start, if the ledger pays
 * @nid: the node
 * @order: order of the wanted block
 * @is_ours: whether the ledger of the node pays
 */
struct econ_compaction {
	struct econ_watch watch;
	u64 began_ns;
	int nid;
	unsigned int order;
	bool is_ours;
};

/**
 * struct econ_promotion - collapse that khugepaged is about to do
 * @estimate: its cost and benefit
 * @is_due: it pays, and is counted when it is done
 */
struct econ_promotion {
	struct econ_estimate estimate;
	bool is_due;
};

/**
 * struct econ_pools - pools of memory for which econ decides the size
 * @node_cap: upper bound of the pools of a node, in pages
 * @scale: 1 to double their sizes, -1 to halve them, 0 for the default; may sleep
 * @observe: whether to call econ_pool_flushed() for each flush of a pool; may sleep
 */
struct econ_pools {
	unsigned long (*node_cap)(int nid);
	void (*scale)(int by);
	void (*observe)(bool on);
};

/* The mode of the machine is observe or on. */
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

/* prezero_stock.c, prezero_shortage.c */
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
/* Number of faults until the next one is measured. */
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
void econ_set_pools(const struct econ_pools *pools);
void __econ_pool_flushed(struct econ_watch *watch, unsigned int cpus);
void __econ_refaulted(int nid, unsigned long distance);
void __econ_reclaimed(struct econ_watch *watch, unsigned int pages);

/**
 * econ_is_asked - whether econ decides for a mapping
 * @vma: the mapping
 *
 * Context: any.
 * Return: true if econ is on or observes, and the mm has a profile.
 */
static inline bool econ_is_asked(const struct vm_area_struct *vma)
{
	return static_branch_unlikely(&econ_key) &&
	       unlikely(rcu_access_pointer(vma->vm_mm->econ));
}

/**
 * econ_may_be_huge - whether a fault may map a huge page
 * @vmf: the fault; nothing of the region is mapped
 *
 * Context: a page fault; does not sleep.
 * Return: false if a huge page does not pay.
 */
static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return !econ_is_asked(vmf->vma) || __econ_may_be_huge(vmf);
}

/**
 * econ_orders - orders of blocks that a fault may map
 * @vmf: the fault
 * @orders: a bit for each order that fits, smaller than that of a huge page
 *
 * Context: a page fault; does not sleep.
 * Return: the bits of @orders that pay.
 */
static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return orders && econ_is_asked(vmf->vma) ?
	       __econ_orders(vmf, orders, ECON_LARGE) : orders;
}

/**
 * econ_swap_orders - orders of blocks that a fault may read from swap
 * @vmf: the fault
 * @orders: a bit for each order that fits, smaller than that of a huge page
 *
 * Context: a page fault; does not sleep.
 * Return: the bits of @orders that pay.
 */
static inline unsigned long econ_swap_orders(struct vm_fault *vmf,
					     unsigned long orders)
{
	return orders && econ_is_asked(vmf->vma) ?
	       __econ_orders(vmf, orders, ECON_SWAP_IN) : orders;
}

/**
 * econ_gfp - GFP mask of the allocation of a block in a fault
 * @vma: the mapping
 * @address: address of the fault
 * @gfp: mask of stock code
 *
 * Context: a page fault; does not sleep.
 * Return: @gfp, without reclaim and compaction if they do not pay.
 */
static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return econ_is_asked(vma) ? __econ_gfp(vma, address, gfp) : gfp;
}

/**
 * econ_may_promote - whether khugepaged may collapse a region
 * @it: for econ_promoted()
 * @vma: the mapping
 * @address: the region, which was scanned: collapse is possible
 * @is_khugepaged: false for MADV_COLLAPSE, which is always allowed
 * @nid: node of the future huge page
 *
 * Context: the mmap lock is held; does not sleep.
 * Return: false if the collapse does not pay.
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
 * econ_promoted - count a collapse by khugepaged
 * @it: argument of econ_may_promote()
 * @mm: the mm
 * @address: the region
 * @is_done: whether the collapse succeeded
 *
 * Context: any; the locks of @mm need not be held.
 */
static inline void econ_promoted(const struct econ_promotion *it,
				 struct mm_struct *mm, unsigned long address,
				 bool is_done)
{
	if (unlikely(it->is_due) && is_done)
		__econ_promoted(it, mm, address);
}

/**
 * econ_may_demote - whether a huge page that is mostly zeros may be split
 * @folio: the page; the caller holds a reference
 *
 * Context: may sleep; trylocks @folio.
 * Return: false if its page walks would cost more than its empty pages are worth.
 */
static inline bool econ_may_demote(struct folio *folio)
{
	return !static_branch_unlikely(&econ_key) || __econ_may_demote(folio);
}

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
 * econ_compacted - add a sample of a compaction that made a block
 * @watch: argument of econ_watch_begin()
 * @order: order of the block
 *
 * Context: any; takes a spinlock.
 */
static inline void econ_compacted(struct econ_watch *watch, unsigned int order)
{
	if (watch->is_on)
		__econ_compacted(watch, order);
}

/**
 * econ_pool_flushed - account for the flush of a pool
 * @watch: argument of econ_watch_begin()
 * @cpus: number of CPUs that were interrupted
 *
 * Context: any; takes a spinlock.
 */
static inline void econ_pool_flushed(struct econ_watch *watch,
				     unsigned int cpus)
{
	if (static_branch_unlikely(&econ_key) && cpus)
		__econ_pool_flushed(watch, cpus);
}

/**
 * econ_refaulted - account for a refault
 * @nid: node that the page was reclaimed from
 * @memcg: memory cgroup of the reclaim
 * @distance: refault distance in pages
 *
 * Reclaim by the limit of a memory cgroup is not caused by the pools.
 *
 * Context: any.
 */
static inline void econ_refaulted(int nid, struct mem_cgroup *memcg,
				  unsigned long distance)
{
	if (static_branch_unlikely(&econ_key) &&
	    (!memcg || mem_cgroup_is_root(memcg)))
		__econ_refaulted(nid, distance);
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

/**
 * econ_alloc_huge - allocate a huge page for a fault
 * @gfp: as for vma_alloc_folio()
 * @vma: the mapping
 * @address: the region
 *
 * Context: may sleep if @gfp allows it.
 * Return: a huge page, possibly zeroed ahead, or NULL.
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

/**
 * econ_is_zeroed - whether a huge page was zeroed ahead
 * @folio: return value of econ_alloc_huge()
 *
 * The mark of the prezero thread stays until econ_zero_huge() or econ_put_huge().
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool econ_is_zeroed(const struct folio *folio)
{
	return unlikely(folio->private);
}

/**
 * econ_put_huge - free a huge page that a fault cannot use
 * @folio: return value of econ_alloc_huge(), not written to
 *
 * Context: process; takes a spinlock.
 */
static inline void econ_put_huge(struct folio *folio)
{
	if (econ_is_zeroed(folio))
		__econ_put_block(folio);
	else
		folio_put(folio);
}

/**
 * econ_zero_huge - clear a huge page for a fault, unless it was zeroed ahead
 * @folio: return value of econ_alloc_huge()
 * @address: address of the fault
 *
 * Context: may sleep.
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
 * econ_refill - free kept blocks of a zone for an allocation
 * @zone: the zone
 * @order: order of the allocation
 * @mark: watermark that the zone failed
 * @highest_zoneidx: highest zone of the allocation
 * @alloc_flags: flags of the allocation
 *
 * Context: any; takes a spinlock.
 * Return: true if the zone meets @mark now.
 */
static inline bool econ_refill(struct zone *zone, unsigned int order,
			       unsigned long mark, int highest_zoneidx,
			       unsigned int alloc_flags)
{
	return static_branch_unlikely(&econ_key) &&
	       __econ_refill(zone, order, mark, highest_zoneidx, alloc_flags);
}

/**
 * econ_balance - free kept blocks of a node before kswapd reclaims
 * @pgdat: the node
 * @order: order that kswapd reclaims for
 * @highest_zoneidx: highest zone that kswapd balances
 *
 * Context: kswapd.
 */
static inline void econ_balance(pg_data_t *pgdat, unsigned int order,
				int highest_zoneidx)
{
	if (static_branch_unlikely(&econ_key))
		__econ_balance(pgdat, order, highest_zoneidx);
}

/**
 * econ_drain_zone - free all kept blocks of a zone
 * @zone: the zone
 *
 * Context: may sleep.
 */
static inline void econ_drain_zone(struct zone *zone)
{
	if (static_branch_unlikely(&econ_key))
		__econ_drain_zone(zone);
}

/**
 * econ_pages - number of pages that are zeroed ahead and kept
 *
 * Context: any.
 * Return: the number.
 */
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

/* Macros, so that not even the arguments change the object code. */
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
