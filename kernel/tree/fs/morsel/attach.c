// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hanging a morsel's tables into a process's, and taking them out again. The
 * contract is in linux/morsel.h.
 */

#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/wait_bit.h>
#include <asm/pgalloc.h>
#include <asm/tlb.h>

#include <trace/events/morsel.h>

#include "internal.h"

/* Bits of vm_private_data, beside the morsel. */
enum {
	/* Nothing is hung in any more, pages are mapped one by one. */
	BY_PAGE = BIT(0),
	/* It may be written through this mapping. */
	CLAIMED = BIT(1),
	/* All that there was has been hung in once. */
	HUNG_IN = BIT(2),
};

static struct morsel *morsel_in(const struct vm_area_struct *vma)
{
	return (void *)((unsigned long)vma->vm_private_data &
			~(unsigned long)(BY_PAGE | CLAIMED | HUNG_IN));
}

static bool is(const struct vm_area_struct *vma, unsigned long bit)
{
	return (unsigned long)vma->vm_private_data & bit;
}

static void set(struct vm_area_struct *vma, unsigned long bit)
{
	vma->vm_private_data =
		(void *)((unsigned long)vma->vm_private_data | bit);
}

static void clear(struct vm_area_struct *vma, unsigned long bit)
{
	vma->vm_private_data =
		(void *)((unsigned long)vma->vm_private_data & ~bit);
}

static struct morsel_span span_of(const struct vm_area_struct *vma)
{
	unsigned long end = vma->vm_end;

	if (planted(PLANT_SLOT_PAST_END))
		end = ALIGN(end, PMD_SIZE);
	return (struct morsel_span){
		.begin = vma->vm_start,
		.end = end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
	};
}

static bool is_sealed(const struct morsel *morsel)
{
	return READ_ONCE(morsel->seals) & F_SEAL_WRITE;
}

/* Who may write an open one: one address space at a time. */

static bool claim(struct morsel *morsel, struct mm_struct *mm)
{
	guard(spinlock)(&morsel->lock);
	if (morsel->writes && morsel->writer != mm &&
	    !planted(PLANT_TWO_WRITERS))
		return false;
	morsel->writer = mm;
	morsel->writes++;
	return true;
}

static void disclaim(struct morsel *morsel)
{
	guard(spinlock)(&morsel->lock);
	if (!--morsel->writes)
		morsel->writer = NULL;
}

static bool would_write(vm_flags_t flags)
{
	return (flags & (VM_SHARED | VM_WRITE)) == (VM_SHARED | VM_WRITE);
}

static int claim_mapping(struct morsel *morsel, struct vm_area_struct *vma)
{
	if (!claim(morsel, vma->vm_mm))
		return -EBUSY;
	set(vma, CLAIMED);
	return 0;
}

/* The child of a writer that has undone VM_DONTCOPY may not. */
static bool may_fault(const struct vm_area_struct *vma)
{
	return is(vma, CLAIMED) || !would_write(vma->vm_flags);
}

/* Hanging in */

/* Whether a slot of the process holds the morsel's own entry. */
static bool is_same_pud(pud_t slot, const pud_t *own)
{
	return own && !pud_none(slot) &&
	       pud_pfn(slot) == pud_pfn(READ_ONCE(*own)) &&
	       pud_leaf(slot) == pud_leaf(READ_ONCE(*own));
}

static bool is_same_pmd(pmd_t slot, const pmd_t *own)
{
	return own && !pmd_none(slot) &&
	       pmd_pfn(slot) == pmd_pfn(READ_ONCE(*own)) &&
	       pmd_leaf(slot) == pmd_leaf(READ_ONCE(*own));
}

/*
 * Slots that lie in one table, and the morsel's own entries for them. Where all
 * are in use no lock is taken: that CPUs would take from each other at each fault.
 */

static void hang_puds(struct mm_struct *mm, pud_t *slots, const pud_t *own,
		      unsigned long count)
{
	unsigned long i = 0, hung = 0;

	while (i < count && !pud_none(READ_ONCE(slots[i])))
		i++;
	if (i == count)
		return;
	spin_lock(&mm->page_table_lock);
	for (; i < count; i++) {
		pud_t entry = READ_ONCE(own[i]);

		if (pud_none(entry) || !pud_none(slots[i]))
			continue;
		set_pud(&slots[i], entry);
		hung++;
	}
	spin_unlock(&mm->page_table_lock);
	morsel_count_many(MORSEL_ATTACHED_PUD, hung);
}

static void hang_pmds(struct mm_struct *mm, pmd_t *slots, const pmd_t *own,
		      unsigned long count)
{
	unsigned long i = 0, hung = 0;
	spinlock_t *lock;

	while (i < count && !pmd_none(READ_ONCE(slots[i])))
		i++;
	if (i == count)
		return;
	lock = pmd_lock(mm, slots);
	for (; i < count; i++) {
		pmd_t entry = READ_ONCE(own[i]);

		if (pmd_none(entry) || !pmd_none(slots[i]))
			continue;
		WRITE_ONCE(slots[i], entry);
		hung++;
	}
	spin_unlock(lock);
	morsel_count_many(MORSEL_ATTACHED_PMD, hung);
}

static pgoff_t index_at(const struct vm_area_struct *vma, unsigned long address)
{
	return vma->vm_pgoff + ((address - vma->vm_start) >> PAGE_SHIFT);
}

/*
 * How many slots there are, from that of an address on, until an end, or that of
 * a table: the process's, or the morsel's.
 */
static unsigned long slots_until(const struct vm_area_struct *vma,
				 unsigned long address, unsigned long end,
				 enum morsel_level level)
{
	unsigned long size = morsel_slot_size(level);
	unsigned long table = size * PTRS_PER_PMD;
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) +
		     (address - vma->vm_start);
	unsigned long left = end - address;

	BUILD_BUG_ON(PTRS_PER_PUD != PTRS_PER_PMD);
	if (address & (size - 1))
		return 1;
	left = min(left, table - (address & (table - 1)));
	left = min(left, table - (unsigned long)(offset & (table - 1)));
	return DIV_ROUND_UP(left, size);
}

/*
 * Hangs what the morsel has into so many slots. Nothing to hang is no error: the
 * next fault there does it. -EEXIST says that the process has a table of its own
 * in the first one.
 */
static int hang(struct vm_area_struct *vma, unsigned long address,
		unsigned long count, enum morsel_level level)
{
	struct morsel *morsel = morsel_in(vma);
	unsigned long begin = morsel_slot_begin(address, level);
	pgoff_t index = index_at(vma, begin);
	struct mm_struct *mm = vma->vm_mm;
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, begin), begin);
	pud_t *pud, *own_pud;
	pmd_t *pmd, *own_pmd;
	int err = 0;

	pud = p4d ? pud_alloc(mm, p4d, begin) : NULL;
	if (!pud)
		return -ENOMEM;
	if (level == MORSEL_PUD) {
		bool is_there;

		morsel_enter(morsel);
		own_pud = morsel_pud(morsel, index);
		if (own_pud)
			hang_puds(mm, pud, own_pud, count);
		is_there = is_same_pud(READ_ONCE(*pud), own_pud);
		morsel_leave();
		/* Else a table of the process's own is there. */
		if (is_there || pud_none(READ_ONCE(*pud)))
			return 0;
		begin = morsel_slot_begin(address, MORSEL_PMD);
		index = index_at(vma, begin);
		count = 1;
	}
	pmd = pmd_alloc(mm, pud, begin);
	if (!pmd)
		return -ENOMEM;
	morsel_enter(morsel);
	own_pmd = morsel_pmd(morsel, index);
	if (own_pmd) {
		hang_pmds(mm, pmd, own_pmd, count);
		if (!pmd_none(READ_ONCE(*own_pmd)) &&
		    !is_same_pmd(READ_ONCE(*pmd), own_pmd))
			err = -EEXIST;
	}
	morsel_leave();
	return err;
}

/*
 * All slots at once, so that nothing else faults where the morsel has pages. What
 * there is no memory for now is hung in by its own fault.
 */
static void hang_all(struct vm_area_struct *vma)
{
	struct morsel_span span = span_of(vma);
	unsigned long address = ALIGN(vma->vm_start, PMD_SIZE);

	if (is(vma, HUNG_IN) ||
	    test_and_set_bit(ilog2(HUNG_IN),
			     (unsigned long *)&vma->vm_private_data))
		return;
	while (address < vma->vm_end) {
		enum morsel_level level = morsel_slot_level(&span, address);
		unsigned long count;

		/* What is left is less than the smallest slot. */
		if (level == MORSEL_PAGE)
			return;
		count = slots_until(vma, address,
				    morsel_slot_begin(span.end, level), level);
		if (hang(vma, address, count, level) == -ENOMEM)
			return;
		address += count * morsel_slot_size(level);
	}
}

vm_fault_t __morsel_fault(struct vm_area_struct *vma, unsigned long address,
			  unsigned int flags)
{
	struct morsel_span span = span_of(vma);
	struct morsel *morsel = morsel_in(vma);
	enum morsel_level level = morsel_slot_level(&span, address);
	int err;

	if (is(vma, BY_PAGE) || level == MORSEL_PAGE)
		return VM_FAULT_FALLBACK;
	if (!may_fault(vma))
		return VM_FAULT_SIGBUS;
	morsel_count(MORSEL_FAULTS);
	/* Behind the end, the mount is full, or memory is. */
	if (morsel_fill(morsel, index_at(vma, address), 0, vma,
			address & PAGE_MASK))
		return VM_FAULT_SIGBUS;
	err = hang(vma, address, 1, level);
	if (err)
		return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_FALLBACK;
	hang_all(vma);
	return 0;
}

/* Taking out */

/*
 * Takes the morsel's own entries out of slots, until one is in use otherwise; how
 * many that were. @left is what stays in that one.
 */
static unsigned long take_puds(struct mm_struct *mm, pud_t *slots,
			       const pud_t *own, unsigned long count,
			       pud_t *left, bool *taken)
{
	unsigned long i;

	guard(spinlock)(&mm->page_table_lock);
	for (i = 0; i < count; i++) {
		*left = slots[i];
		if (pud_none(*left))
			continue;
		if (!own || !is_same_pud(*left, &own[i]))
			break;
		set_pud(&slots[i], __pud(0));
		*taken = true;
	}
	return i;
}

static void take_pmds(struct mm_struct *mm, pmd_t *slots, const pmd_t *own,
		      unsigned long count, bool *taken)
{
	spinlock_t *lock;
	unsigned long i;

	if (!own)
		return;
	lock = pmd_lock(mm, slots);
	for (i = 0; i < count; i++) {
		if (!is_same_pmd(slots[i], &own[i]))
			continue;
		WRITE_ONCE(slots[i], __pmd(0));
		*taken = true;
	}
	spin_unlock(lock);
}

/* Takes out what is hung in from an address on; up to where, or @end. */
static unsigned long take(struct vm_area_struct *vma, unsigned long address,
			  unsigned long end, bool *taken)
{
	struct morsel *morsel = morsel_in(vma);
	pgoff_t index = index_at(vma, address);
	pgd_t *pgd = pgd_offset(vma->vm_mm, address);
	unsigned long count;
	p4d_t *p4d;
	pud_t left;

	if (pgd_none(*pgd))
		return (address & PGDIR_MASK) + PGDIR_SIZE;
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d))
		return (address & P4D_MASK) + P4D_SIZE;
	count = take_puds(vma->vm_mm, pud_offset(p4d, address),
			  morsel_pud(morsel, index),
			  slots_until(vma, address, end, MORSEL_PUD), &left,
			  taken);
	if (count)
		return (address & PUD_MASK) + count * PUD_SIZE;
	count = slots_until(vma, address, end, MORSEL_PMD);
	take_pmds(vma->vm_mm, pmd_offset(&left, address),
		  morsel_pmd(morsel, index), count, taken);
	return (address & PMD_MASK) + count * PMD_SIZE;
}

void __morsel_unmap(struct mmu_gather *tlb, struct vm_area_struct *vma,
		    unsigned long begin, unsigned long end)
{
	struct morsel *morsel = morsel_in(vma);
	unsigned long address = begin;
	bool taken = false;

	if (is(vma, BY_PAGE))
		return;
	atomic_inc(&morsel->taking);
	/* Whoever finds an entry gone waits for the flush as well. */
	smp_mb__after_atomic();
	if (planted(PLANT_LAST_SLOT_STAYS))
		end = ALIGN_DOWN(end - 1, PMD_SIZE);
	while (address < end)
		address = take(vma, address, end, &taken);
	if (taken && planted(PLANT_UPPER_ENTRIES_STAY)) {
		flush_tlb_mm_range(vma->vm_mm, begin, end, PUD_SHIFT, false);
	} else if (taken) {
		/*
		 * CPUs remember the upper entries on the way to the morsel's
		 * tables: one INVLPG for each GiB, or none where the mm is not
		 * loaded, leaves those. At once: nothing of the morsel is in the
		 * gather, which would keep it until then.
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

/* From here on pages are mapped one by one. Mappings are locked for writing. */
static void convert(struct vm_area_struct *vma)
{
	if (!vma_is_morsel(vma) || is(vma, BY_PAGE) ||
	    planted(PLANT_SPLIT_STAYS_WHOLE))
		return;
	/* Or a fault under the VMA's own lock hangs it in again meanwhile. */
	vma_start_write(vma);
	zap_vma_pages(vma);
	set(vma, BY_PAGE);
	morsel_count(MORSEL_CONVERTED);
}

unsigned long __morsel_move(struct vm_area_struct *vma, unsigned long begin,
			    unsigned long length)
{
	zap_page_range_single(vma, begin, length, NULL);
	return length;
}

/* Mappings */

void __morsel_show_smap(struct seq_file *m, struct vm_area_struct *vma)
{
	unsigned long pages = 0;

	if (!is(vma, BY_PAGE))
		pages = morsel_resident(morsel_in(vma), vma->vm_pgoff,
					vma->vm_pgoff + vma_pages(vma));
	seq_printf(m, "Morsel:         %8lu kB\n", pages << (PAGE_SHIFT - 10));
}

static void morsel_vm_open(struct vm_area_struct *vma)
{
	struct morsel *morsel = morsel_in(vma);

	clear(vma, HUNG_IN);
	if (is(vma, CLAIMED) && !claim(morsel, vma->vm_mm))
		clear(vma, CLAIMED);
}

static void morsel_vm_close(struct vm_area_struct *vma)
{
	if (is(vma, CLAIMED))
		disclaim(morsel_in(vma));
}

static int morsel_may_split(struct vm_area_struct *vma, unsigned long address)
{
	convert(vma);
	return 0;
}

static int morsel_mprotect(struct vm_area_struct *vma, unsigned long begin,
			   unsigned long end, unsigned long flags)
{
	convert(vma);
	if (!would_write(flags) || is(vma, CLAIMED))
		return 0;
	return claim_mapping(morsel_in(vma), vma);
}

static vm_fault_t morsel_page_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct morsel *morsel = morsel_in(vma);
	struct page *page;

	if (!may_fault(vma) ||
	    morsel_fill(morsel, vmf->pgoff, 0, vma, vmf->address))
		return VM_FAULT_SIGBUS;
	page = morsel_find(morsel, vmf->pgoff);
	if (!page)
		return VM_FAULT_NOPAGE;
	lock_page(page);
	if (page_folio(page)->mapping != morsel->inode.i_mapping) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_NOPAGE;
	}
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

#ifdef CONFIG_NUMA
/* The mapping's own, but none that asks for NUMA balancing: leaves are shared. */
static struct mempolicy *morsel_get_policy(struct vm_area_struct *vma,
					   unsigned long address, pgoff_t *ilx)
{
	struct mempolicy *policy = vma->vm_policy;

	return policy && !(policy->flags & MPOL_F_MOF) ? policy : NULL;
}
#endif

static const struct vm_operations_struct morsel_vm_ops = {
	.open = morsel_vm_open,
	.close = morsel_vm_close,
	.may_split = morsel_may_split,
	.mprotect = morsel_mprotect,
	.fault = morsel_page_fault,
#ifdef CONFIG_NUMA
	.get_policy = morsel_get_policy,
#endif
};

/* Whether anything of it can be hung in. */
static bool has_slots(const struct vm_area_struct *vma)
{
	struct morsel_span span = span_of(vma);
	unsigned long first = ALIGN(span.begin, PMD_SIZE);

	return first < span.end &&
	       morsel_slot_level(&span, first) != MORSEL_PAGE;
}

/* Who gets the morsel's own entries has the rights of its leaves. */
static bool is_served(const struct morsel *morsel,
		      const struct vm_area_struct *vma)
{
	vm_flags_t flags = vma->vm_flags;

	if (!static_branch_likely(&morsel_key) || flags & VM_EXEC ||
	    !has_slots(vma))
		return false;
	if (is_sealed(morsel))
		return !(flags & VM_WRITE);
	return would_write(flags);
}

/**
 * morsel_mmap - map a morsel
 * @file: the morsel
 * @vma: where
 *
 * Return: 0, -EPERM if it is sealed and @vma is to write it, -EBUSY if another
 * address space may write it.
 */
int morsel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct morsel *morsel = morsel_of(file_inode(file));
	bool sealed = is_sealed(morsel);

	if (sealed && vma->vm_flags & VM_SHARED) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		if (!planted(PLANT_MAY_WRITE_SEALED))
			vm_flags_clear(vma, VM_MAYWRITE);
	}
	vma->vm_private_data = morsel;
	if (would_write(vma->vm_flags)) {
		if (claim_mapping(morsel, vma))
			return -EBUSY;
		vm_flags_set(vma, VM_DONTCOPY);
	}
	file_accessed(file);
	vma->vm_ops = &morsel_vm_ops;
	/* Nor is it merged, for each has its own claim, or seen by khugepaged. */
	vm_flags_set(vma, VM_DONTEXPAND);
	if (!is_served(morsel, vma))
		return 0;
	vm_flags_set(vma, VM_MORSEL | VM_DONTDUMP);
	if (sealed && !planted(PLANT_MAY_WRITE_SEALED))
		vm_flags_clear(vma, VM_MAYWRITE);
	/*
	 * Of an open one its first fault does this: nobody who takes from it would
	 * find the mapping yet.
	 */
	if (sealed)
		hang_all(vma);
	trace_morsel_attach(vma->vm_mm, vma->vm_start, vma->vm_end,
			    vma->vm_pgoff);
	return 0;
}

/**
 * morsel_get_unmapped_area - where a morsel's slots fit
 * @file: the morsel
 * @address: a hint
 * @length: bytes
 * @pgoff: what it begins with
 * @flags: of mmap
 *
 * Return: an address, or an error.
 */
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long address,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags)
{
	u64 offset = (u64)pgoff << PAGE_SHIFT;
	unsigned long size = morsel_alignment(length, offset);
	unsigned long found;

	if (!address && !(flags & MAP_FIXED) && size > PAGE_SIZE &&
	    length + size > length) {
		found = mm_get_unmapped_area(current->mm, file, 0,
					     length + size - PAGE_SIZE, pgoff,
					     flags);
		if (!IS_ERR_VALUE(found))
			return found + ((offset - found) & (size - 1));
	}
	return mm_get_unmapped_area(current->mm, file, address, length, pgoff,
				    flags);
}
