// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmaps: eligible folios, and the clearing of an entry. The order of the steps is
 * given in include/linux/luf.h.
 */

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/page-isolation.h>
#include <linux/rmap.h>
#include <asm/tlbflush.h>

#include "../internal.h"
#include "internal.h"

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
