/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface of lazy unmap flush to the rest of mm/: reclaim and migration unmap
 * lazily (run.h), the allocator and kswapd get the pages back. The ordering contract
 * is in include/linux/luf.h.
 */
#ifndef _MM_LUF_HOOKS_H
#define _MM_LUF_HOOKS_H

#include <linux/luf.h>
#include <linux/mmzone.h>
#include <linux/swap.h>

#include "run.h"

#ifdef CONFIG_LUF

/**
 * struct luf_recovery - state of a memory failure handler
 * @zone: zone that is blocked meanwhile, NULL if none is
 */
struct luf_recovery {
	struct zone *zone;
};

/**
 * struct luf_observation - space for what an observer knows of a flush in progress
 * @state: for the observer alone
 */
struct luf_observation {
	u64 state[3];
};

/**
 * struct luf_observer - callbacks around each flush of a pool
 * @begin: a flush begins
 * @end: it has ended; the number of CPUs that it interrupted, 0 if there was no need
 *
 * Context of both: the task that flushes, in any place that allocates memory, reclaims
 * or frees: it may hold mutexes, semaphores and the locks of file systems, but no
 * spinlock. The callbacks must not allocate memory, nor wait for a lock that a holder
 * may allocate under. They may be preempted and run on different CPUs.
 */
struct luf_observer {
	void (*begin)(struct luf_observation *it);
	void (*end)(struct luf_observation *it, unsigned int cpus);
};

/* reclaim.c */
bool __luf_refill(struct zone *zone, unsigned int order, unsigned long mark,
		  int highest_zoneidx, unsigned int alloc_flags,
		  gfp_t gfp_mask);
unsigned long __luf_try_to_free_pages(struct zonelist *zonelist, int order,
				      gfp_t gfp_mask, nodemask_t *nodemask);
void __luf_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx);
unsigned long __luf_missing_pages(const struct zone *zone, int highest_zoneidx);
void __luf_prepare_compaction(struct zone *zone, int order);
void __luf_begin_compaction(struct zone *zone, int order);
void luf_drain_all(void);

/* zone.c */
void luf_block_zone(struct zone *zone);
void luf_unblock_zone(struct zone *zone);
void __luf_begin_recovery(struct luf_recovery *recovery,
			  const struct page *page);
unsigned long __luf_pages(void);
void luf_observe(const struct luf_observer *observer);

/* size.c */
void luf_scale_pools(int by);
unsigned long luf_node_cap(int nid);

/**
 * luf_refill - refill a zone from its pool for an allocation
 * @zone: the zone
 * @order: order of the allocation
 * @mark: watermark that the zone failed
 * @highest_zoneidx: highest zone of the allocation
 * @alloc_flags: flags of the allocation
 * @gfp_mask: GFP mask of the allocation; nothing is done unless it may block
 *
 * Context: may sleep if @gfp_mask allows it.
 * Return: true if the zone meets @mark now.
 */
static inline bool luf_refill(struct zone *zone, unsigned int order,
			      unsigned long mark, int highest_zoneidx,
			      unsigned int alloc_flags, gfp_t gfp_mask)
{
	return static_branch_unlikely(&luf_gate_key) &&
	       __luf_refill(zone, order, mark, highest_zoneidx, alloc_flags,
			    gfp_mask);
}

/**
 * luf_try_to_free_pages - try_to_free_pages(), after pages of the pools
 * @zonelist: as for try_to_free_pages()
 * @order: as for try_to_free_pages()
 * @gfp_mask: as for try_to_free_pages()
 * @nodemask: as for try_to_free_pages()
 *
 * A flush is cheaper than reclaim, and reclaim fills the pool until a flush pays.
 *
 * Context: may sleep.
 * Return: the number of pages, as try_to_free_pages().
 */
static inline unsigned long luf_try_to_free_pages(struct zonelist *zonelist,
						  int order, gfp_t gfp_mask,
						  nodemask_t *nodemask)
{
	if (static_branch_unlikely(&luf_gate_key))
		return __luf_try_to_free_pages(zonelist, order, gfp_mask,
					       nodemask);
	return try_to_free_pages(zonelist, order, gfp_mask, nodemask);
}

/**
 * luf_balance - release and flush pool pages while kswapd balances a node
 * @pgdat: the node
 * @order: order that kswapd reclaims for
 * @highest_zoneidx: highest zone that kswapd balances
 *
 * Context: kswapd; may sleep.
 */
static inline void luf_balance(pg_data_t *pgdat, unsigned int order,
			       int highest_zoneidx)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_balance(pgdat, order, highest_zoneidx);
}

/**
 * luf_prepare_compaction - drain a pool if compaction lacks nothing else
 * @zone: zone to compact
 * @order: order of the wanted block
 *
 * Context: may sleep.
 */
static inline void luf_prepare_compaction(struct zone *zone, int order)
{
	if (static_branch_unlikely(&luf_gate_key) &&
	    order > PAGE_ALLOC_COSTLY_ORDER)
		__luf_prepare_compaction(zone, order);
}

/**
 * luf_begin_compaction - drain a pool before compaction
 * @zone: zone to compact
 * @order: order of the wanted block, or -1 to compact the whole zone
 *
 * A page in the pool can neither be moved nor merged. The pool is flushed and
 * released if compaction can succeed.
 *
 * Context: may sleep.
 */
static inline void luf_begin_compaction(struct zone *zone, int order)
{
	if (static_branch_unlikely(&luf_gate_key) &&
	    (order < 0 || order > PAGE_ALLOC_COSTLY_ORDER))
		__luf_begin_compaction(zone, order);
}

/**
 * luf_missing_pages - number of pages to reclaim beyond the high watermark
 * @zone: zone that kswapd balances
 * @highest_zoneidx: highest zone that kswapd reclaims from
 *
 * Context: any.
 * Return: number of pages that the pool can still hold. For a zone without a pool,
 * more than any zone has while another pool up to @highest_zoneidx is not full.
 */
static inline unsigned long luf_missing_pages(const struct zone *zone,
					      int highest_zoneidx)
{
	if (static_branch_unlikely(&luf_key))
		return __luf_missing_pages(zone, highest_zoneidx);
	return 0;
}

/**
 * luf_begin_recovery - release a broken page from its pool
 * @recovery: state of the memory failure handler
 * @page: the page, not marked yet
 *
 * If @page waits in a pool, it is free on return and no CPU has a translation of
 * it. The pool of its zone stays empty until luf_end_recovery(). Usable as
 * struct luf_recovery recovery __cleanup(luf_end_recovery) = {}.
 *
 * Context: may sleep.
 */
static inline void luf_begin_recovery(struct luf_recovery *recovery,
				      const struct page *page)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_begin_recovery(recovery, page);
}

/**
 * luf_end_recovery - end luf_begin_recovery()
 * @recovery: state from luf_begin_recovery()
 *
 * Context: process.
 */
static inline void luf_end_recovery(struct luf_recovery *recovery)
{
	if (recovery->zone)
		luf_unblock_zone(recovery->zone);
}

/**
 * luf_pages - number of pages in all pools
 *
 * Context: any.
 * Return: the number, including pages that are being flushed or released.
 */
static inline unsigned long luf_pages(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		return __luf_pages();
	return 0;
}

#else /* !CONFIG_LUF */

struct luf_recovery {
};

static inline bool luf_refill(struct zone *zone, unsigned int order,
			      unsigned long mark, int highest_zoneidx,
			      unsigned int alloc_flags, gfp_t gfp_mask)
{
	return false;
}

static inline unsigned long luf_try_to_free_pages(struct zonelist *zonelist,
						  int order, gfp_t gfp_mask,
						  nodemask_t *nodemask)
{
	return try_to_free_pages(zonelist, order, gfp_mask, nodemask);
}

static inline void luf_balance(pg_data_t *pgdat, unsigned int order,
			       int highest_zoneidx)
{
}

/* Macros, so that not even the arguments change the object code. */
#define luf_prepare_compaction(...)	do { } while (0)
#define luf_begin_compaction(...)	do { } while (0)

static inline unsigned long luf_missing_pages(const struct zone *zone,
					      int highest_zoneidx)
{
	return 0;
}

static inline void luf_drain_all(void)
{
}

static inline void luf_block_zone(struct zone *zone)
{
}

static inline void luf_unblock_zone(struct zone *zone)
{
}

static inline void luf_begin_recovery(struct luf_recovery *recovery,
				      const struct page *page)
{
}

static inline void luf_end_recovery(struct luf_recovery *recovery)
{
}

static inline unsigned long luf_pages(void)
{
	return 0;
}

#endif /* !CONFIG_LUF */

#endif /* _MM_LUF_HOOKS_H */
