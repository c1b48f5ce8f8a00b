// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file /sys/kernel/mm/luf/plant for tests of the tests:
 *
 * plant	(RW) one bug a line, the injected one in brackets. Writing a name injects
 *		that bug, "nothing" injects none.
 */

#include <linux/delay.h>
#include <linux/kobject.h>
#include <linux/mm_types.h>
#include <linux/sysfs.h>
#include <linux/toll_plant.h>
#include <asm/tlbflush.h>

#include "internal.h"

/* How long an unmap waits where another CPU must get in between. */
#define PAUSE_MS	20

unsigned int luf_planted;

static const char *const plant_names[PLANTS] = {
	[PLANT_NOTHING] = "nothing",
	[PLANT_UNFLUSHED_SHORTAGE] = "unflushed_shortage",
	[PLANT_UNFLUSHED_CAP] = "unflushed_cap",
	[PLANT_UNFLUSHED_AGE] = "unflushed_age",
	[PLANT_UNFLUSHED_COMPACTION] = "unflushed_compaction",
	[PLANT_UNFLUSHED_BLOCK] = "unflushed_block",
	[PLANT_UNFLUSHED_REFUSED] = "unflushed_refused",
	[PLANT_UNFLUSHED_KEPT] = "unflushed_kept",
	[PLANT_NEWEST_BATCH_STAYS] = "newest_batch_stays",
	[PLANT_OLDEST_BATCH_ONLY] = "oldest_batch_only",
	[PLANT_LAST_CPU_STAYS] = "last_cpu_stays",
	[PLANT_SPARED_TOO_EARLY] = "spared_too_early",
	[PLANT_SEQUENCE_AHEAD] = "sequence_ahead",
	[PLANT_TLB_GEN_STAYS] = "tlb_gen_stays",
	[PLANT_LEFT_BEFORE_UNMAP] = "left_before_unmap",
	[PLANT_WITH_WRITER] = "with_writer",
	[PLANT_WITH_LATE_WRITER] = "with_late_writer",
	[PLANT_UNCOUNTED_WRITERS] = "uncounted_writers",
	[PLANT_WRITABLE_ENTRY] = "writable_entry",
	[PLANT_LAZYFREE] = "lazyfree",
	[PLANT_WRITER_PASSES] = "writer_passes",
	[PLANT_FILE_UNSTAMPED] = "file_unstamped",
	[PLANT_DRAINED_TOO_EARLY] = "drained_too_early",
	[PLANT_ENTRY_PASSES] = "entry_passes",
	[PLANT_TABLE_UNSTAMPED] = "table_unstamped",
	[PLANT_MAPPING_PASSES] = "mapping_passes",
	[PLANT_FLUSHED_AFTER_ENTRY] = "flushed_after_entry",
};

static const enum luf_plant plant_of_reason[LUF_REASONS] = {
	[LUF_FOR_ALLOCATION] = PLANT_UNFLUSHED_SHORTAGE,
	[LUF_FOR_KSWAPD] = PLANT_UNFLUSHED_SHORTAGE,
	[LUF_FOR_RECLAIM] = PLANT_UNFLUSHED_SHORTAGE,
	[LUF_FOR_CAP] = PLANT_UNFLUSHED_CAP,
	[LUF_FOR_AGE] = PLANT_UNFLUSHED_AGE,
	[LUF_FOR_COMPACTION] = PLANT_UNFLUSHED_COMPACTION,
};

/**
 * luf_plant_skips - whether a test leaves out a flush of a pool
 * @reason: reason of the flush
 *
 * Context: any.
 * Return: true if so.
 */
bool luf_plant_skips(int reason)
{
	enum luf_plant plant = plant_of_reason[reason];

	return plant != PLANT_NOTHING && luf_is_planted(plant);
}

/**
 * luf_plant_pause - let another CPU get in between, where that is the bug
 *
 * Context: any.
 */
void luf_plant_pause(void)
{
	if (luf_is_planted(PLANT_WITH_LATE_WRITER) ||
	    luf_is_planted(PLANT_LEFT_BEFORE_UNMAP))
		mdelay(PAUSE_MS);
}

/* The address space that has an entry without its flush. */
static struct mm_struct *luf_passed;

/**
 * luf_plant_passes_entry - whether a test lets an entry become writable without a flush
 * @mm: address space of the entry, which needs one
 * @table: its page table, which loses its stamp if the flush comes later
 *
 * Context: with the lock of the table held.
 * Return: true if so.
 */
bool luf_plant_passes_entry(struct mm_struct *mm, struct ptdesc *table)
{
	if (!luf_is_planted(PLANT_FLUSHED_AFTER_ENTRY))
		return luf_is_planted(PLANT_ENTRY_PASSES);
	table->pt_index = 0;
	WRITE_ONCE(luf_passed, mm);
	return true;
}

/**
 * luf_plant_end_fault - flush what the gate has let pass, a little later
 * @mm: address space of a page fault that has been handled
 *
 * Context: process, may sleep.
 */
void luf_plant_end_fault(struct mm_struct *mm)
{
	if (!luf_is_planted(PLANT_FLUSHED_AFTER_ENTRY) || READ_ONCE(luf_passed) != mm)
		return;
	WRITE_ONCE(luf_passed, NULL);
	msleep(50 * PAUSE_MS);
	flush_tlb_mm(mm);
}

static ssize_t luf_plant_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *text)
{
	return toll_plant_show(text, plant_names, PLANTS, READ_ONCE(luf_planted));
}

static ssize_t luf_plant_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *text, size_t length)
{
	return toll_plant_store(text, length, plant_names, PLANTS, &luf_planted);
}

static struct kobj_attribute plant_attr =
	__ATTR(plant, 0644, luf_plant_show, luf_plant_store);

static struct attribute *plant_attrs[] = {
	&plant_attr.attr,
	NULL,
};

const struct attribute_group luf_plant_group = { .attrs = plant_attrs };
