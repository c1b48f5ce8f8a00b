/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bugs that tests inject into morselfs, to check that they detect them, and places where
 * tests stop tasks. The debug-only seams (95x) call these.
 */
#ifndef _FS_MORSEL_PLANT_H
#define _FS_MORSEL_PLANT_H

#include <linux/compiler.h>
#include <linux/sysfs.h>
#include <linux/types.h>

/*
 * In the order of the names in sysfs. TLB bugs show only on a TLB that keeps its
 * entries; that of an emulator drops them too early. PMEM bugs are in persistent memory, CUT
 * bugs show only after a power cut, and LOST bugs only if that loses what was not flushed.
 */
enum morsel_plant {
	PLANT_NOTHING,
	PLANT_SLOT_PAST_END,
	PLANT_LAST_SLOT_STAYS,
	PLANT_ONE_FLUSH_A_GIB,
	PLANT_NO_FLUSH,
	PLANT_SEAL_UNDER_PIN,
	PLANT_SEAL_LEAVES_WRITABLE,
	PLANT_HOLE_UNDER_MAPPINGS,
	PLANT_HOLE_UNDER_OTHERS,
	PLANT_SEAL_UNDER_WRITER,
	PLANT_MAY_WRITE_SEALED,
	PLANT_SPLIT_STAYS_WHOLE,
	PLANT_LAST_FILL_WINS,
	PLANT_OLD_CONTENT,
	PLANT_TLB_LAZY_CPUS_KEEP,
	PLANT_PMEM_HELD_IS_FREE,
	PLANT_PMEM_ZEROS_STAY,
	PLANT_PMEM_SEAL_UNDER_PIN,
	PLANT_CUT_REPLACED_FIRST,
	PLANT_LOST_SYNC,
	PLANT_LOST_ZEROS,
	PLANT_LOST_WORD,
	PLANT_LOST_FENCE,
	PLANTS,
};

/* In the order of the names in sysfs. */
enum morsel_stop {
	STOP_NOWHERE,
	/* A seal that has found no pin and has not closed the morsel yet. */
	STOP_BEFORE_CLOSE,
	/* A fault that has its page and has not attached it yet. */
	STOP_BEFORE_ATTACH,
	/* A removal, after a leaf, while the morsel is closed. */
	STOP_IN_REMOVE,
	MORSEL_STOPS,
};

extern unsigned int morsel_planted;
extern const struct attribute_group morsel_plant_group;

/**
 * morsel_is_planted - whether a test injects a bug
 * @plant: the bug
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool morsel_is_planted(enum morsel_plant plant)
{
	return READ_ONCE(morsel_planted) == plant;
}

unsigned long morsel_wait_for_other(const unsigned long *entry);
void morsel_stop_at(enum morsel_stop stop);

#endif /* _FS_MORSEL_PLANT_H */
