/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bugs that tests inject into lazy unmap flush, to check that they detect them. The
 * debug-only seams (95x) call these.
 */
#ifndef _MM_LUF_PLANT_H
#define _MM_LUF_PLANT_H

#include <linux/compiler.h>
#include <linux/sysfs.h>
#include <linux/types.h>

struct mm_struct;
struct ptdesc;

/* In the order of the names in sysfs. */
enum luf_plant {
	PLANT_NOTHING,
	/* Pages leave a pool, or a run, without a flush. */
	PLANT_UNFLUSHED_SHORTAGE,
	PLANT_UNFLUSHED_CAP,
	PLANT_UNFLUSHED_AGE,
	PLANT_UNFLUSHED_COMPACTION,
	PLANT_UNFLUSHED_BLOCK,
	PLANT_UNFLUSHED_REFUSED,
	PLANT_UNFLUSHED_KEPT,
	/* A batch, or a CPU of it, is not flushed. */
	PLANT_NEWEST_BATCH_STAYS,
	PLANT_OLDEST_BATCH_ONLY,
	PLANT_LAST_CPU_STAYS,
	PLANT_SPARED_TOO_EARLY,
	PLANT_SEQUENCE_AHEAD,
	PLANT_TLB_GEN_STAYS,
	PLANT_LEFT_BEFORE_UNMAP,
	/* Pages are unmapped lazily that must not be. */
	PLANT_WITH_WRITER,
	PLANT_WITH_LATE_WRITER,
	PLANT_UNCOUNTED_WRITERS,
	PLANT_WRITABLE_ENTRY,
	PLANT_LAZYFREE,
	/* A gate does not wait. */
	PLANT_WRITER_PASSES,
	PLANT_FILE_UNSTAMPED,
	PLANT_DRAINED_TOO_EARLY,
	PLANT_ENTRY_PASSES,
	PLANT_TABLE_UNSTAMPED,
	PLANT_MAPPING_PASSES,
	/* An entry becomes writable before the flush. */
	PLANT_FLUSHED_AFTER_ENTRY,
	PLANTS,
};

extern unsigned int luf_planted;
extern const struct attribute_group luf_plant_group;

/**
 * luf_is_planted - whether a test injects a bug
 * @plant: the bug
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool luf_is_planted(enum luf_plant plant)
{
	return READ_ONCE(luf_planted) == plant;
}

bool luf_plant_passes_entry(struct mm_struct *mm, struct ptdesc *table);
bool luf_plant_skips(int reason);
void luf_plant_pause(void);
void luf_plant_end_fault(struct mm_struct *mm);

#endif /* _MM_LUF_PLANT_H */
