// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gates: what becomes writable waits for the pending flushes of what it replaces. The
 * order of the steps is given in include/linux/luf.h.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <asm/tlbflush.h>

#include "internal.h"

#include <trace/events/luf.h>

DEFINE_STATIC_KEY_FALSE(luf_gate_key);
/* Used by get_write_access(), an inline function that all modules may call. */
EXPORT_SYMBOL(luf_gate_key);

u64 __luf_sequence(void)
{
	/* Read before the tlb_gen to compare with. */
	return smp_load_acquire(&luf_batches.sequence);
}

static bool luf_generation_is_drained(u64 generation)
{
	return luf_is_drained(&luf_batches, generation);
}

void __luf_gate_writer(struct address_space *mapping)
{
	u64 generation = atomic64_read(&mapping->luf_generation);
	u64 begin;
	unsigned int cpus;

	if (luf_generation_is_drained(generation))
		return;
	might_sleep();
	begin = ktime_get_ns();
	cpus = luf_drain(&luf_batches, generation);
	luf_count(LUF_WRITERS_WAITED);
	luf_count_many(LUF_WRITERS_NS, ktime_get_ns() - begin);
	if (cpus)
		luf_count(LUF_FLUSHES_WRITER);
	trace_luf_flush(LUF_FOR_WRITER, 0, generation, 0, cpus);
}
EXPORT_SYMBOL(__luf_gate_writer);

void __luf_gate_remote_writer(struct address_space *mapping)
{
	mapping_set_writers_remote(mapping);
	/* Pairs with the barrier in luf_publish_unmap(), as that of i_writecount. */
	smp_mb__after_atomic();
	luf_gate_writer(mapping);
}
EXPORT_SYMBOL_GPL(__luf_gate_remote_writer);

/* Out of line, so that a gate without pending unmaps needs no stack frame. */

static noinline void luf_flush_mm(struct mm_struct *mm, s64 unmaps)
{
	if (luf_generation_is_drained(atomic64_read(&mm->luf_generation)))
		return;
	flush_tlb_mm(mm);
	luf_count(LUF_FLUSHES_MM);
	trace_luf_flush(LUF_FOR_MM, 0, atomic64_read(&mm->luf_generation), 0,
			cpumask_weight(mm_cpumask(mm)));
	/* Fails after a concurrent unmap: then the bit stays set. */
	atomic64_cmpxchg(&mm->luf_unmaps, unmaps, unmaps & ~1);
}

void __luf_gate_mm(struct mm_struct *mm)
{
	s64 unmaps = atomic64_read(&mm->luf_unmaps);

	if (unmaps & 1)
		luf_flush_mm(mm, unmaps);
}

static noinline void luf_flush_pte_table(struct mm_struct *mm, unsigned long address,
					 struct ptdesc *table)
{
	u64 generation = table->pt_index;

	table->pt_index = 0;
	if (luf_generation_is_drained(generation))
		return;
	address &= PMD_MASK;
	flush_tlb_mm_range(mm, address, address + PMD_SIZE, PAGE_SHIFT, false);
	luf_count(LUF_FLUSHES_PTE);
	trace_luf_flush(LUF_FOR_PTE, 0, generation, 0,
			cpumask_weight(mm_cpumask(mm)));
}

/*
 * Flush all that the table maps, so that its other entries need no flush. The lock
 * of the table is held: it is not stamped concurrently.
 */
void __luf_gate_pte(struct mm_struct *mm, unsigned long address,
		    const void *slot)
{
	struct ptdesc *table = virt_to_ptdesc(slot);

	if (table->pt_index)
		luf_flush_pte_table(mm, address, table);
}
