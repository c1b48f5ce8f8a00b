// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of a morsel: operations of the VMA, and mmap(). */

#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>

#include <trace/events/morsel.h>

#include "internal.h"
#include "vma.h"

/* Operations of the VMA */

void __morsel_show_smap(struct seq_file *m, struct vm_area_struct *vma)
{
	unsigned long pages = 0;

	if (!morsel_vma_test(vma, MORSEL_BY_PAGE))
		pages = morsel_resident(morsel_in(vma), vma->vm_pgoff,
					vma->vm_pgoff + vma_pages(vma));
	seq_printf(m, "Morsel:         %8lu kB\n", pages << (PAGE_SHIFT - 10));
}

/**
 * morsel_vm_open - operation of a copy of a mapping, by fork() or mremap()
 * @vma: the copy
 *
 * It has nothing attached: its own faults attach.
 *
 * Context: the mmap lock of the mapping's mm is held for writing.
 */
void morsel_vm_open(struct vm_area_struct *vma)
{
	vma->vm_private_data = (void *)((unsigned long)vma->vm_private_data &
					~(unsigned long)MORSEL_VMA_ATTACHED);
}

/**
 * morsel_may_split - operation before a mapping is split
 * @vma: the mapping
 * @address: where
 *
 * Context: may sleep; the mmap lock is held for writing.
 * Return: 0.
 */
int morsel_may_split(struct vm_area_struct *vma, unsigned long address)
{
	morsel_convert(vma);
	return 0;
}

/**
 * morsel_mprotect - operation before a mapping changes its access rights
 * @vma: the mapping
 * @begin: begin of the range
 * @end: end of the range
 * @flags: new VM_* flags
 *
 * Context: may sleep; the mmap lock is held for writing.
 * Return: 0.
 */
int morsel_mprotect(struct vm_area_struct *vma, unsigned long begin, unsigned long end,
		    unsigned long flags)
{
	morsel_convert(vma);
	return 0;
}

static const struct vm_operations_struct morsel_vm_ops = {
	.open = morsel_vm_open,
	.may_split = morsel_may_split,
	.mprotect = morsel_mprotect,
	.fault = morsel_page_fault,
	.map_pages = morsel_map_pages,
};

/* New mappings */

/* Whether the mapping has a slot. */
static bool morsel_has_slots(const struct vm_area_struct *vma)
{
	struct morsel_span span = morsel_vma_span(vma);
	unsigned long first = ALIGN(span.begin, PMD_SIZE);

	return first < span.end &&
	       morsel_slot_level(&span, first) != MORSEL_PAGE;
}

/* Whether the access rights of the mapping match those of the leaves. */
static bool morsel_can_attach(const struct vm_area_struct *vma, bool sealed)
{
	vm_flags_t flags = vma->vm_flags;

	if (!static_branch_likely(&morsel_key) || flags & VM_EXEC ||
	    !morsel_has_slots(vma))
		return false;
	if (sealed)
		return (flags & (VM_READ | VM_WRITE)) == VM_READ;
	/* What is open in persistent memory has no tables in memory. */
	return morsel_would_write(flags) &&
	       !morsel_sb_of(file_inode(vma->vm_file)->i_sb)->pmem;
}

/**
 * morsel_mmap - map a morsel
 * @file: file of the morsel
 * @vma: the new mapping
 *
 * Context: may sleep; the mmap lock is held for writing.
 * Return: 0, or -EPERM if a seal forbids it and @vma would write it.
 */
int morsel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct morsel *morsel = morsel_of(file_inode(file));
	unsigned int seals = READ_ONCE(morsel->seals);
	bool sealed = seals & F_SEAL_WRITE;

	if (seals & MORSEL_NO_WRITES && vma->vm_flags & VM_SHARED) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vma->vm_private_data = morsel;
	file_accessed(file);
	vma->vm_ops = &morsel_vm_ops;
	/* Not merged, because each has its own state; not scanned by khugepaged. */
	vm_flags_set(vma, VM_DONTEXPAND);
	if (!morsel_can_attach(vma, sealed))
		return 0;
	vm_flags_set(vma, VM_MORSEL | VM_DONTDUMP);
	/*
	 * For an open morsel the first fault does this: a removal of pages would
	 * not find the mapping yet.
	 */
	if (sealed)
		morsel_attach_all(vma);
	trace_morsel_attach(vma->vm_mm, vma->vm_start, vma->vm_end,
			    vma->vm_pgoff);
	return 0;
}

/*
 * Find an area that aligns a mapping of a slot or more for its slots, or any area. Out
 * of line, so that smaller mappings need no stack frame.
 */
static noinline unsigned long morsel_find_slot_area(struct file *file,
						    unsigned long length,
						    unsigned long pgoff,
						    unsigned long flags)
{
	struct mm_struct *mm = current->mm;
	u64 offset = (u64)pgoff << PAGE_SHIFT;
	unsigned long size = morsel_alignment(length, offset);
	unsigned long found = mm_get_unmapped_area(mm, file, 0,
						   length + size - PAGE_SIZE,
						   pgoff, flags);

	if (IS_ERR_VALUE(found))
		return mm_get_unmapped_area(mm, file, 0, length, pgoff, flags);
	return found + ((offset - found) & (size - 1));
}

/**
 * morsel_get_unmapped_area - find an area with the alignment for slots
 * @file: file of the morsel
 * @address: hint
 * @length: length in bytes
 * @pgoff: first page of the file
 * @flags: MAP_* flags
 *
 * Context: the mmap lock is held for writing.
 * Return: an address, or an error.
 */
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long address,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags)
{
	/* No slot fits into less. */
	if (length < PMD_SIZE || address || flags & MAP_FIXED)
		return mm_get_unmapped_area(current->mm, file, address, length,
					    pgoff, flags);
	return morsel_find_slot_area(file, length, pgoff, flags);
}
