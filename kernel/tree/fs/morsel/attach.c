// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attach the tables of a morsel to those of a process, and detach them. The contract is
 * in linux/morsel.h.
 */

#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/pagewalk.h>
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
	BY_PAGE = MORSEL_BY_PAGE,
	/* The mapping may write the open morsel. */
	CLAIMED = BIT(1),
	/* All existing slots were attached once. */
	ATTACHED = BIT(2),
};

static struct morsel *morsel_in(const struct vm_area_struct *vma)
{
	return (void *)((unsigned long)vma->vm_private_data &
			~(unsigned long)(BY_PAGE | CLAIMED | ATTACHED));
}

static bool morsel_vma_test(const struct vm_area_struct *vma, unsigned long bit)
{
	return (unsigned long)vma->vm_private_data & bit;
}

static void morsel_vma_set(struct vm_area_struct *vma, unsigned long bit)
{
	vma->vm_private_data =
		(void *)((unsigned long)vma->vm_private_data | bit);
}

static void morsel_vma_clear(struct vm_area_struct *vma, unsigned long bit)
{
	vma->vm_private_data =
		(void *)((unsigned long)vma->vm_private_data & ~bit);
}

static struct morsel_span morsel_vma_span(const struct vm_area_struct *vma)
{
	unsigned long end = vma->vm_end;

	if (morsel_is_planted(PLANT_SLOT_PAST_END))
		end = ALIGN(end, PMD_SIZE);
	return (struct morsel_span){
		.begin = vma->vm_start,
		.end = end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
	};
}

static bool morsel_is_sealed(const struct morsel *morsel)
{
	return READ_ONCE(morsel->seals) & F_SEAL_WRITE;
}

/* Writers of an open morsel: one address space at a time */

static bool morsel_claim_writer(struct morsel *morsel, struct mm_struct *mm)
{
	guard(spinlock)(&morsel->lock);
	if (morsel->writes && morsel->writer != mm &&
	    !morsel_is_planted(PLANT_TWO_WRITERS))
		return false;
	morsel->writer = mm;
	morsel->writes++;
	return true;
}

static void morsel_release_writer(struct morsel *morsel)
{
	guard(spinlock)(&morsel->lock);
	if (!morsel_is_planted(PLANT_CLAIM_STAYS) && !--morsel->writes)
		morsel->writer = NULL;
}

static bool morsel_would_write(vm_flags_t flags)
{
	return (flags & (VM_SHARED | VM_WRITE)) == (VM_SHARED | VM_WRITE);
}

static int morsel_claim_mapping(struct morsel *morsel, struct vm_area_struct *vma)
{
	if (!morsel_claim_writer(morsel, vma->vm_mm))
		return -EBUSY;
	morsel_vma_set(vma, CLAIMED);
	return 0;
}

/* The child of a writer that cleared VM_DONTCOPY may not. */
static bool morsel_may_fault(const struct vm_area_struct *vma)
{
	return morsel_vma_test(vma, CLAIMED) || !morsel_would_write(vma->vm_flags);
}

/* Attach */

/* Whether a slot of the process holds the morsel's own entry. */
static bool morsel_is_same_pud(pud_t slot, const pud_t *own)
{
	return own && !pud_none(slot) &&
	       pud_pfn(slot) == pud_pfn(READ_ONCE(*own)) &&
	       pud_leaf(slot) == pud_leaf(READ_ONCE(*own));
}

static bool morsel_is_same_pmd(pmd_t slot, const pmd_t *own)
{
	return own && !pmd_none(slot) &&
	       pmd_pfn(slot) == pmd_pfn(READ_ONCE(*own)) &&
	       pmd_leaf(slot) == pmd_leaf(READ_ONCE(*own));
}

static pgoff_t morsel_index_at(const struct vm_area_struct *vma, unsigned long address)
{
	return vma->vm_pgoff + ((address - vma->vm_start) >> PAGE_SHIFT);
}

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

/*
 * Attach all slots at once, so that existing pages cause no further faults. Slots for
 * which there is no memory are attached by their own faults.
 */
static void morsel_attach_all(struct vm_area_struct *vma)
{
	struct morsel_span span = morsel_vma_span(vma);
	unsigned long nr, address = ALIGN(vma->vm_start, PMD_SIZE);

	if (morsel_vma_test(vma, ATTACHED) ||
	    test_and_set_bit(ilog2(ATTACHED),
			     (unsigned long *)&vma->vm_private_data))
		return;
	for (; address < vma->vm_end; address += nr * PMD_SIZE) {
		switch (morsel_slot_level(&span, address)) {
		case MORSEL_PUD:
			nr = morsel_adjacent_slots(&span, address, MORSEL_PUD);
			morsel_attach_puds(vma, address, nr);
			nr *= PTRS_PER_PMD;
			break;
		case MORSEL_PMD:
			nr = morsel_adjacent_slots(&span, address, MORSEL_PMD);
			morsel_attach_pmds(vma, address, nr);
			break;
		default:
			return;
		}
	}
}

vm_fault_t __morsel_fault(struct vm_area_struct *vma, unsigned long address,
			  unsigned int flags)
{
	struct morsel_span span = morsel_vma_span(vma);
	struct morsel *morsel = morsel_in(vma);
	enum morsel_level level = morsel_slot_level(&span, address);
	int err;

	if (morsel_vma_test(vma, BY_PAGE))
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
	if (!morsel_may_fault(vma))
		return VM_FAULT_SIGBUS;
	morsel_count(MORSEL_FAULTS);
	/* Beyond the end of the file, or no space or memory is left. */
	if (morsel_fill(morsel, morsel_index_at(vma, address), 0, vma,
			address & PAGE_MASK, NULL))
		return VM_FAULT_SIGBUS;
	morsel_stop_at(STOP_BEFORE_ATTACH);
	err = morsel_attach_slot(vma, address, level);
	if (err)
		return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_FALLBACK;
	morsel_attach_all(vma);
	return 0;
}

/* Detach */

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

	if (morsel_vma_test(vma, BY_PAGE))
		return;
	atomic_inc(&morsel->taking);
	/* Tasks that find an entry cleared wait for the flush as well. */
	smp_mb__after_atomic();
	if (morsel_is_planted(PLANT_LAST_SLOT_STAYS))
		end = ALIGN_DOWN(end - 1, PMD_SIZE);
	for (address = begin; address < end; address = next) {
		/* Keep tables that are being freed: see morsel_free_tables(). */
		rcu_read_lock();
		detached |= morsel_detach_slots(vma, address, end, &next);
		rcu_read_unlock();
	}
	if (detached && !morsel_is_planted(PLANT_NO_FLUSH)) {
		/*
		 * CPUs cache the upper entries that lead to the morsel's tables:
		 * one INVLPG for each GiB, or none where the mm is not loaded,
		 * does not drop those. Flush at once: the mmu_gather holds no
		 * pages of the morsel until the end.
		 */
		tlb->need_flush_all = !morsel_is_planted(PLANT_ONE_FLUSH_A_GIB);
		tlb->freed_tables = !morsel_is_planted(PLANT_TLB_LAZY_CPUS_KEEP);
		tlb_flush_pud_range(tlb, begin, end - begin);
		tlb_flush_mmu_tlbonly(tlb);
		morsel_count(MORSEL_DETACHED);
		trace_morsel_detach(vma->vm_mm, begin, end);
	}
	if (atomic_dec_and_test(&morsel->taking))
		wake_up_var(&morsel->taking);
}

/* Map single pages from here on. The mmap lock is held for writing. */
static void morsel_convert(struct vm_area_struct *vma)
{
	if (!morsel_is_vma(vma) || morsel_vma_test(vma, BY_PAGE) ||
	    morsel_is_planted(PLANT_SPLIT_STAYS_WHOLE))
		return;
	/* Exclude faults under the VMA lock, which would attach it again. */
	vma_start_write(vma);
	zap_vma_pages(vma);
	/* Walks of the reverse mapping must see cleared entries before this. */
	smp_store_release(&vma->vm_private_data,
			  (void *)((unsigned long)vma->vm_private_data | BY_PAGE));
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

/* Walks */

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

/* Mappings */

void __morsel_show_smap(struct seq_file *m, struct vm_area_struct *vma)
{
	unsigned long pages = 0;

	if (!morsel_vma_test(vma, BY_PAGE))
		pages = morsel_resident(morsel_in(vma), vma->vm_pgoff,
					vma->vm_pgoff + vma_pages(vma));
	seq_printf(m, "Morsel:         %8lu kB\n", pages << (PAGE_SHIFT - 10));
}

static void morsel_vm_open(struct vm_area_struct *vma)
{
	struct morsel *morsel = morsel_in(vma);

	morsel_vma_clear(vma, ATTACHED);
	if (morsel_vma_test(vma, CLAIMED) && !morsel_claim_writer(morsel, vma->vm_mm))
		morsel_vma_clear(vma, CLAIMED);
}

static void morsel_vm_close(struct vm_area_struct *vma)
{
	if (morsel_vma_test(vma, CLAIMED))
		morsel_release_writer(morsel_in(vma));
}

static int morsel_may_split(struct vm_area_struct *vma, unsigned long address)
{
	morsel_convert(vma);
	return 0;
}

static int morsel_mprotect(struct vm_area_struct *vma, unsigned long begin,
			   unsigned long end, unsigned long flags)
{
	morsel_convert(vma);
	if (!morsel_would_write(flags) || morsel_vma_test(vma, CLAIMED))
		return 0;
	return morsel_claim_mapping(morsel_in(vma), vma);
}

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

static vm_fault_t morsel_page_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct morsel *morsel = morsel_in(vma);
	struct page *page;

	if (!morsel_may_fault(vma) ||
	    morsel_fill(morsel, vmf->pgoff, 0, vma, vmf->address, &page))
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

/*
 * Map a page that exists for a read fault, and the pages around it, without the lock of
 * the folio. Write faults and missing pages are left to ->fault(). With this callback
 * faults are handled under the VMA lock, see vmf_can_call_fault().
 */
static vm_fault_t morsel_map_pages(struct vm_fault *vmf, pgoff_t first,
				   pgoff_t last)
{
	struct morsel *morsel = morsel_in(vmf->vma);
	bool is_mapped = false;
	struct page *page;

	if (!morsel_may_fault(vmf->vma) || !morsel_try_enter(morsel))
		return 0;
	page = morsel_peek(morsel, vmf->pgoff);
	if (page && !morsel_is_block(vmf, page))
		is_mapped = morsel_map_present(vmf, first, last + 1, page);
	morsel_leave();
	return is_mapped ? VM_FAULT_NOPAGE : 0;
}

static const struct vm_operations_struct morsel_vm_ops = {
	.open = morsel_vm_open,
	.close = morsel_vm_close,
	.may_split = morsel_may_split,
	.mprotect = morsel_mprotect,
	.fault = morsel_page_fault,
	.map_pages = morsel_map_pages,
};

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
		return !(flags & VM_WRITE);
	return morsel_would_write(flags);
}

/**
 * morsel_mmap - map a morsel
 * @file: file of the morsel
 * @vma: the new mapping
 *
 * Context: may sleep; the mmap lock is held for writing.
 * Return: 0, -EPERM if it is sealed and @vma would write it, -EBUSY if another
 * address space may write it.
 */
int morsel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct morsel *morsel = morsel_of(file_inode(file));
	bool sealed = morsel_is_sealed(morsel);
	/* Not merged, because each has its own claim; not scanned by khugepaged. */
	vm_flags_t flags = VM_DONTEXPAND;

	if (sealed && vma->vm_flags & VM_SHARED) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		if (!morsel_is_planted(PLANT_MAY_WRITE_SEALED))
			vm_flags_clear(vma, VM_MAYWRITE);
	}
	vma->vm_private_data = morsel;
	if (morsel_would_write(vma->vm_flags)) {
		if (morsel_claim_mapping(morsel, vma))
			return -EBUSY;
		flags |= VM_DONTCOPY;
	}
	file_accessed(file);
	vma->vm_ops = &morsel_vm_ops;
	vm_flags_set(vma, flags);
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
