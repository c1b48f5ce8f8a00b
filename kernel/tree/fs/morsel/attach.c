// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attach the tables of a morsel to those of a process. The contract is in
 * linux/morsel.h.
 */

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <asm/pgalloc.h>

#include "internal.h"
#include "vma.h"

static pud_t *morsel_alloc_pud(struct mm_struct *mm, unsigned long address)
{
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, address), address);

	return p4d ? pud_alloc(mm, p4d, address) : NULL;
}

/*
 * Attach the existing tables of a morsel to adjacent slots. Slots without a table are
 * left to the next fault.
 *
 * Return: 0, or -EEXIST if a slot has a table of the process.
 */
static int morsel_set_puds(struct mm_struct *mm, pud_t *slots, const pud_t *own,
			   unsigned long nr)
{
	unsigned long i, attached = 0;
	int err = 0;

	guard(spinlock)(&mm->page_table_lock);
	for (i = 0; i < nr; i++) {
		if (pud_none(READ_ONCE(own[i])))
			continue;
		if (pud_none(slots[i])) {
			set_pud(&slots[i], READ_ONCE(own[i]));
			attached++;
		} else if (!morsel_is_same_pud(slots[i], &own[i])) {
			err = -EEXIST;
		}
	}
	morsel_count_many(MORSEL_ATTACHED_PUD, attached);
	return err;
}

static int morsel_set_pmds(struct mm_struct *mm, pmd_t *slots, const pmd_t *own,
			   unsigned long nr)
{
	unsigned long i, attached = 0;
	int err = 0;

	guard(spinlock)(pmd_lockptr(mm, slots));
	for (i = 0; i < nr; i++) {
		if (pmd_none(READ_ONCE(own[i])))
			continue;
		if (pmd_none(slots[i])) {
			WRITE_ONCE(slots[i], READ_ONCE(own[i]));
			attached++;
		} else if (!morsel_is_same_pmd(slots[i], &own[i])) {
			err = -EEXIST;
		}
	}
	morsel_count_many(MORSEL_ATTACHED_PMD, attached);
	return err;
}

static int morsel_attach_puds(struct vm_area_struct *vma, unsigned long address,
			      unsigned long nr)
{
	struct morsel *morsel = morsel_in(vma);
	pud_t *slots = morsel_alloc_pud(vma->vm_mm, address), *own;
	int err = 0;

	if (!slots)
		return -ENOMEM;
	morsel_enter(morsel);
	own = morsel_pud(morsel, morsel_index_at(vma, address));
	/* Other CPUs may have attached it already: no lock then. */
	if (own && (nr > 1 || !morsel_is_same_pud(READ_ONCE(*slots), own)))
		err = morsel_set_puds(vma->vm_mm, slots, own, nr);
	morsel_leave();
	return err;
}

/* Return: -EEXIST also for a leaf of 1 GiB that the process maps only in part. */
static int morsel_attach_pmds(struct vm_area_struct *vma, unsigned long address,
			      unsigned long nr)
{
	struct morsel *morsel = morsel_in(vma);
	pud_t *pud = morsel_alloc_pud(vma->vm_mm, address);
	pmd_t *slots = pud ? pmd_alloc(vma->vm_mm, pud, address) : NULL, *own;
	int err = 0;

	if (!slots)
		return -ENOMEM;
	morsel_enter(morsel);
	own = morsel_pmd(morsel, morsel_index_at(vma, address));
	if (!own)
		err = -EEXIST;
	else if (nr > 1 || !morsel_is_same_pmd(READ_ONCE(*slots), own))
		err = morsel_set_pmds(vma->vm_mm, slots, own, nr);
	morsel_leave();
	return err;
}

/*
 * Allocate a page table of the process for 2 MiB that cannot be attached. A fault then
 * maps single pages there: a leaf would look like an attached one. Nothing can be
 * attached there while the fault does so.
 *
 * Return: -EEXIST if the table is there, 0 if the slot can be attached after all,
 * -ENOMEM.
 */
static int morsel_own_table(struct vm_area_struct *vma, unsigned long address)
{
	struct morsel *morsel = morsel_in(vma);
	pud_t *pud = morsel_alloc_pud(vma->vm_mm, address);
	pmd_t *slot = pud ? pmd_alloc(vma->vm_mm, pud, address) : NULL;

	if (!slot)
		return -ENOMEM;
	for (;;) {
		bool is_free, can_be;
		pmd_t *own;

		morsel_enter(morsel);
		own = morsel_pmd(morsel, morsel_index_at(vma, address));
		is_free = pmd_none(READ_ONCE(*slot));
		can_be = own && (is_free || morsel_is_same_pmd(READ_ONCE(*slot), own));
		morsel_leave();
		if (can_be)
			return 0;
		if (!is_free)
			return -EEXIST;
		if (pte_alloc(vma->vm_mm, slot))
			return -ENOMEM;
	}
}

/* Attach the slot of an address, or the 2 MiB of it. */
static int morsel_attach_slot(struct vm_area_struct *vma, unsigned long address,
			      enum morsel_level level)
{
	int err = -EEXIST;

	if (level == MORSEL_PUD)
		err = morsel_attach_puds(vma, morsel_slot_begin(address, level), 1);
	if (err == -EEXIST)
		err = morsel_attach_pmds(vma, morsel_slot_begin(address, MORSEL_PMD), 1);
	if (err == -EEXIST)
		err = morsel_own_table(vma, morsel_slot_begin(address, MORSEL_PMD));
	return err;
}

/* Return: number of adjacent slots from an address on. */
static unsigned long morsel_adjacent_slots(const struct morsel_span *span,
					   unsigned long address, enum morsel_level level)
{
	unsigned long size = morsel_slot_size(level);
	unsigned long there = span->offset + (address - span->begin);

	return min3((span->end - address) / size,
		    PTRS_PER_PMD - address / size % PTRS_PER_PMD,
		    PTRS_PER_PMD - there / size % PTRS_PER_PMD);
}

static unsigned long morsel_run_end(const struct morsel_span *span, unsigned long address,
				    enum morsel_level level)
{
	return address + morsel_adjacent_slots(span, address, level) *
			 morsel_slot_size(level);
}

static int morsel_attach_run(struct vm_area_struct *vma, unsigned long begin,
			     unsigned long end, enum morsel_level level)
{
	unsigned long nr = (end - begin) / morsel_slot_size(level);

	return level == MORSEL_PUD ? morsel_attach_puds(vma, begin, nr) :
				     morsel_attach_pmds(vma, begin, nr);
}

/**
 * morsel_attach_all - attach all slots of a mapping at once
 * @vma: the mapping
 *
 * So existing pages cause no further faults. Slots for which there is no memory are
 * attached by their own faults. Only the first call does anything.
 *
 * Context: may sleep; @vma or its mm is locked.
 */
void morsel_attach_all(struct vm_area_struct *vma)
{
	struct morsel_span span = morsel_vma_span(vma);
	unsigned long next, address = ALIGN(vma->vm_start, PMD_SIZE);
	enum morsel_level level;

	if (morsel_vma_test(vma, MORSEL_VMA_ATTACHED) ||
	    test_and_set_bit(ilog2(MORSEL_VMA_ATTACHED),
			     (unsigned long *)&vma->vm_private_data))
		return;
	for (; address < vma->vm_end; address = next) {
		level = morsel_slot_level(&span, address);
		if (level == MORSEL_PAGE)
			return;
		next = morsel_run_end(&span, address, level);
		morsel_attach_run(vma, address, next, level);
	}
}

/* Fill the missing pages of a range of slots. */
static int morsel_fill_range(struct vm_area_struct *vma, unsigned long begin,
			     unsigned long end)
{
	struct morsel *morsel = morsel_in(vma);
	pgoff_t first = morsel_index_at(vma, begin), last = morsel_index_at(vma, end);
	pgoff_t whole = READ_ONCE(morsel->whole), index = max(first, whole);
	int err = 0;

	while (!err && (index = morsel_find_hole(morsel, index, last)) < last) {
		begin = vma->vm_start + ((index - vma->vm_pgoff) << PAGE_SHIFT);
		err = fatal_signal_pending(current) ? -EINTR :
		      morsel_fill(morsel, index, 0, vma, begin, NULL);
	}
	if (!err && first <= whole && last > whole && morsel->seals & F_SEAL_WRITE)
		WRITE_ONCE(morsel->whole, last);
	return err;
}

bool __morsel_populate(struct vm_area_struct *vma, unsigned long *begin, unsigned long end)
{
	struct morsel_span span = morsel_vma_span(vma);
	enum morsel_level level;
	unsigned long slot, next;

	for (; *begin < end; *begin = min(next, end)) {
		level = morsel_slot_level(&span, *begin);
		if (level == MORSEL_PAGE)
			return false;
		slot = morsel_slot_begin(*begin, level);
		next = morsel_run_end(&span, slot, level);
		if (morsel_fill_range(vma, *begin, min(next, end)) ||
		    morsel_attach_run(vma, slot, next, level))
			return false;
	}
	return true;
}

vm_fault_t __morsel_fault(struct vm_area_struct *vma, unsigned long address,
			  unsigned int flags)
{
	struct morsel_span span = morsel_vma_span(vma);
	struct morsel *morsel = morsel_in(vma);
	enum morsel_level level = morsel_slot_level(&span, address);
	int err;

	if (morsel_vma_test(vma, MORSEL_BY_PAGE))
		return VM_FAULT_FALLBACK;
	/*
	 * A private mapping gets copies after mprotect() has converted it, which
	 * needs the mmap lock for writing. Before that only a debugger's write or
	 * a long-term pin asks for a copy.
	 */
	if (flags & (FAULT_FLAG_WRITE | FAULT_FLAG_UNSHARE) &&
	    !(vma->vm_flags & VM_SHARED))
		return VM_FAULT_SIGBUS;
	if (level == MORSEL_PAGE)
		return VM_FAULT_FALLBACK;
	morsel_count(MORSEL_FAULTS);
	/* Beyond the end of the file, or no space or memory is left. */
	err = morsel_fill(morsel, morsel_index_at(vma, address), 0, vma,
			  address & PAGE_MASK, NULL);
	if (err)
		return err == -EHWPOISON ? VM_FAULT_HWPOISON : VM_FAULT_SIGBUS;
	err = morsel_attach_slot(vma, address, level);
	if (err)
		return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_FALLBACK;
	morsel_attach_all(vma);
	return 0;
}
