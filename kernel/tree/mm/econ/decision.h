/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks that decide. Each is at a place where stock code has decided to do an operation,
 * and can only refuse it. Operations that the user requested by MADV_HUGEPAGE or
 * MADV_COLLAPSE are always done.
 */
#ifndef _MM_ECON_DECISION_H
#define _MM_ECON_DECISION_H

#include <linux/econ_types.h>
#include <linux/jump_label.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>

#include "model.h"

struct compact_control;

#ifdef CONFIG_ECON

/**
 * struct econ_compaction - compaction of a node by kcompactd
 * @watch: measurement of it
 * @began_ns: CPU time of kcompactd at the start, if the ledger pays
 * @nid: the node
 * @order: order of the wanted block
 * @is_ours: whether the ledger of the node pays
 * @is_explored: it is done whether it pays or not, to measure its cost
 * @is_over: a block was made, so that no other zone is tried
 */
struct econ_compaction {
	struct econ_watch watch;
	u64 began_ns;
	int nid;
	unsigned int order;
	bool is_ours;
	bool is_explored;
	bool is_over;
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

/* fault.c */
bool __econ_may_be_huge(struct vm_fault *vmf);
unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders,
			    enum econ_kind kind);
gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp);

/* promote.c, demote.c */
bool __econ_may_promote(struct econ_promotion *it, struct vm_area_struct *vma,
			unsigned long address, int nid);
void __econ_promoted(const struct econ_promotion *it, struct mm_struct *mm,
		     unsigned long address);
bool __econ_may_demote(struct folio *folio);

/* ledger.c */
gfp_t econ_compaction_begin(struct econ_compaction *it, pg_data_t *pgdat, gfp_t gfp);
bool econ_may_compact(struct econ_compaction *it, struct compact_control *cc,
		      struct zone *zone);
void econ_compaction_end(struct econ_compaction *it, bool is_made);

/* pools.c */
void econ_set_pools(const struct econ_pools *pools);
void __econ_pool_flushed(struct econ_watch *watch, unsigned int cpus);
void __econ_refaulted(int nid, unsigned long distance);

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
 * Also asked for processes without a profile, and for advised memory.
 *
 * Context: a page fault; does not sleep.
 * Return: @gfp, without reclaim and compaction if they do not pay.
 */
static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return static_branch_unlikely(&econ_key) ? __econ_gfp(vma, address, gfp) : gfp;
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
 * @stays: set if it may not, and the shrinker has to ask again later
 *
 * Context: may sleep; trylocks @folio.
 * Return: false if its page walks would cost more than its empty pages are worth.
 */
static inline bool econ_may_demote(struct folio *folio, bool *stays)
{
	*stays = static_branch_unlikely(&econ_key) && !__econ_may_demote(folio);
	return !*stays;
}

/**
 * econ_pays_compaction - whether the ledger of a node pays for a run of kcompactd
 * @it: state of the run
 *
 * Context: kcompactd.
 * Return: true if it does: then the run is neither deferred nor defers others.
 */
static inline bool econ_pays_compaction(const struct econ_compaction *it)
{
	return it->is_ours;
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

#else /* !CONFIG_ECON */

struct econ_compaction {
};

struct econ_promotion {
};

static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return true;
}

static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return orders;
}

static inline unsigned long econ_swap_orders(struct vm_fault *vmf,
					     unsigned long orders)
{
	return orders;
}

static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return gfp;
}

/* A macro, so that not even the arguments change the object code. */
#define econ_may_promote(...)	true

static inline void econ_promoted(const struct econ_promotion *it,
				 struct mm_struct *mm, unsigned long address,
				 bool is_done)
{
}

static inline bool econ_may_demote(struct folio *folio, bool *stays)
{
	return true;
}

static inline gfp_t econ_compaction_begin(struct econ_compaction *it,
					  pg_data_t *pgdat, gfp_t gfp)
{
	return gfp;
}

static inline bool econ_pays_compaction(const struct econ_compaction *it)
{
	return false;
}

static inline bool econ_may_compact(struct econ_compaction *it,
				    struct compact_control *cc,
				    struct zone *zone)
{
	return true;
}

static inline void econ_compaction_end(struct econ_compaction *it, bool is_made)
{
}

static inline void econ_refaulted(int nid, struct mem_cgroup *memcg,
				  unsigned long distance)
{
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_DECISION_H */
