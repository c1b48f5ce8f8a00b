/* SPDX-License-Identifier: GPL-2.0-only */
/* State of a mapping of a morsel, in vm_private_data, and its slots. */
#ifndef _FS_MORSEL_VMA_H
#define _FS_MORSEL_VMA_H

#include <linux/mm.h>

#include "internal.h"

/* Bits of vm_private_data, beside the morsel and MORSEL_BY_PAGE. */
enum {
	/* All existing slots were attached once. */
	MORSEL_VMA_ATTACHED = BIT(1),
	MORSEL_VMA_BITS = MORSEL_BY_PAGE | MORSEL_VMA_ATTACHED,
};

/**
 * morsel_in - morsel of a mapping
 * @vma: mapping of a morsel
 *
 * Context: any.
 * Return: the morsel.
 */
static inline struct morsel *morsel_in(const struct vm_area_struct *vma)
{
	return (void *)((unsigned long)vma->vm_private_data &
			~(unsigned long)MORSEL_VMA_BITS);
}

/**
 * morsel_vma_test - test a bit of a mapping
 * @vma: mapping of a morsel
 * @bit: one of MORSEL_VMA_BITS
 *
 * Context: any.
 * Return: true if it is set.
 */
static inline bool morsel_vma_test(const struct vm_area_struct *vma, unsigned long bit)
{
	return (unsigned long)vma->vm_private_data & bit;
}

/**
 * morsel_vma_span - extent of a mapping
 * @vma: mapping of a morsel
 *
 * Context: any.
 * Return: the properties that its slots depend on.
 */
static inline struct morsel_span morsel_vma_span(const struct vm_area_struct *vma)
{
	return (struct morsel_span){
		.begin = vma->vm_start,
		.end = vma->vm_end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
	};
}

/**
 * morsel_index_at - index of the page at an address
 * @vma: mapping of a morsel
 * @address: address in it
 *
 * Context: any.
 * Return: the index in the morsel.
 */
static inline pgoff_t morsel_index_at(const struct vm_area_struct *vma,
				      unsigned long address)
{
	return vma->vm_pgoff + ((address - vma->vm_start) >> PAGE_SHIFT);
}

/**
 * morsel_would_write - whether a mapping with these flags writes the morsel
 * @flags: VM_* flags
 *
 * Context: any.
 * Return: true if so; private mappings write copies.
 */
static inline bool morsel_would_write(vm_flags_t flags)
{
	return (flags & (VM_SHARED | VM_WRITE)) == (VM_SHARED | VM_WRITE);
}

/**
 * morsel_is_same_pud - whether a slot of 1 GiB holds the morsel's own entry
 * @slot: entry of the process
 * @own: entry of the morsel, or NULL
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool morsel_is_same_pud(pud_t slot, const pud_t *own)
{
	pud_t there;

	if (!own || pud_none(slot))
		return false;
	there = READ_ONCE(*own);
	/* The accessed and dirty bits of a leaf may differ. */
	return pud_same(slot, there) ||
	       (pud_pfn(slot) == pud_pfn(there) && pud_leaf(slot) == pud_leaf(there));
}

/**
 * morsel_is_same_pmd - whether a slot of 2 MiB holds the morsel's own entry
 * @slot: entry of the process
 * @own: entry of the morsel, or NULL
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool morsel_is_same_pmd(pmd_t slot, const pmd_t *own)
{
	pmd_t there;

	if (!own || pmd_none(slot))
		return false;
	there = READ_ONCE(*own);
	/* The accessed and dirty bits of a leaf may differ. */
	return pmd_same(slot, there) ||
	       (pmd_pfn(slot) == pmd_pfn(there) && pmd_leaf(slot) == pmd_leaf(there));
}

#endif /* _FS_MORSEL_VMA_H */
