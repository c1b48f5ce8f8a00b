// SPDX-License-Identifier: GPL-2.0-only
/* Faults of mappings that map single pages. */

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <asm/pgalloc.h>

#include "internal.h"
#include "vma.h"

/* Number of existing pages that one fault maps: the default of Linux. */
#define PAGES_AROUND	16

/* Install the page table that __do_fault() preallocated. */
static void morsel_install_prealloc(struct vm_fault *vmf)
{
	struct mm_struct *mm = vmf->vma->vm_mm;

	if (!pmd_none(*vmf->pmd) || !vmf->prealloc_pte)
		return;
	guard(spinlock)(pmd_lockptr(mm, vmf->pmd));
	if (!pmd_none(*vmf->pmd))
		return;
	mm_inc_nr_ptes(mm);
	/* Lockless walks must see an empty table: see pmd_install(). */
	smp_wmb();
	pmd_populate(mm, vmf->pmd, vmf->prealloc_pte);
	vmf->prealloc_pte = NULL;
}

/* Map a page at vmf->pte. The morsel is entered, and the table is locked. */
static void morsel_map_page(struct vm_fault *vmf, pgoff_t index, struct page *page)
{
	struct vm_area_struct *vma = vmf->vma;
	struct folio *folio = page_folio(page);

	folio_get(folio);
	set_pte_range(vmf, folio, page, 1,
		      vma->vm_start + ((index - vma->vm_pgoff) << PAGE_SHIFT));
	add_mm_counter(vma->vm_mm, mm_counter_file(folio), 1);
}

/*
 * Map existing pages from @first up to @end. @own is the page of the fault, or NULL if
 * it is not to be mapped. As for attaching a slot, the morsel is entered and the table
 * locked: a removal of pages has either closed the morsel before, or finds them mapped.
 *
 * Return: whether the page of the fault is mapped.
 */
static bool morsel_map_present(struct vm_fault *vmf, pgoff_t first, pgoff_t end,
			       struct page *own)
{
	struct vm_area_struct *vma = vmf->vma;
	struct morsel *morsel = morsel_in(vma);
	bool is_mapped;
	pgoff_t index;
	pte_t *pte;

	morsel_install_prealloc(vmf);
	pte = pte_offset_map_lock(vma->vm_mm, vmf->pmd, vmf->address, &vmf->ptl);
	if (!pte)
		return false;
	end = min_t(pgoff_t, end,
		    DIV_ROUND_UP(i_size_read(&morsel->inode), PAGE_SIZE));
	for (index = first; index < end; index++) {
		struct page *page;

		vmf->pte = pte + (long)(index - vmf->pgoff);
		if (!pte_none(ptep_get(vmf->pte)))
			continue;
		page = index == vmf->pgoff ? own : morsel_peek(morsel, index);
		if (page && !PageHWPoison(page))
			morsel_map_page(vmf, index, page);
	}
	is_mapped = !pte_none(ptep_get(pte));
	vmf->pte = NULL;
	pte_unmap_unlock(pte, vmf->ptl);
	return is_mapped;
}

/*
 * Map the pages around that of a fault, which is locked: so the tables there are the
 * process's own, and stay.
 */
static void morsel_map_around(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	pgoff_t in_table = pte_index(vmf->address);
	pgoff_t first = round_down(vmf->pgoff, PAGES_AROUND);
	pgoff_t end = min3(first + PAGES_AROUND, vma->vm_pgoff + vma_pages(vma),
			   vmf->pgoff - in_table + PTRS_PER_PTE);

	first = max3(first, vma->vm_pgoff,
		     vmf->pgoff - min(vmf->pgoff, in_table));
	if (!morsel_try_enter(morsel_in(vma)))
		return;
	morsel_map_present(vmf, first, end, NULL);
	morsel_leave();
}

/* Whether the page is mapped by one PMD entry, if there is no table. */
static bool morsel_is_block(const struct vm_fault *vmf, struct page *page)
{
	return PageTransCompound(page) && pmd_none(*vmf->pmd);
}

/* A private write fault copies one page. */
static bool morsel_may_map_around(const struct vm_fault *vmf, struct page *page)
{
	struct vm_area_struct *vma = vmf->vma;

	return vma_pages(vma) > 1 &&
	       (vma->vm_flags & VM_SHARED || !(vmf->flags & FAULT_FLAG_WRITE)) &&
	       !morsel_is_block(vmf, page);
}

/**
 * morsel_page_fault - allocate and map the single page of a fault
 * @vmf: the fault
 *
 * Context: may sleep; the mmap lock or the VMA lock is held.
 * Return: VM_FAULT_* flags, as for ->fault().
 */
vm_fault_t morsel_page_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct morsel *morsel = morsel_in(vma);
	struct page *page;

	if (morsel_fill(morsel, vmf->pgoff, 0, vma, vmf->address, &page))
		return VM_FAULT_SIGBUS;
	/* Otherwise Linux would remove it from the page cache, where it is not, and free it. */
	if (PageHWPoison(page)) {
		put_page(page);
		return VM_FAULT_HWPOISON;
	}
	lock_page(page);
	if (page_folio(page)->mapping != morsel->inode.i_mapping) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_NOPAGE;
	}
	if (morsel_may_map_around(vmf, page))
		morsel_map_around(vmf);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

/**
 * morsel_map_pages - map the existing single pages around a read fault
 * @vmf: the fault
 * @first: index of the first page
 * @last: index of the last page
 *
 * Works without the lock of the folio. Write faults and missing pages are left to
 * ->fault(). With this callback faults are handled under the VMA lock, see
 * vmf_can_call_fault().
 *
 * Context: atomic, within RCU; the mmap lock or the VMA lock is held.
 * Return: VM_FAULT_NOPAGE if the page of the fault is mapped, else 0.
 */
vm_fault_t morsel_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last)
{
	struct morsel *morsel = morsel_in(vmf->vma);
	bool is_mapped = false;
	struct page *page;

	if (!morsel_try_enter(morsel))
		return 0;
	page = morsel_peek(morsel, vmf->pgoff);
	if (page && !morsel_is_block(vmf, page))
		is_mapped = morsel_map_present(vmf, first, last + 1, page);
	morsel_leave();
	return is_mapped ? VM_FAULT_NOPAGE : 0;
}
