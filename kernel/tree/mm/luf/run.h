/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks of lazy unmap flush for reclaim and migration, which unmap lazily, and for the
 * code that makes entries writable.
 */
#ifndef _MM_LUF_RUN_H
#define _MM_LUF_RUN_H

#include <linux/luf.h>
#include <linux/migrate_mode.h>
#include <linux/rmap.h>
#include <linux/sched.h>

#include "batch.h"
#include "pool.h"

/**
 * enum luf_path - cause of an unmap
 * @LUF_KSWAPD: background reclaim
 * @LUF_DIRECT: direct reclaim
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
};

#ifdef CONFIG_LUF

/**
 * struct luf_run - one call of reclaim or migration
 * @outer: enclosing run, NULL if there is none
 * @stream: stream of its batches, NULL if it unmaps nothing lazily
 * @own: stream of a compaction run
 * @path: cause of its unmaps
 * @srcu: read-side section that switching LUF off waits for
 * @folio: folio that is being unmapped, or was unmapped last
 * @lazy: number of entries of @folio that were unmapped lazily
 * @eager: number of entries of @folio that were unmapped eagerly
 * @first: generation of the oldest batch that covers @folio
 * @last: generation of the newest one
 * @waiting: lazy unmaps of folios that are neither taken nor kept yet; never
 *	less than the number of such folios
 * @oldest: generation of the oldest batch that the run joined since compaction's
 *	last block
 * @newest: generation of the newest one; the generations of a stream only grow
 * @part: finished folios, for the pool
 * @unflushed: records of unmapped pages that are not in @part, for LUF_DEBUG
 *
 * Reached by current->luf_run; only the task itself accesses it.
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

/* Lazy unmaps are allowed. */
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
void __luf_keep_source(struct luf_run *run);
void __luf_end_cluster(struct luf_run *run);
void __luf_release_block(struct luf_run *run);

/**
 * luf_run_begin - begin a call of reclaim or migration
 * @run: state of the call
 * @path: cause of its unmaps
 *
 * Context: process.
 */
static inline void luf_run_begin(struct luf_run *run, enum luf_path path)
{
	run->stream = NULL;
	if (static_branch_unlikely(&luf_key))
		__luf_run_begin(run, path);
}

/**
 * luf_run_end - end a call of reclaim or migration
 * @run: state from luf_run_begin()
 *
 * Call it after the last try_to_unmap_flush() and before kept folios are put
 * back. Usable as struct luf_run run __cleanup(luf_run_end).
 *
 * Context: may sleep.
 */
static inline void luf_run_end(struct luf_run *run)
{
	if (run->stream)
		__luf_run_end(run);
}

/**
 * luf_flags - flags for try_to_unmap() of a folio in reclaim
 * @run: run of the reclaim
 * @folio: the folio
 *
 * Context: @folio is locked.
 * Return: TTU_LAZY if entries of @folio may be unmapped lazily, 0 if not.
 */
static inline enum ttu_flags luf_flags(struct luf_run *run,
				       struct folio *folio)
{
	return run->stream ? __luf_flags(run, folio) : 0;
}

/**
 * luf_take_folio - take a reclaimed folio for the pool
 * @run: run of the reclaim
 * @folio: the folio: frozen, in no cache, unlocked
 *
 * Context: process.
 * Return: true if @folio goes to the pool, false if the caller frees it.
 */
static inline bool luf_take_folio(struct luf_run *run, struct folio *folio)
{
	return run->stream && run->folio == folio && __luf_take_folio(run, folio);
}

/**
 * luf_migrate_begin - begin a call of migrate_pages()
 * @run: state of the call
 * @reason: reason of the migration
 *
 * A compaction run encloses the call. For other reasons than demotion, NUMA
 * balancing and compaction nothing is unmapped lazily.
 *
 * Context: process.
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

/**
 * luf_migration - run of a migration
 * @reason: reason of the migration
 *
 * Context: process.
 * Return: the run, NULL if the migration unmaps nothing lazily.
 */
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
 * luf_migrate_end - end a call of migrate_pages()
 * @run: state from luf_migrate_begin()
 *
 * Context: may sleep.
 */
static inline void luf_migrate_end(struct luf_run *run)
{
	if (run->stream)
		__luf_run_end(run);
	else if (luf_migration(MR_COMPACTION))
		__luf_end_cluster(current->luf_run);
}

/**
 * luf_migrate_flags - flags for try_to_migrate() of a folio
 * @folio: the folio
 * @reason: reason of the migration
 *
 * Context: @folio is locked.
 * Return: TTU_LAZY if entries of @folio may be unmapped lazily, 0 if not.
 */
static inline enum ttu_flags luf_migrate_flags(struct folio *folio, int reason)
{
	struct luf_run *run = luf_migration(reason);

	return run ? __luf_flags(run, folio) : 0;
}

/**
 * luf_is_lazy - whether try_to_migrate() unmapped a folio lazily
 * @folio: folio of the last try_to_migrate()
 *
 * Context: process.
 * Return: true if all entries were unmapped lazily. If only some were, the others
 * are added to the task's own flush.
 */
static inline bool luf_is_lazy(const struct folio *folio)
{
	struct luf_run *run = current->luf_run;

	return run && run->folio == folio && __luf_is_lazy(run);
}

/**
 * luf_migrated - prepare the release of a source that was unmapped lazily
 * @folio: source of the migration
 *
 * Context: process.
 */
static inline void luf_migrated(const struct folio *folio)
{
	if (current->luf_run)
		__luf_migrated(current->luf_run, folio);
}

/**
 * luf_take_source - take the source of a migration for the pool
 * @folio: source of the migration
 *
 * Context: may sleep.
 * Return: true if @folio goes to the pool, false if the caller drops its reference.
 */
static inline bool luf_take_source(struct folio *folio)
{
	struct luf_run *run = current->luf_run;

	return run && run->folio == folio && __luf_take_source(run, folio);
}

/**
 * luf_keep_source - flush a source that is not moved, before it is mapped again
 *
 * Flushes everything that the run unmapped lazily, if there is any.
 *
 * Context: the source is locked and unmapped, or was only partly unmapped.
 */
static inline void luf_keep_source(void)
{
	struct luf_run *run = current->luf_run;

	if (run && run->waiting)
		__luf_keep_source(run);
}

/**
 * luf_release_block - flush and free the pages of a compacted block
 * @run: run of the compaction
 *
 * Context: may sleep.
 */
static inline void luf_release_block(struct luf_run *run)
{
	if (run->stream)
		__luf_release_block(run);
}

/**
 * luf_unmap - clear an entry without flushing its translations
 * @folio: folio that is mapped
 * @vma: the mapping
 * @address: address that the entry maps
 * @ptep: the entry, present
 * @flags: flags of try_to_unmap() or try_to_migrate()
 * @old: set to the old entry if true is returned
 *
 * Context: the page-table lock of @ptep is held.
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
 * luf_gate_writable - luf_gate_pte() if an entry becomes writable
 * @writable: whether it does, or is written through by force
 * @mm: the mm
 * @address: address that the entry maps
 * @slot: the entry
 *
 * Context: the page-table lock of @slot is held; does not sleep.
 */
static inline void luf_gate_writable(bool writable, struct mm_struct *mm,
				     unsigned long address, const void *slot)
{
	if (writable)
		luf_gate_pte(mm, address, slot);
}

#else /* !CONFIG_LUF */

struct luf_run {
};

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

static inline void luf_keep_source(void)
{
}

static inline void luf_release_block(struct luf_run *run)
{
}

/* Macros, so that not even the arguments change the object code. */
#define luf_unmap(...)		false
#define luf_gate_writable(...)	do { } while (0)

#endif /* !CONFIG_LUF */

#endif /* _MM_LUF_RUN_H */
