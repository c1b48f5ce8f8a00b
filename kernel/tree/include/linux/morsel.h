/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Morsels: memory objects that are page-table subtrees. A morsel is a file of
 * morselfs; the pages that its tables map are its content. Mapping it attaches its
 * tables to those of the process: one entry for each GiB, one for each 2 MiB of the
 * rest, and single pages at the ends. See Documentation/filesystems/morselfs.rst.
 *
 * The contract
 * ============
 *
 * A morsel is *open* or *sealed* (F_SEAL_WRITE). The leaves of an open morsel are
 * writable: it is attached to mappings that may write, and mappings that may not map
 * its pages one by one. The leaves of a sealed morsel are read-only. Both kinds may be
 * attached to any number of address spaces. Upper entries do not restrict access:
 * get_user_pages_fast() checks only leaves.
 *
 * The seal refuses while a mapping exists that could write (mapping_deny_writable()).
 * The mapping counts until it is unlinked from i_mmap, which is after its unmap and the
 * flush of what was attached. Single pages may be flushed later; until then the
 * mmu_gather holds references, and the seal waits for those as for pins.
 *
 * Setting entries needs no lock (fs/morsel/fill.c):
 *
 *	allocate missing tables and pages: one task at a time for each block of 2 MiB
 *					or 1 GiB, and the others wait
 *	morsel_enter()			an RCU section, once it is not closed
 *	set an empty entry to a table or a leaf, by compare-and-exchange
 *	morsel_leave()
 *
 * Removing or changing entries (a hole, a smaller size, the seal):
 *
 *	lock the inode
 *	morsel_close()			waits for the sections above; to free pages, in
 *					steps of 20 ms
 *	detach it from all address spaces, with their flushes
 *	change or clear entries, free pages
 *	morsel_open()
 *
 * Attaching it to an address space (fs/morsel/attach.c) happens within such a section
 * too, under the page-table lock of the entry. So nothing is attached between the
 * second and the fourth of these steps. The same holds for mapping single pages around
 * a faulting page: only the faulting page is locked.
 *
 * While a morsel is closed, i_mmap_rwsem and page-table locks may be taken, but never
 * the lock of an mm or a VMA: tasks that wait for morsel_open() may hold those.
 *
 * Detaching clears the entry under the same lock, and flushes the whole address space,
 * upper levels included, before it returns. Until then morsel->taking counts it, and
 * changing entries waits for it. So no page is freed or sealed while a CPU still has a
 * translation of it.
 * Tables are freed with the last reference to the file, after an RCU grace period:
 * get_user_pages_fast() walks tables with interrupts disabled.
 *
 * A slot of a process belongs to one mapping only (fs/morsel/slot.c), so that munmap()
 * of a neighbour never reaches the tables of a morsel. The entry itself shows whether a
 * slot holds the morsel's own entry: it leads to the same table, or is the same leaf.
 * Single pages of an attached mapping (a part of 1 GiB) are in a table of the process,
 * never a leaf.
 *
 * fork() copies no entries: the mapping of the child has nothing attached, and its
 * faults attach. It is in i_mmap before that, so a removal of pages finds it.
 *
 * A mapping that cannot be attached maps single pages: a mapping that is split or
 * changes its access rights is detached, and maps single pages from then on.
 *
 * A sealed morsel in persistent memory has tables in memory that one task at a time
 * builds (fs/morsel/pmem_fill.c). It is never closed, and the tables stay until the
 * unmount. Its leaves are those of DAX, which hold no reference of a page. An open one
 * there has no tables in memory: it is mapped by page or by 2 MiB, and invalidate_lock of
 * its mapping excludes faults from the removal of blocks (fs/morsel/pmem_write.c).
 *
 * A mapping to which tables are attached holds no reference and no mapcount of
 * the folios that it maps there. So walks of the reverse mapping, which drop the
 * references of a mapping, skip it, and a folio of a morsel is never split: its leaf is
 * in the morsel's own tables, which no such walk reaches.
 */
#ifndef _LINUX_MORSEL_H
#define _LINUX_MORSEL_H

#include <linux/fs.h>
#include <linux/mm.h>

struct mm_walk;
struct mmu_gather;
struct seq_file;

#ifdef CONFIG_MORSELFS

vm_fault_t __morsel_fault(struct vm_area_struct *vma, unsigned long address,
			  unsigned int flags);
void __morsel_unmap(struct mmu_gather *tlb, struct vm_area_struct *vma,
		    unsigned long begin, unsigned long end);
unsigned long __morsel_move(struct vm_area_struct *vma, unsigned long begin,
			    unsigned long length);
int morsel_walk(unsigned long begin, unsigned long end, struct mm_walk *walk);
void __morsel_show_smap(struct seq_file *m, struct vm_area_struct *vma);
bool morsel_is_file(const struct file *file);
bool morsel_owns_mapping(const struct address_space *mapping);
bool morsel_has_page(const struct address_space *mapping, pgoff_t index);
bool __morsel_populate(struct vm_area_struct *vma, unsigned long *begin, unsigned long end);
void morsel_report_meminfo(struct seq_file *m);
long __morsel_fcntl(struct file *file, unsigned int cmd, unsigned int arg);
int morsel_find_page(struct mm_struct *mm, unsigned long pfn,
		     unsigned long *address, short *shift);

/**
 * morsel_is_vma - whether a morsel may be attached to a mapping
 * @vma: the mapping
 *
 * Tests a flag, because the operations and the file of a VMA are replaced while it is
 * torn down.
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool morsel_is_vma(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_MORSEL;
}

/* Bit of vm_private_data: the mapping is detached and maps single pages. */
#define MORSEL_BY_PAGE	BIT(0)

/**
 * morsel_is_attached - whether a mapping may use a morsel's own tables
 * @vma: the mapping
 *
 * Context: any. It becomes false once, with the mmap lock and the VMA lock held for
 * writing, after everything was detached.
 * Return: true if so. Then no entry of the page tables there may be changed.
 */
static inline bool morsel_is_attached(const struct vm_area_struct *vma)
{
	unsigned long data;

	if (!morsel_is_vma(vma))
		return false;
	/* Pairs with smp_store_release() in morsel_convert(). */
	data = (unsigned long)smp_load_acquire(&vma->vm_private_data);
	return !(data & MORSEL_BY_PAGE);
}

/**
 * morsel_fault - attach the tables that a fault needs
 * @vma: the mapping
 * @address: address of the fault
 * @flags: FAULT_FLAG_* of the fault
 *
 * Context: may sleep; @vma or its mm is locked.
 * Return: VM_FAULT_FALLBACK if the fault is to be handled as for any other file.
 */
static inline vm_fault_t morsel_fault(struct vm_area_struct *vma,
				      unsigned long address, unsigned int flags)
{
	if (!morsel_is_vma(vma))
		return VM_FAULT_FALLBACK;
	return __morsel_fault(vma, address, flags);
}

/**
 * morsel_populate - fill and attach a range of a mapping
 * @vma: the mapping
 * @begin: begin of the range; set to where it remains to be populated as for any other
 *	file: single pages, and what cannot be filled, to find out why
 * @end: end of the range, in @vma
 *
 * Context: may sleep; the mmap lock is held.
 * Return: true if nothing remains.
 */
static inline bool morsel_populate(struct vm_area_struct *vma, unsigned long *begin,
				   unsigned long end)
{
	return morsel_is_attached(vma) && __morsel_populate(vma, begin, end);
}

/**
 * morsel_unmap - detach a range before it is unmapped
 * @tlb: mmu_gather of the unmap
 * @vma: the mapping
 * @begin: begin of the range
 * @end: end of the range
 *
 * Slots that are partly in the range are detached as a whole, and attached again by the
 * next fault.
 *
 * Context: the mmap lock or i_mmap_rwsem is held; takes page-table locks.
 */
static inline void morsel_unmap(struct mmu_gather *tlb,
				struct vm_area_struct *vma, unsigned long begin,
				unsigned long end)
{
	if (morsel_is_vma(vma))
		__morsel_unmap(tlb, vma, begin, end);
}

/**
 * morsel_show_smap - print the resident size of an attached mapping
 * @m: seq_file of /proc/PID/smaps
 * @vma: the mapping
 *
 * Context: may sleep; the mmap lock is held.
 */
static inline void morsel_show_smap(struct seq_file *m,
				    struct vm_area_struct *vma)
{
	if (morsel_is_vma(vma))
		__morsel_show_smap(m, vma);
}

/**
 * morsel_fcntl - get or add the seals of a morsel
 * @file: any file
 * @cmd: F_ADD_SEALS or F_GET_SEALS
 * @arg: seals to add
 * @ret: set to the result of fcntl()
 *
 * Context: may sleep.
 * Return: false if @file is not a morsel.
 */
static inline bool morsel_fcntl(struct file *file, unsigned int cmd,
				unsigned int arg, long *ret)
{
	if (!morsel_is_file(file))
		return false;
	*ret = __morsel_fcntl(file, cmd, arg);
	return true;
}

#else

static inline bool morsel_is_vma(const struct vm_area_struct *vma)
{
	return false;
}

/* A macro: an inline function would change the object code of mremap.o. */
#define morsel_is_attached(...)	false

static inline bool morsel_owns_mapping(const struct address_space *mapping)
{
	return false;
}

static inline bool morsel_has_page(const struct address_space *mapping, pgoff_t index)
{
	return false;
}

static inline void morsel_report_meminfo(struct seq_file *m)
{
}

static inline bool morsel_populate(struct vm_area_struct *vma, unsigned long *begin,
				   unsigned long end)
{
	return false;
}

static inline int morsel_find_page(struct mm_struct *mm, unsigned long pfn,
				   unsigned long *address, short *shift)
{
	return 0;
}

static inline vm_fault_t morsel_fault(struct vm_area_struct *vma,
				      unsigned long address, unsigned int flags)
{
	return VM_FAULT_FALLBACK;
}

static inline void morsel_unmap(struct mmu_gather *tlb,
				struct vm_area_struct *vma, unsigned long begin,
				unsigned long end)
{
}

static inline unsigned long __morsel_move(struct vm_area_struct *vma,
					  unsigned long begin,
					  unsigned long length)
{
	return length;
}

static inline int morsel_walk(unsigned long begin, unsigned long end,
			      struct mm_walk *walk)
{
	return 0;
}

static inline void morsel_show_smap(struct seq_file *m,
				    struct vm_area_struct *vma)
{
}

static inline bool morsel_fcntl(struct file *file, unsigned int cmd,
				unsigned int arg, long *ret)
{
	return false;
}

#endif /* CONFIG_MORSELFS */

#endif /* _LINUX_MORSEL_H */
