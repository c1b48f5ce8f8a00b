// SPDX-License-Identifier: GPL-2.0-only
/*
 * Detach the tables of a morsel from those of a process. The contract is in
 * linux/morsel.h.
 */

#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>
#include <asm/tlb.h>

#include <trace/events/morsel.h>

#include "internal.h"
#include "vma.h"

/*
 * Detach adjacent slots up to @end. Set @next to the address to continue at.
 */
static bool morsel_detach_pmds(struct vm_area_struct *vma, pmd_t *slots,
			       unsigned long address, unsigned long end,
			       unsigned long *next)
{
	pgoff_t index = morsel_index_at(vma, address);
	unsigned long first = address & PMD_MASK, i, nr;
	const pmd_t *own = morsel_pmd(morsel_in(vma), index);
	bool detached = false;

	nr = min3(DIV_ROUND_UP(end - first, PMD_SIZE),
		  PTRS_PER_PMD - pmd_index(address),
		  PTRS_PER_PMD - pmd_index(index << PAGE_SHIFT));
	*next = first + nr * PMD_SIZE;
	if (!own)
		return false;
	guard(spinlock)(pmd_lockptr(vma->vm_mm, slots));
	for (i = 0; i < nr; i++) {
		if (!morsel_is_same_pmd(slots[i], &own[i]))
			continue;
		WRITE_ONCE(slots[i], __pmd(0));
		detached = true;
	}
	return detached;
}

/* Set @left to the entry that remains. */
static bool morsel_detach_pud(struct vm_area_struct *vma, pud_t *pud,
			      unsigned long address, pud_t *left)
{
	struct morsel *morsel = morsel_in(vma);

	guard(spinlock)(&vma->vm_mm->page_table_lock);
	*left = *pud;
	if (!morsel_is_same_pud(*pud, morsel_pud(morsel, morsel_index_at(vma, address))))
		return false;
	set_pud(pud, __pud(0));
	return true;
}

/* Detach the slots of one table from an address on. Sets @next as above. */
static bool morsel_detach_slots(struct vm_area_struct *vma, unsigned long address,
				unsigned long end, unsigned long *next)
{
	pgd_t *pgd = pgd_offset(vma->vm_mm, address);
	pud_t left;
	p4d_t *p4d;

	*next = (address & PGDIR_MASK) + PGDIR_SIZE;
	if (pgd_none(*pgd))
		return false;
	p4d = p4d_offset(pgd, address);
	*next = (address & P4D_MASK) + P4D_SIZE;
	if (p4d_none(*p4d))
		return false;
	*next = (address & PUD_MASK) + PUD_SIZE;
	if (morsel_detach_pud(vma, pud_offset(p4d, address), address, &left))
		return true;
	if (pud_none(left))
		return false;
	return morsel_detach_pmds(vma, pmd_offset(&left, address), address, end, next);
}

void __morsel_unmap(struct mmu_gather *tlb, struct vm_area_struct *vma,
		    unsigned long begin, unsigned long end)
{
	struct morsel *morsel = morsel_in(vma);
	unsigned long address, next;
	bool detached = false;

	if (morsel_vma_test(vma, MORSEL_BY_PAGE))
		return;
	atomic_inc(&morsel->taking);
	/* Tasks that find an entry cleared wait for the flush as well. */
	smp_mb__after_atomic();
	for (address = begin; address < end; address = next) {
		/* Keep tables that are being freed: see morsel_free_tables(). */
		rcu_read_lock();
		detached |= morsel_detach_slots(vma, address, end, &next);
		rcu_read_unlock();
	}
	if (detached) {
		/*
		 * CPUs cache the upper entries that lead to the morsel's tables:
		 * one INVLPG for each GiB, or none where the mm is not loaded,
		 * does not drop those. Flush at once: the mmu_gather holds no
		 * pages of the morsel until the end.
		 */
		tlb->need_flush_all = 1;
		tlb->freed_tables = 1;
		tlb_flush_pud_range(tlb, begin, end - begin);
		tlb_flush_mmu_tlbonly(tlb);
		morsel_count(MORSEL_DETACHED);
		trace_morsel_detach(vma->vm_mm, begin, end);
	}
	if (atomic_dec_and_test(&morsel->taking))
		wake_up_var(&morsel->taking);
}

/**
 * morsel_convert - map single pages from here on
 * @vma: the mapping
 *
 * Context: may sleep; the mmap lock is held for writing.
 */
void morsel_convert(struct vm_area_struct *vma)
{
	if (!morsel_is_vma(vma) || morsel_vma_test(vma, MORSEL_BY_PAGE))
		return;
	/* Exclude faults under the VMA lock, which would attach it again. */
	vma_start_write(vma);
	zap_vma_pages(vma);
	/* Walks of the reverse mapping must see cleared entries before this. */
	smp_store_release(&vma->vm_private_data,
			  (void *)((unsigned long)vma->vm_private_data | MORSEL_BY_PAGE));
	morsel_count(MORSEL_CONVERTED);
}

/**
 * __morsel_move - detach a range that mremap() moves
 * @vma: the old mapping
 * @begin: begin of the range
 * @length: length in bytes
 *
 * Context: may sleep; the mmap lock is held for writing.
 * Return: @length: there are no page-table entries to move.
 */
unsigned long __morsel_move(struct vm_area_struct *vma, unsigned long begin,
			    unsigned long length)
{
	zap_page_range_single(vma, begin, length, NULL);
	return length;
}
