/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of mm/ calls of lazy unmap flush: reclaim and migration to
 * unmap lazily, the allocator and kswapd to get the pages back. The contract is
 * in include/linux/luf.h.
 */
#ifndef _MM_LUF_HOOKS_H
#define _MM_LUF_HOOKS_H

#include <linux/luf.h>
#include <linux/migrate_mode.h>
#include <linux/mmzone.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/swap.h>

#include "batch.h"
#include "pool.h"

/**
 * enum luf_path - who unmaps
 * @LUF_KSWAPD: reclaim in the background
 * @LUF_DIRECT: reclaim by who needs the memory
 * @LUF_DEMOTION: migration to a slower node
 * @LUF_PROMOTION: migration by NUMA balancing
 * @LUF_COMPACTION: compaction
 */
enum luf_path {
	LUF_KSWAPD,
	LUF_DIRECT,
	LUF_DEMOTION,
	LUF_PROMOTION,
	LUF_COMPACTION,
	LUF_PATHS,
};

#ifdef CONFIG_LUF

/**
 * struct luf_recovery - a page that is broken is looked for
 * @zone: what is blocked meanwhile, NULL if nothing is
 */
struct luf_recovery {
	struct zone *zone;
};

/**
 * struct luf_run - one call of reclaim or migration
 * @outer: the run in which it happens
 * @stream: whose batches it takes part in, NULL if nothing is lazy in it
 * @own: compaction's stream
 * @path: who it is
 * @srcu: who switches off waits for it
 * @folio: the one that is being unmapped, or was unmapped last
 * @lazy: entries of @folio that were unmapped lazily
 * @eager: entries of @folio that were not
 * @first: the oldest batch that @folio takes part in
 * @last: the newest one
 * @waiting: lazy unmaps of folios that are neither taken nor kept yet; never
 *	less than the number of such folios
 * @oldest: the oldest batch that the run took part in since compaction's last
 *	block
 * @newest: the newest one; a stream's generations only grow
 * @part: folios that are done, for the pool
 * @unflushed: records of what was unmapped and is not in @part, for LUF_DEBUG
 *
 * Found by current->luf_run; only the task itself looks at it.
 */
struct luf_run {
	struct luf_run *outer;
	struct luf_stream *stream;
	struct luf_stream own;
	enum luf_path path;
	int srcu;
	const struct folio *folio;
	unsigned int lazy;
	unsigned int eager;
	u64 first;
	u64 last;
	unsigned int waiting;
	u64 oldest;
	u64 newest;
	struct luf_part part;
#ifdef CONFIG_LUF_DEBUG
	struct list_head unflushed;
#endif
};

/* Unmaps may be lazy. */
DECLARE_STATIC_KEY_FALSE(luf_key);

void __luf_run_begin(struct luf_run *run, enum luf_path path);
void __luf_run_end(struct luf_run *run);
enum ttu_flags __luf_flags(struct luf_run *run, struct folio *folio);
bool __luf_unmap(struct folio *folio, struct vm_area_struct *vma,
		 unsigned long address, pte_t *ptep, pte_t *old);
bool __luf_take_folio(struct luf_run *run, struct folio *folio);
bool __luf_is_lazy(struct luf_run *run);
void __luf_migrated(struct luf_run *run, const struct folio *folio);
bool __luf_take_source(struct luf_run *run, struct folio *folio);
void __luf_end_cluster(struct luf_run *run);
void __luf_release_block(struct luf_run *run);

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
void __luf_block_zone(struct zone *zone);
void __luf_unblock_zone(struct zone *zone);
void __luf_begin_recovery(struct luf_recovery *recovery,
			  const struct page *page);
unsigned long __luf_pages(void);
void luf_scale_pools(int by);
unsigned long luf_node_cap(int nid);

/**
 * luf_run_begin - a call of reclaim or migration begins
 * @run: what is to be known of it
 * @path: who it is
 */
static inline void luf_run_begin(struct luf_run *run, enum luf_path path)
{
	run->stream = NULL;
	if (static_branch_unlikely(&luf_key))
		__luf_run_begin(run, path);
}

/**
 * luf_run_end - a call of reclaim or migration ends
 * @run: as luf_run_begin() made it
 *
 * After the last try_to_unmap_flush(), and before folios that are kept are
 * given back. For struct luf_run run __cleanup(luf_run_end).
 */
static inline void luf_run_end(struct luf_run *run)
{
	if (run->stream)
		__luf_run_end(run);
}

/**
 * luf_flags - how reclaim unmaps a folio
 * @run: reclaim's
 * @folio: which is locked
 *
 * Return: TTU_LAZY if entries of it may be unmapped lazily, 0 if not.
 */
static inline enum ttu_flags luf_flags(struct luf_run *run,
				       struct folio *folio)
{
	return run->stream ? __luf_flags(run, folio) : 0;
}

/**
 * luf_take_folio - a folio is reclaimed: frozen, in no cache, unlocked
 * @run: reclaim's
 * @folio: the folio
 *
 * Return: true if it goes to the pool, false if the caller frees it.
 */
static inline bool luf_take_folio(struct luf_run *run, struct folio *folio)
{
	return run->stream && run->folio == folio && __luf_take_folio(run, folio);
}

/**
 * luf_migrate_begin - a call of migrate_pages() begins
 * @run: what is to be known of it
 * @reason: why
 *
 * Compaction has a run of its own around it. For other reasons nothing is lazy.
 */
static inline void luf_migrate_begin(struct luf_run *run, int reason)
{
	run->stream = NULL;
	if (!static_branch_unlikely(&luf_key))
		return;
	if (reason == MR_DEMOTION)
		__luf_run_begin(run, LUF_DEMOTION);
	else if (reason == MR_NUMA_MISPLACED)
		__luf_run_begin(run, LUF_PROMOTION);
}

/* The run that migration for a reason belongs to, NULL if nothing is lazy. */
static inline struct luf_run *luf_migration(int reason)
{
	struct luf_run *run = current->luf_run;

	if (!run || run->path < LUF_DEMOTION)
		return NULL;
	if (run->path == LUF_COMPACTION)
		return reason == MR_COMPACTION ? run : NULL;
	return reason == MR_COMPACTION ? NULL : run;
}

/**
 * luf_migrate_end - a call of migrate_pages() ends
 * @run: as luf_migrate_begin() made it
 */
static inline void luf_migrate_end(struct luf_run *run)
{
	if (run->stream)
		__luf_run_end(run);
	else if (luf_migration(MR_COMPACTION))
		__luf_end_cluster(current->luf_run);
}

/**
 * luf_migrate_flags - how migration unmaps a folio
 * @folio: which is locked
 * @reason: why it is migrated
 *
 * Return: TTU_LAZY if entries of it may be unmapped lazily, 0 if not.
 */
static inline enum ttu_flags luf_migrate_flags(struct folio *folio, int reason)
{
	struct luf_run *run = luf_migration(reason);

	return run ? __luf_flags(run, folio) : 0;
}

/**
 * luf_is_lazy - what try_to_migrate() has done
 * @folio: the one that it was called for last
 *
 * Return: true if all of it was unmapped lazily.
 */
static inline bool luf_is_lazy(const struct folio *folio)
{
	struct luf_run *run = current->luf_run;

	return run && run->folio == folio && __luf_is_lazy(run);
}

/**
 * luf_migrated - a folio that was unmapped lazily is about to be released
 * @folio: the source
 */
static inline void luf_migrated(const struct folio *folio)
{
	if (current->luf_run)
		__luf_migrated(current->luf_run, folio);
}

/**
 * luf_take_source - the source of a migration is no longer needed
 * @folio: the source
 *
 * Return: true if it goes to the pool, false if the caller drops its reference.
 */
static inline bool luf_take_source(struct folio *folio)
{
	struct luf_run *run = current->luf_run;

	return run && run->folio == folio && __luf_take_source(run, folio);
}

/**
 * luf_release_block - compaction is done with a block
 * @run: compaction's
 */
static inline void luf_release_block(struct luf_run *run)
{
	if (run->stream)
		__luf_release_block(run);
}

/**
 * luf_unmap - clear an entry and leave its translations where they are
 * @folio: what is mapped there
 * @vma: where
 * @address: where
 * @ptep: the entry, present; its page-table lock is held
 * @flags: as the caller of try_to_unmap() or try_to_migrate() gave them
 * @old: the entry as it was, if true is returned
 *
 * Return: false if nothing was done: the caller unmaps eagerly.
 */
static inline bool luf_unmap(struct folio *folio, struct vm_area_struct *vma,
			     unsigned long address, pte_t *ptep,
			     enum ttu_flags flags, pte_t *old)
{
	return (flags & TTU_LAZY) &&
	       __luf_unmap(folio, vma, address, ptep, old);
}

/**
 * luf_gate_writable - a slot is about to be filled, or to be written through
 * @writable: by something that can be written; otherwise nothing happens
 * @mm: whose
 * @address: what the slot stands for
 * @slot: the slot; the page-table lock is held
 */
static inline void luf_gate_writable(bool writable, struct mm_struct *mm,
				     unsigned long address, const void *slot)
{
	if (writable)
		luf_gate_pte(mm, address, slot);
}

/**
 * luf_refill - an allocation found too little in a zone
 * @zone: the zone
 * @order: of the allocation
 * @mark: the watermark that it failed at
 * @highest_zoneidx: of the allocation
 * @alloc_flags: of the allocation
 * @gfp_mask: of the allocation; who may not sleep gets nothing here
 *
 * Return: true if enough is there now.
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
 * luf_try_to_free_pages - try_to_free_pages(), or pages of the pool
 * @zonelist: as there
 * @order: as there
 * @gfp_mask: as there
 * @nodemask: as there
 *
 * A flush is cheaper than a reclaim, and reclaim fills the pool until a flush
 * pays.
 *
 * Return: as there.
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
 * luf_balance - kswapd looks at a node
 * @pgdat: the node
 * @order: what somebody needs
 * @highest_zoneidx: up to which zone
 */
static inline void luf_balance(pg_data_t *pgdat, unsigned int order,
			       int highest_zoneidx)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_balance(pgdat, order, highest_zoneidx);
}

/**
 * luf_prepare_compaction - reclaim looks whether compaction can begin
 * @zone: in this zone
 * @order: for a block of this order
 *
 * Flushes and releases what waits there if compaction lacks nothing else. May
 * sleep.
 */
static inline void luf_prepare_compaction(struct zone *zone, int order)
{
	if (static_branch_unlikely(&luf_gate_key) &&
	    order > PAGE_ALLOC_COSTLY_ORDER)
		__luf_prepare_compaction(zone, order);
}

/**
 * luf_begin_compaction - compaction begins if it has enough free pages
 * @zone: in this zone
 * @order: for a block of this order, or -1 for as many as possible
 *
 * A page that waits can be neither moved nor merged: if it is to be worth while,
 * what waits is flushed and released. May sleep.
 */
static inline void luf_begin_compaction(struct zone *zone, int order)
{
	if (static_branch_unlikely(&luf_gate_key) &&
	    (order < 0 || order > PAGE_ALLOC_COSTLY_ORDER))
		__luf_begin_compaction(zone, order);
}

/**
 * luf_missing_pages - what kswapd reclaims beyond the high watermark
 * @zone: of this zone
 * @highest_zoneidx: the highest zone that it reclaims from
 *
 * Return: how many pages its pool could still hold; where it has none, more than
 * there are as long as another pool up to that zone is not full.
 */
static inline unsigned long luf_missing_pages(const struct zone *zone,
					      int highest_zoneidx)
{
	if (static_branch_unlikely(&luf_key))
		return __luf_missing_pages(zone, highest_zoneidx);
	return 0;
}

/**
 * luf_block_zone - from here on nothing waits in a zone's pool
 * @zone: the zone
 *
 * Waits for those who are flushing or releasing some of it. May sleep. Nests;
 * luf_unblock_zone() ends it.
 */
static inline void luf_block_zone(struct zone *zone)
{
	__luf_block_zone(zone);
}

/**
 * luf_unblock_zone - pages may wait again
 * @zone: the zone
 */
static inline void luf_unblock_zone(struct zone *zone)
{
	__luf_unblock_zone(zone);
}

/**
 * luf_begin_recovery - a page is broken, and is not marked yet
 * @recovery: what is to be known of it
 * @page: the page
 *
 * If it waits in a pool it is free afterwards, and no CPU has a translation of it.
 * Until luf_end_recovery() nothing waits in its zone. May sleep. For
 * struct luf_recovery recovery __cleanup(luf_end_recovery) = {}.
 */
static inline void luf_begin_recovery(struct luf_recovery *recovery,
				      const struct page *page)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_begin_recovery(recovery, page);
}

/**
 * luf_end_recovery - the page is dealt with
 * @recovery: as luf_begin_recovery() made it
 */
static inline void luf_end_recovery(struct luf_recovery *recovery)
{
	if (recovery->zone)
		__luf_unblock_zone(recovery->zone);
}

/* How many pages wait in all pools. */
static inline unsigned long luf_pages(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		return __luf_pages();
	return 0;
}

#else /* !CONFIG_LUF */

struct luf_run {
};

struct luf_recovery {
};

static inline void luf_begin_recovery(struct luf_recovery *recovery,
				      const struct page *page)
{
}

static inline void luf_end_recovery(struct luf_recovery *recovery)
{
}

static inline void luf_run_begin(struct luf_run *run, enum luf_path path)
{
}

static inline void luf_run_end(struct luf_run *run)
{
}

static inline enum ttu_flags luf_flags(struct luf_run *run,
				       struct folio *folio)
{
	return 0;
}

static inline bool luf_take_folio(struct luf_run *run, struct folio *folio)
{
	return false;
}

static inline void luf_migrate_begin(struct luf_run *run, int reason)
{
}

static inline void luf_migrate_end(struct luf_run *run)
{
}

static inline enum ttu_flags luf_migrate_flags(struct folio *folio, int reason)
{
	return 0;
}

static inline bool luf_is_lazy(const struct folio *folio)
{
	return false;
}

static inline void luf_migrated(const struct folio *folio)
{
}

static inline bool luf_take_source(struct folio *folio)
{
	return false;
}

static inline void luf_release_block(struct luf_run *run)
{
}

/* Not even their arguments may leave a trace in the objects. */
#define luf_unmap(...)		false
#define luf_gate_writable(...)	do { } while (0)
#define luf_prepare_compaction(...)	do { } while (0)
#define luf_begin_compaction(...)	do { } while (0)

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

static inline unsigned long luf_missing_pages(const struct zone *zone,
					      int highest_zoneidx)
{
	return 0;
}

static inline void luf_scale_pools(int by)
{
}

static inline unsigned long luf_node_cap(int nid)
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

static inline unsigned long luf_pages(void)
{
	return 0;
}

#endif /* !CONFIG_LUF */

#endif /* _MM_LUF_HOOKS_H */
