// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs of reclaim and migration: what happens to the folios that they unmapped lazily.
 */

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagevec.h>
#include <linux/sched.h>
#include <linux/srcu.h>
#include <linux/string.h>
#include <asm/tlbflush.h>

#include "../internal.h"
#include "internal.h"

#include <trace/events/luf.h>

DEFINE_STATIC_KEY_FALSE(luf_key);
DEFINE_SRCU(luf_runs);

static struct luf_stream luf_reclaim;

/* Folios */

/* Add the CPUs of pending batches to the task's own flush. */
static void luf_flush_with_task(u64 first, u64 last)
{
	struct tlbflush_unmap_batch *own = &current->tlb_ubc;

	if (luf_add_cpus(&luf_batches, first, last, &own->arch.cpumask))
		own->flush_required = true;
}

bool __luf_is_lazy(struct luf_run *run)
{
	if (!run->lazy)
		return false;
	if (!run->eager)
		return true;
	/* Some entries need a flush now, so flush all of them. */
	luf_flush_with_task(run->first, run->last);
	luf_debug_forget(run->folio);
	run->waiting--;
	run->lazy = 0;
	return false;
}

static void luf_defer_folio(struct luf_run *run, struct folio *folio)
{
	trace_luf_defer(folio_pfn(folio), folio_nr_pages(folio), run->path,
			run->first, run->last);
	luf_count_many(LUF_DEFERRED + run->path, folio_nr_pages(folio));
	luf_debug_defer(folio, run);
	list_add_tail(&folio->lru, &run->part.folios);
	run->part.nr_pages += folio_nr_pages(folio);
	luf_part_cover(&run->part, run->first, run->last);
	run->waiting--;
	run->folio = NULL;
}

bool __luf_take_folio(struct luf_run *run, struct folio *folio)
{
	if (!__luf_is_lazy(run))
		return false;
	luf_defer_folio(run, folio);
	return true;
}

/* On return no CPU holds a translation of anything that the run unmapped. */
static void luf_flush_kept(struct luf_run *run)
{
	run->folio = NULL;
	luf_flush_with_task(run->oldest, run->newest);
	luf_count(LUF_FLUSHES_KEPT);
	try_to_unmap_flush();
	luf_debug_settle(run);
}

/*
 * A source that is mapped again may be freed by its users, or be unmapped eagerly and
 * moved by a later attempt of the same run: nothing would remember its batch. Other
 * sources may be in between; they still count as waiting, and so does this one.
 */
void __luf_keep_source(struct luf_run *run)
{
	luf_flush_kept(run);
}

/*
 * Flush folios that were unmapped lazily and are kept. No folio is in between: all
 * unmapped folios are either taken or kept.
 */
static void luf_flush_waiting(struct luf_run *run)
{
	if (!run->waiting)
		return;
	run->waiting = 0;
	luf_flush_kept(run);
}

/*
 * The batches of a single source are not known any more: use those of all sources
 * of the run.
 */
void __luf_migrated(struct luf_run *run, const struct folio *folio)
{
	run->folio = folio;
	run->lazy = 1;
	run->eager = 0;
	run->first = run->oldest;
	run->last = run->newest;
}

bool __luf_take_source(struct luf_run *run, struct folio *folio)
{
	if (!run->lazy)
		return false;
	if (folio_ref_freeze(folio, 1)) {
		folio_unqueue_deferred_split(folio);
		luf_defer_folio(run, folio);
		return true;
	}
	/*
	 * Another reference holds the folio and frees it without knowing of a
	 * batch. Further sources still count as waiting.
	 */
	run->waiting--;
	luf_flush_kept(run);
	return false;
}

/* Runs */

void __luf_run_begin(struct luf_run *run, enum luf_path path)
{
	memset(run, 0, sizeof(*run));
	luf_part_init(&run->part);
	luf_debug_begin(run);
	run->path = path;
	run->srcu = srcu_read_lock(&luf_runs);
	/* LUF may have been switched off before the SRCU section. */
	if (!static_branch_unlikely(&luf_key)) {
		srcu_read_unlock(&luf_runs, run->srcu);
		return;
	}
	run->stream = path == LUF_COMPACTION ? &run->own : &luf_reclaim;
	run->outer = current->luf_run;
	current->luf_run = run;
}

static void luf_uncharge_part(struct luf_part *part)
{
	struct folio_batch batch;
	struct folio *folio;

	folio_batch_init(&batch);
	list_for_each_entry(folio, &part->folios, lru) {
		if (folio_batch_add(&batch, folio))
			continue;
		mem_cgroup_uncharge_folios(&batch);
		folio_batch_reinit(&batch);
	}
	mem_cgroup_uncharge_folios(&batch);
}

/* Usually all folios belong to one zone. */
static void luf_put_in_pools(struct luf_part *part)
{
	struct luf_part same;
	struct folio *folio, *next;
	struct zone *zone = NULL;

	luf_part_init(&same);
	list_for_each_entry_safe(folio, next, &part->folios, lru) {
		if (zone && zone != folio_zone(folio)) {
			luf_part_cover(&same, part->first, part->last);
			luf_zone_put(zone, &same);
		}
		zone = folio_zone(folio);
		list_move_tail(&folio->lru, &same.folios);
		same.nr_pages += folio_nr_pages(folio);
	}
	luf_part_cover(&same, part->first, part->last);
	if (zone)
		luf_zone_put(zone, &same);
}

/* The pages must be free before compaction checks its result. */
void __luf_release_block(struct luf_run *run)
{
	struct luf_part *part = &run->part;

	luf_flush_waiting(run);
	if (!run->oldest)
		return;
	luf_part_cover(part, run->oldest, run->newest);
	luf_uncharge_part(part);
	luf_flush_part(part, LUF_FOR_COMPACTION);
	luf_free_folios(&part->folios);
	luf_part_init(part);
	run->oldest = 0;
	run->newest = 0;
}

/*
 * Compaction of a whole zone wants no block: it lets as many pages wait as the
 * zone's pool would.
 */
void __luf_end_cluster(struct luf_run *run)
{
	const struct folio *one;

	luf_flush_waiting(run);
	one = list_first_entry_or_null(&run->part.folios, struct folio, lru);
	if (one && run->part.nr_pages >= luf_zone_cap(folio_zone(one)))
		__luf_release_block(run);
}

void __luf_run_end(struct luf_run *run)
{
	if (run->path == LUF_COMPACTION) {
		__luf_release_block(run);
	} else {
		luf_flush_waiting(run);
		luf_uncharge_part(&run->part);
		luf_put_in_pools(&run->part);
	}
	luf_debug_end(run);
	current->luf_run = run->outer;
	srcu_read_unlock(&luf_runs, run->srcu);
	run->stream = NULL;
}
