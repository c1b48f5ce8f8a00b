/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Morsels: memory objects that are page-table subtrees. A morsel is a file of
 * morselfs; what its tables map is its content. Mapping it hangs its tables into
 * the process's: one entry for each GiB, one for each 2 MiB of the rest, and the
 * last pages one by one. See Documentation/filesystems/morselfs.rst.
 *
 * The contract
 * ============
 *
 * A morsel is *open* or *sealed* (F_SEAL_WRITE). Of an open one the leaves may be
 * written, and one address space at a time has it hung in; others that map it
 * read-only get its pages one by one. The leaves of a sealed one may only be
 * read, and any number of address spaces have it hung in. No upper entry takes
 * rights away: get_user_pages_fast() looks at leaves alone.
 *
 * Its tables are filled by whoever comes first, with no lock (fs/morsel/table.c):
 *
 *	allocate what lacks
 *	morsel_enter()			an RCU section, once it is not closed
 *	an entry from nothing to a table or a leaf, by compare-and-exchange
 *	morsel_leave()
 *
 * Who takes entries out or changes them (a hole, a smaller size, the seal):
 *
 *	the inode's lock
 *	morsel_close()			nobody is in such a section any more; while
 *					pages are freed for 20 ms, then once more
 *	take it out of all address spaces, with their flushes
 *	change or clear entries, free pages
 *	morsel_open()
 *
 * Who hangs it into an address space (fs/morsel/attach.c) does so within such a
 * section too, under that address space's lock of the entry. So nothing is hung
 * in between the second and the fourth of these steps. So does who maps pages by
 * page beside the one that faulted, which is locked: of these he holds none.
 *
 * Who holds a morsel closed takes i_mmap_rwsem and page-table locks, and never
 * the lock of an mm or a VMA: who waits for morsel_open() may hold those.
 *
 * Taking out clears the entry under the same lock, and has the whole address
 * space flushed, upper levels included, before it returns; until then the morsel
 * counts it, and who changes entries waits for it (morsel->taking). So nothing is
 * freed, and nothing sealed, that a CPU still knows.
 * Tables are freed with the last reference to the file, after an RCU grace
 * period: a walker of get_user_pages_fast() has interrupts off.
 *
 * A slot of a process belongs to one mapping alone (fs/morsel/slot.c), so that
 * what a neighbour's munmap() does never reaches a morsel's tables. Whether a
 * slot holds the morsel's own entry is seen from the entry: it leads to the same
 * table, or is the same leaf. What an attached mapping has by page there (a part of
 * 1 GiB) is in a table of the process's own, never a leaf.
 *
 * What a mapping cannot have as a whole it has by page: a mapping that is split
 * or changes its rights is taken out and mapped by page from then on.
 *
 * A mapping to which tables are attached holds no reference and no mapcount of
 * the folios that it maps there. So the walks of the reverse mapping, which undo
 * what a mapping holds, skip it, and a folio of a morsel is never split: its
 * leaf is in the morsel's own tables, which no such walk reaches.
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
long __morsel_fcntl(struct file *file, unsigned int cmd, unsigned int arg);
int morsel_find_page(struct mm_struct *mm, unsigned long pfn,
		     unsigned long *address, short *shift);

/**
 * morsel_is_vma - whether a morsel's tables may be hung in
 * @vma: the mapping
 *
 * A flag, and nothing that vma points to: operations and file are replaced on
 * the way out.
 *
 * Return: true if so.
 */
static inline bool morsel_is_vma(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_MORSEL;
}

/* Bit of vm_private_data: nothing is attached any more, pages are mapped one by one. */
#define MORSEL_BY_PAGE	BIT(0)

/**
 * morsel_is_attached - whether tables of the mapping may be a morsel's own
 * @vma: the mapping
 *
 * Context: any. It becomes false once, with the mmap lock and the VMA lock held for
 * writing, after all that was attached has been taken out.
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
 * morsel_fault - hang in what a fault needs
 * @vma: the mapping, or its mm, is locked
 * @address: that faulted
 * @flags: of the fault
 *
 * Return: VM_FAULT_FALLBACK where the fault is to be handled as any other.
 */
static inline vm_fault_t morsel_fault(struct vm_area_struct *vma,
				      unsigned long address, unsigned int flags)
{
	if (!morsel_is_vma(vma))
		return VM_FAULT_FALLBACK;
	return __morsel_fault(vma, address, flags);
}

/**
 * morsel_unmap - take out what is hung in, before the rest is unmapped
 * @tlb: what is flushed then
 * @vma: the mapping
 * @begin: of what is unmapped
 * @end: behind it
 *
 * Slots that are unmapped in part are taken out as a whole, and hung in again by
 * the next fault.
 */
static inline void morsel_unmap(struct mmu_gather *tlb,
				struct vm_area_struct *vma, unsigned long begin,
				unsigned long end)
{
	if (morsel_is_vma(vma))
		__morsel_unmap(tlb, vma, begin, end);
}

/**
 * morsel_show_smap - how much of what is mapped here is there
 * @m: of /proc/PID/smaps
 * @vma: the mapping
 */
static inline void morsel_show_smap(struct seq_file *m,
				    struct vm_area_struct *vma)
{
	if (morsel_is_vma(vma))
		__morsel_show_smap(m, vma);
}

/**
 * morsel_fcntl - seals
 * @file: any file
 * @cmd: F_ADD_SEALS or F_GET_SEALS
 * @arg: the seals
 * @ret: what fcntl() returns
 *
 * Return: false if @file is no morsel.
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

/* Folded before anything is inlined: a function leaves a trace in mremap.o. */
#define morsel_is_attached(...)	false

static inline bool morsel_owns_mapping(const struct address_space *mapping)
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
