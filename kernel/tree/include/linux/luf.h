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
 * change, (2) the page is not reused, and (3) no task may see newer content at
 * the same address. Four parties follow an order that guarantees this.
 * tools/testing/tollfree/luf_protocol_test.c checks all of their interleavings:
 * change the model before the order.
 *
 * Lazy unmap (mm/luf/unmap.c), under the page-table lock:
 *
 *	check the entry and i_writecount; writable, dirty, written: unmap eagerly
 *	join the open batch of the stream		(luf_batch_get)
 *		count this unmap, on this CPU
 *		smp_mb()
 *		check that the batch is still open; closed: start over
 *	stamp the file, the page table, the mm		with its generation
 *	smp_mb()
 *	check i_writecount again; a writer by now: unmap eagerly
 *	clear the entry
 *	increment the mm's tlb_gen
 *	read mm_cpumask() into the batch
 *	mark the mm: something was unmapped
 *	leave the batch					(luf_batch_put)
 *
 * File writer, see luf_gate_writer():
 *
 *	increment i_writecount				(a locked instruction)
 *	check the file's stamp; not drained: drain it before returning
 *
 * Either the second check of the unmap finds the writer, or the writer finds the
 * stamp. Every writer checks, not only the first one, which may still be
 * draining. Stamps only grow. A remote machine that is about to write is a writer
 * as well: a flag of the mapping, which is never cleared, replaces its count
 * (luf_gate_remote_writer()).
 *
 * Setting an entry writable, or a forced write through it (luf_gate_pte()), under
 * the page-table lock:
 *
 *	check the table's stamp; not drained: flush what the table maps, and
 *	clear the stamp
 *	set the entry
 *
 * Code that changes mappings calls flush_tlb_batched_pending() under the
 * page-table lock, as without LUF. luf_gate_mm() there flushes the mm if an entry
 * was unmapped lazily since the last such flush and is not drained.
 *
 * Flush (mm/luf/batch.c), without a page-table lock:
 *
 *	close the batch, so that no unmap joins it any more
 *	smp_mb()
 *	wait until no CPU counts an unmap in it
 *	give it the next sequence number
 *	interrupt those of its CPUs that have not flushed since
 *	mark it flushed; only now may its pages be freed
 *
 * A CPU that switches to another address space, or has handled a flush up to the
 * newest tlb_gen, has *flushed since* the sequence number that it read before it
 * read that tlb_gen. Only the CPU itself records this. Entries that were unmapped
 * before were flushed by the comparison, and a later unmap finds the CPU in
 * mm_cpumask().
 *
 * The increment of tlb_gen stays where the entry is cleared and never moves to
 * the flush: it protects CPUs that are idle, run a kernel thread or another
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

/* A flush may be pending. Stays enabled until all lazy unmaps are flushed. */
DECLARE_STATIC_KEY_FALSE(luf_gate_key);

DECLARE_PER_CPU(u64, luf_flushed_since);

u64 __luf_sequence(void);
void __luf_gate_writer(struct address_space *mapping);
void __luf_gate_remote_writer(struct address_space *mapping);
void __luf_gate_mm(struct mm_struct *mm);
void __luf_gate_pte(struct mm_struct *mm, unsigned long address,
		    const void *slot);

/**
 * luf_gate_writer - flush stale translations of a file before it is written
 * @mapping: mapping of the file; its i_writecount has been incremented
 *
 * On return no task reads old pages of the file through a stale translation.
 *
 * Context: may sleep.
 * Return: 0, for use in the return statement of get_write_access().
 */
static inline int luf_gate_writer(struct address_space *mapping)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_writer(mapping);
	return 0;
}

/**
 * luf_gate_remote_writer - allow a remote machine to write a file
 * @mapping: mapping of the file
 * @writes: false if the machine may only read; then this does nothing
 *
 * For file systems that lease blocks to remote clients. i_writecount does not
 * count them, and their end is not reported: no page of the file is unmapped
 * lazily any more until the inode is evicted. On return no task reads old pages
 * of the file through a stale translation.
 *
 * Context: may sleep; no page-table lock is held.
 */
static inline void luf_gate_remote_writer(struct address_space *mapping,
					  bool writes)
{
	if (writes)
		__luf_gate_remote_writer(mapping);
}

/**
 * luf_gate_mm - flush pending lazy unmaps of an mm before its mappings change
 * @mm: the mm
 *
 * Context: a page-table lock of @mm is held; does not sleep.
 */
static inline void luf_gate_mm(struct mm_struct *mm)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_mm(mm);
}

/**
 * luf_gate_pte - flush pending lazy unmaps before an entry becomes writable
 * @mm: the mm
 * @address: address that the entry maps
 * @slot: the entry
 *
 * Context: the page-table lock of @slot is held; does not sleep.
 */
static inline void luf_gate_pte(struct mm_struct *mm, unsigned long address,
				const void *slot)
{
	if (static_branch_unlikely(&luf_gate_key))
		__luf_gate_pte(mm, address, slot);
}

/**
 * luf_sequence - sequence number of the batch that was completed last
 *
 * Read it before the tlb_gen to compare with.
 *
 * Context: any.
 * Return: the number, 0 if LUF is off.
 */
static inline u64 luf_sequence(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		return __luf_sequence();
	return 0;
}

/**
 * luf_flushed - record that this CPU holds no translation of completed batches
 * @sequence: return value of luf_sequence(), 0 if it was not called
 *
 * Context: interrupts are disabled.
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
 * luf_debug_use - check that pages about to be used are flushed
 * @page: the first page
 * @nr: number of pages
 * @how: kind of use, for the report
 *
 * Warns once if a page waits for its flush.
 *
 * Context: any.
 */
void luf_debug_use(const struct page *page, unsigned int nr, const char *how);

/**
 * luf_debug_alloc - check that pages about to be allocated are flushed
 * @page: the first page
 * @order: order of the block
 *
 * Warns once if a page waits for its flush. The caller computes no argument: even in a
 * call to an empty function that changes what the compiler inlines.
 *
 * Context: any.
 */
void luf_debug_alloc(const struct page *page, unsigned int order);

/**
 * luf_debug_free - check that pages about to be freed are flushed
 * @page: the first page
 * @order: order of the block
 *
 * Warns once if a page still waits for its flush.
 *
 * Context: any, including interrupts.
 */
void luf_debug_free(struct page *page, unsigned int order);

#else

static inline void luf_debug_use(const struct page *page, unsigned int nr,
				 const char *how)
{
}

static inline void luf_debug_alloc(const struct page *page, unsigned int order)
{
}

static inline void luf_debug_free(struct page *page, unsigned int order)
{
}

#endif

#endif /* _LINUX_LUF_H */
