// SPDX-License-Identifier: GPL-2.0-only
/* Walks of other parts of Linux over the page tables of attached mappings. */

#include <linux/mm.h>
#include <linux/pagewalk.h>

#include "internal.h"
#include "vma.h"

/*
 * Return: the PMD entry of the process for an address, or @part, which is set to the
 * entry for the same 2 MiB of a leaf of 1 GiB. The tables stay while the file is mapped.
 */
static pmd_t *morsel_entry_at(const struct vm_area_struct *vma,
			      unsigned long address, pmd_t *part)
{
	pgd_t *pgd = pgd_offset(vma->vm_mm, address);
	p4d_t *p4d;
	pud_t pud;

	if (!pgd_present(*pgd))
		return NULL;
	p4d = p4d_offset(pgd, address);
	if (!p4d_present(*p4d))
		return NULL;
	pud = READ_ONCE(*pud_offset(p4d, address));
	if (!pud_present(pud))
		return NULL;
	if (!pud_leaf(pud))
		return pmd_offset(&pud, address);
	*part = __pmd(pud_val(pud) + (address & ~PUD_MASK & PMD_MASK));
	return part;
}

/**
 * morsel_walk - walk the page tables of an attached mapping
 * @begin: begin of the range
 * @end: end of the range
 * @walk: the walk, of an attached mapping
 *
 * Walkers without ->attached_entry() see a hole.
 *
 * Context: the mmap lock is held; may sleep if the callbacks do.
 * Return: result of the first failing callback, 0 if none failed.
 */
int morsel_walk(unsigned long begin, unsigned long end, struct mm_walk *walk)
{
	const struct mm_walk_ops *ops = walk->ops;
	unsigned long next;
	int err = 0;

	if (!ops->attached_entry)
		return ops->pte_hole ? ops->pte_hole(begin, end, -1, walk) : 0;
	for (; !err && begin < end; begin = next) {
		pmd_t part, *pmd = morsel_entry_at(walk->vma, begin, &part);

		next = pmd_addr_end(begin, end);
		if (pmd && !pmd_none(pmdp_get_lockless(pmd)))
			err = ops->attached_entry(pmd, begin, next, walk);
		else if (ops->pte_hole)
			err = ops->pte_hole(begin, next, -1, walk);
	}
	return err;
}

/**
 * morsel_find_page - find the address of an attached page in a process
 * @mm: mm of the process
 * @pfn: PFN of the page, which need not be of a morsel
 * @address: set to its address
 * @shift: set to the size to give up there
 *
 * To other walks of page tables attached ranges are holes.
 *
 * Context: may sleep; the mmap lock is held.
 * Return: 1 if it is attached, else 0.
 */
int morsel_find_page(struct mm_struct *mm, unsigned long pfn,
		     unsigned long *address, short *shift)
{
	struct page *page = pfn_to_page(pfn);
	struct folio *folio = page_folio(page);
	pgoff_t index = folio->index + folio_page_idx(folio, page);
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, mm, 0);
	for_each_vma(vmi, vma) {
		struct morsel *morsel = morsel_in(vma);
		bool is_here;

		if (!morsel_is_attached(vma) || index < vma->vm_pgoff ||
		    index - vma->vm_pgoff >= vma_pages(vma))
			continue;
		morsel_enter(morsel);
		is_here = morsel_peek(morsel, index) == page;
		morsel_leave();
		if (!is_here)
			continue;
		*address = vma->vm_start +
			   ((index - vma->vm_pgoff) << PAGE_SHIFT);
		*shift = PAGE_SHIFT;
		return 1;
	}
	return 0;
}
