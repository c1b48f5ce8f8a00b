// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmaps: eligibility, clearing an entry, and handling of the folios. The
 * order of the steps is given in include/linux/luf.h.
 */

#include <linux/cpumask.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/page-isolation.h>
#include <linux/pagevec.h>
#include <linux/rmap.h>
#include <asm/tlbflush.h>

#include "../internal.h"
#include "internal.h"

#include <trace/events/luf.h>

DEFINE_STATIC_KEY_FALSE(luf_key);
DEFINE_SRCU(luf_runs);
struct luf_stream luf_reclaim;

struct luf_batches luf_batches = {
	.lock = __SPIN_LOCK_UNLOCKED(luf_batches.lock),
};

/* Eligibility */

static bool luf_refuse(enum luf_count why)
{
	luf_count(why);
	return false;
}

/*
 * Whether a local task or a remote machine may write the file. Check again once the
 * stamp is visible.
 */
static bool luf_has_writer(const struct folio *folio)
{
	return !folio_test_anon(folio) &&
	       (inode_is_open_for_write(folio->mapping->host) ||
		!mapping_writers_counted(folio->mapping));
}

/*
 * Eligible are anonymous memory that goes to swap, and page cache of files that
 * change only through writers counted in i_writecount.
 */
static bool luf_is_eligible(struct folio *folio)
{
	if (folio_test_hugetlb(folio) || folio_is_zone_device(folio) ||
	    folio_test_pmd_mappable(folio) || folio_test_ksm(folio) ||
	    folio_test_mlocked(folio) || __folio_test_movable(folio) ||
	    folio_contain_hwpoisoned_page(folio))
		return luf_refuse(LUF_REFUSED_KIND);
	if (!luf_zone_takes(folio_zone(folio)) ||
	    is_migrate_isolate_page(&folio->page) ||
	    is_migrate_cma_page(&folio->page))
		return luf_refuse(LUF_REFUSED_ZONE);
	if (folio_test_anon(folio)) {
		if (!folio_test_swapbacked(folio))
			return luf_refuse(LUF_REFUSED_KIND);
		return true;
	}
	if (folio_test_swapbacked(folio) || !folio->mapping ||
	    !mapping_writers_counted(folio->mapping))
		return luf_refuse(LUF_REFUSED_MAPPING);
	if (luf_has_writer(folio))
		return luf_refuse(LUF_REFUSED_WRITER);
	return true;
}

enum ttu_flags __luf_flags(struct luf_run *run, struct folio *folio)
{
	run->folio = folio;
	run->lazy = 0;
	run->eager = 0;
	run->first = 0;
	run->last = 0;
	return luf_is_eligible(folio) ? TTU_LAZY : 0;
}

/* One entry */

static void luf_raise_stamp(atomic64_t *stamp, u64 generation)
{
	s64 seen = atomic64_read(stamp);

	while ((u64)seen < generation)
		if (atomic64_try_cmpxchg(stamp, &seen, generation))
			break;
}

/* The lock of the table is held, so that stamps do not race. */
static void luf_stamp_table(pte_t *ptep, u64 generation)
{
	struct ptdesc *table = virt_to_ptdesc(ptep);

	if (table->pt_index < generation)
		table->pt_index = generation;
}

/* From here on every gate sees that this unmap is not drained. */
static void luf_stamp(struct folio *folio, struct mm_struct *mm, pte_t *ptep,
		      u64 generation)
{
	if (!folio_test_anon(folio))
		luf_raise_stamp(&folio->mapping->luf_generation, generation);
	luf_stamp_table(ptep, generation);
	luf_raise_stamp(&mm->luf_generation, generation);
}

/* CPUs set bits concurrently. */
static void luf_add_mm_cpus(struct luf_batch *batch, struct mm_struct *mm)
{
	unsigned int cpu;

	for_each_cpu_andnot(cpu, mm_cpumask(mm), &batch->cpus)
		cpumask_set_cpu(cpu, &batch->cpus);
}

/*
 * The lowest bit says that an entry was unmapped since the last flush of the mm.
 * The other bits count, so that a flush that clears the bit detects concurrent
 * unmaps.
 */
static void luf_mark_mm_unmapped(struct mm_struct *mm)
{
	s64 seen = atomic64_read(&mm->luf_unmaps);

	while (!atomic64_try_cmpxchg(&mm->luf_unmaps, &seen, (seen + 2) | 1))
		;
}

/* Steps three to nine of the protocol. Return: false if a writer intervened. */
static bool luf_publish_unmap(struct folio *folio, struct vm_area_struct *vma,
			      unsigned long address, pte_t *ptep, pte_t *old,
			      struct luf_batch *batch)
{
	struct mm_struct *mm = vma->vm_mm;

	luf_stamp(folio, mm, ptep, batch->generation);
	/* Pairs with the locked instruction of get_write_access(). */
	smp_mb();
	if (luf_has_writer(folio))
		return luf_refuse(LUF_REFUSED_LATE_WRITER);
	*old = ptep_get_and_clear(mm, address, ptep);
	if (WARN_ON_ONCE(pte_write(*old) || pte_dirty(*old))) {
		set_pte_at(mm, address, ptep, *old);
		return luf_refuse(LUF_REFUSED_WRITABLE);
	}
	/* A full barrier too: a CPU that is not in the mask yet sees the new tlb_gen. */
	inc_mm_tlb_gen(mm);
	luf_add_mm_cpus(batch, mm);
	/* Secondary TLBs of devices are never flushed lazily. */
	mmu_notifier_arch_invalidate_secondary_tlbs(mm, 0, -1UL);
	luf_mark_mm_unmapped(mm);
	return true;
}

static bool luf_unmap_entry(struct luf_run *run, struct folio *folio,
			    struct vm_area_struct *vma, unsigned long address,
			    pte_t *ptep, pte_t *old)
{
	struct luf_batch *batch;
	u64 generation;
	bool done;

	batch = luf_batch_get(&luf_batches, run->stream);
	if (!batch)
		return luf_refuse(LUF_REFUSED_BATCH);
	generation = batch->generation;
	if (!run->oldest)
		run->oldest = generation;
	run->newest = generation;
	if (!run->first)
		run->first = generation;
	run->last = generation;
	done = luf_publish_unmap(folio, vma, address, ptep, old, batch);
	if (done)
		luf_debug_unmap(run, pte_page(*old), generation);
	luf_batch_put(batch);
	return done;
}

bool __luf_unmap(struct folio *folio, struct vm_area_struct *vma,
		 unsigned long address, pte_t *ptep, pte_t *old)
{
	struct luf_run *run = current->luf_run;
	pte_t entry = ptep_get(ptep);
	bool writable = pte_write(entry) || pte_dirty(entry);

	luf_count(writable ? LUF_UNMAPPED_WRITABLE : LUF_UNMAPPED_READ_ONLY);
	/*
	 * No other CPU runs this mm: flushing now costs less than deferring.
	 * If another CPU starts to, the task's own batch is flushed before the
	 * folio goes to a pool.
	 */
	if (!arch_tlbbatch_should_defer(vma->vm_mm))
		return luf_refuse(LUF_REFUSED_LOCAL);
	if (writable || (vma->vm_flags & (VM_PFNMAP | VM_MIXEDMAP))) {
		luf_count(LUF_REFUSED_WRITABLE);
	} else if (luf_unmap_entry(run, folio, vma, address, ptep, old)) {
		if (!run->lazy++)
			run->waiting++;
		return true;
	}
	run->eager++;
	return false;
}

/* The folio */

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

/* The run */

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
			luf_pool_put(zone, &same);
		}
		zone = folio_zone(folio);
		list_move_tail(&folio->lru, &same.folios);
		same.nr_pages += folio_nr_pages(folio);
	}
	luf_part_cover(&same, part->first, part->last);
	if (zone)
		luf_pool_put(zone, &same);
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
