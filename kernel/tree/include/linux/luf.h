/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lazy unmap flush (LUF): reclaim and migration leave translations of read-only
 * pages in the TLBs and keep the pages, frozen and untouched, in a pool until
 * one flush covers thousands of them. See Documentation/mm/luf.rst.
 *
 * The ordering contract
 * =====================
 *
 * A stale translation does no harm as long as (1) the page's content does not
 * change, (2) the page is given to nobody else, and (3) nobody may see newer
 * content at the same address. Four parties keep to an order so that this holds.
 * tools/testing/tollfree/luf_protocol_test.c searches through all of their
 * interleavings; who changes one changes the model first.
 *
 * Who unmaps (mm/luf/unmap.c), under the page-table lock:
 *
 *	look at the entry and at i_writecount; writable, dirty, written: eager
 *	take part in the open batch of the stream	(luf_batch_get)
 *		count this unmap, on this CPU
 *		smp_mb()
 *		look whether the batch is still open; closed: begin again
 *	stamp the file, the page table, the mm		with its generation
 *	smp_mb()
 *	look at i_writecount again; a writer by now: eager
 *	clear the entry
 *	raise the mm's tlb_gen
 *	read mm_cpumask() into the batch
 *	mark the mm: something was unmapped
 *	drop the part in the batch			(luf_batch_put)
 *
 * Who will write a file, see luf_gate_writer():
 *
 *	raise i_writecount				(a locked instruction)
 *	look at the file's stamp; not drained: drain it, itself, before it returns
 *
 * Either the unmapper's second look finds the writer or the writer finds the
 * stamp. Every writer looks, not only the first: the first may still be
 * draining. Stamps only grow. Another machine that is about to write is a writer
 * as well: a flag of the mapping, which is never taken back, stands for its count
 * (luf_gate_remote_writer()).
 *
 * Who fills a slot with something writable, makes it writable, or writes
 * through it by force (luf_gate_pte()), under the page-table lock:
 *
 *	look at the table's stamp; not drained: flush what the table maps, and
 *	take the stamp away
 *	set the entry
 *
 * Who changes mappings calls flush_tlb_batched_pending() under the page-table
 * lock as ever; luf_gate_mm() there flushes the mm if something was unmapped
 * lazily since the last such flush, and is not drained.
 *
 * Who flushes (mm/luf/batch.c), with no page-table lock held:
 *
 *	close the batch, so that nobody takes part in it any more
 *	smp_mb()
 *	wait until no CPU counts one that does
 *	give it the next sequence number
 *	interrupt its CPUs that have not flushed since
 *	call it flushed; only now may its pages go
 *
 * A CPU that goes over to another address space, or has answered a flush up to
 * the newest tlb_gen, has *flushed since* the sequence number that it read
 * before it read that tlb_gen. Only the CPU itself says so. What was unmapped
 * before was flushed by the comparison, and what is unmapped later finds the CPU
 * in mm_cpumask().
 *
 * The bump of tlb_gen stays where the entry is cleared and never moves to the
 * flush: it is what makes CPUs safe that idle, run a kernel thread or another
 * address space.
 */
#ifndef _LINUX_LUF_H
#define _LINUX_LUF_H

#include <linux/jump_label.h>
#include <linux/percpu-defs.h>
#include <linux/types.h>

struct address_space;
struct mm_struct;
struct page;
struct page_ext_operations;

#ifdef CONFIG_LUF

/* Something may be pending: stays on until what was unmapped lazily is flushed. */
DECLARE_STATIC_KEY_FALSE(luf_gate_key);

DECLARE_PER_CPU(u64, luf_flushed_since);

u64 __luf_sequence(void);
void __luf_gate_writer(struct address_space *mapping);
void __luf_gate_remote_writer(struct address_space *mapping);
void __luf_gate_mm(struct mm_struct *mm);
void __luf_gate_pte(struct mm_struct *mm, unsigned long address,
		    const void *slot);

/**
 * luf_gate_writer - somebody has become a writer of a file
 * @mapping: the file's; its i_writecount was raised before
 *
 * May sleep. When this returns nobody reads old pages of the file through a
 * stale translation.
 *
 * Return: 0, to stand where get_write_access() returns.
 */
static inline int luf_gate_writer(struct address_space *mapping)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_writer(mapping);
	return 0;
}

/**
 * luf_gate_remote_writer - another machine may write a file from now on
 * @mapping: the file's
 * @writes: false if it may only read; then nothing happens
 *
 * For file systems that give their blocks to remote clients. i_writecount does
 * not count these, and nobody says when the last one is done: until the inode
 * leaves memory, nothing of the file is unmapped lazily any more. May sleep; no
 * page-table lock is held. When this returns nobody reads old pages of the file
 * through a stale translation.
 */
static inline void luf_gate_remote_writer(struct address_space *mapping,
					  bool writes)
{
	if (writes)
		__luf_gate_remote_writer(mapping);
}

/**
 * luf_gate_mm - mappings of an mm are about to change
 * @mm: whose; a page-table lock of it is held
 */
static inline void luf_gate_mm(struct mm_struct *mm)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_mm(mm);
}

/**
 * luf_gate_pte - a slot is about to hold something writable
 * @mm: whose
 * @address: what the slot stands for
 * @slot: the slot; the page-table lock is held
 */
static inline void luf_gate_pte(struct mm_struct *mm, unsigned long address,
				const void *slot)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_pte(mm, address, slot);
}

/**
 * luf_sequence - the completed batch that came last
 *
 * To be read before the tlb_gen that is compared with.
 *
 * Return: its number.
 */
static inline u64 luf_sequence(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		return __luf_sequence();
	return 0;
}

/**
 * luf_flushed - this CPU has nothing of any batch up to a number
 * @sequence: what luf_sequence() gave, 0 if it was not asked
 *
 * Interrupts are off.
 */
static inline void luf_flushed(u64 sequence)
{
	if (static_branch_unlikely(&luf_gate_key) && sequence)
		__this_cpu_write(luf_flushed_since, sequence);
}

#define luf_init_table(ptdesc)	((ptdesc)->pt_index = 0)

#else /* !CONFIG_LUF */

static inline int luf_gate_writer(struct address_space *mapping)
{
	return 0;
}

static inline void luf_gate_remote_writer(struct address_space *mapping,
					  bool writes)
{
}

static inline void luf_gate_mm(struct mm_struct *mm)
{
}

static inline void luf_gate_pte(struct mm_struct *mm, unsigned long address,
				const void *slot)
{
}

static inline u64 luf_sequence(void)
{
	return 0;
}

static inline void luf_flushed(u64 sequence)
{
}

#define luf_init_table(ptdesc)	((void)(ptdesc))

#endif /* !CONFIG_LUF */

#ifdef CONFIG_LUF_DEBUG

extern struct page_ext_operations luf_debug_ops;

/**
 * luf_debug_use - somebody is about to use a page
 * @page: the first of them
 * @nr: how many
 * @how: in words
 *
 * Says so loudly, and once, if a page waits for its flush.
 */
void luf_debug_use(const struct page *page, unsigned int nr, const char *how);

/**
 * luf_debug_free - pages come to the allocator
 * @page: the first of them
 * @order: how many
 *
 * Says so loudly, and once, if a flush of one of them is missing. In any context.
 */
void luf_debug_free(struct page *page, unsigned int order);

#else

static inline void luf_debug_use(const struct page *page, unsigned int nr,
				 const char *how)
{
}

static inline void luf_debug_free(struct page *page, unsigned int order)
{
}

#endif

#endif /* _LINUX_LUF_H */
