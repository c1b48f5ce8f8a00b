// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files in /sys/kernel/mm/morsel for tests of the tests:
 *
 * plant	(RW) one bug a line, the injected one in brackets. Writing a name injects
 *		that bug, "nothing" injects none.
 * stop_at	(RW) one place a line, the selected one in brackets. Tasks that reach it
 *		wait there, for at most 10 s, until another name is written.
 * stopped	(RO) number of tasks that wait.
 */

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kobject.h>
#include <linux/sched/signal.h>
#include <linux/sysfs.h>
#include <linux/toll_plant.h>

#include "plant.h"

#define PLANT_ATTR_RO(_name)	__ATTR(_name, 0444, morsel_##_name##_show, NULL)
#define PLANT_ATTR_RW(_name)	\
	__ATTR(_name, 0644, morsel_##_name##_show, morsel_##_name##_store)

unsigned int morsel_planted;

static const char *const plant_names[PLANTS] = {
	[PLANT_NOTHING] = "nothing",
	[PLANT_SLOT_PAST_END] = "slot_past_end",
	[PLANT_LAST_SLOT_STAYS] = "last_slot_stays",
	[PLANT_ONE_FLUSH_A_GIB] = "one_flush_a_gib",
	[PLANT_NO_FLUSH] = "no_flush",
	[PLANT_SEAL_UNDER_PIN] = "seal_under_pin",
	[PLANT_SEAL_LEAVES_WRITABLE] = "seal_leaves_writable",
	[PLANT_HOLE_UNDER_MAPPINGS] = "hole_under_mappings",
	[PLANT_HOLE_UNDER_OTHERS] = "hole_under_others",
	[PLANT_SEAL_UNDER_WRITER] = "seal_under_writer",
	[PLANT_MAY_WRITE_SEALED] = "may_write_sealed",
	[PLANT_SPLIT_STAYS_WHOLE] = "split_stays_whole",
	[PLANT_LAST_FILL_WINS] = "last_fill_wins",
	[PLANT_OLD_CONTENT] = "old_content",
	[PLANT_TLB_LAZY_CPUS_KEEP] = "tlb_lazy_cpus_keep",
	[PLANT_PMEM_HELD_IS_FREE] = "pmem_held_is_free",
	[PLANT_PMEM_ZEROS_STAY] = "pmem_zeros_stay",
	[PLANT_PMEM_SEAL_UNDER_PIN] = "pmem_seal_under_pin",
	[PLANT_CUT_REPLACED_FIRST] = "cut_replaced_first",
	[PLANT_LOST_SYNC] = "lost_sync",
	[PLANT_LOST_ZEROS] = "lost_zeros",
	[PLANT_LOST_WORD] = "lost_word",
	[PLANT_LOST_FENCE] = "lost_fence",
};

/**
 * morsel_wait_for_other - let the CPUs of two tasks race for an empty entry
 * @entry: entry of a table of a morsel
 *
 * Waits until another thread of the process has filled it, for at most 200 ms.
 *
 * Context: any.
 * Return: the entry.
 */
unsigned long morsel_wait_for_other(const unsigned long *entry)
{
	int ms;

	for (ms = 0; ms < 200 && !READ_ONCE(*entry); ms++) {
		if (thread_group_empty(current))
			break;
		mdelay(1);
	}
	return READ_ONCE(*entry);
}

static ssize_t morsel_plant_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *text)
{
	return toll_plant_show(text, plant_names, PLANTS, READ_ONCE(morsel_planted));
}

static ssize_t morsel_plant_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *text, size_t length)
{
	return toll_plant_store(text, length, plant_names, PLANTS, &morsel_planted);
}

static struct kobj_attribute plant_attr = PLANT_ATTR_RW(plant);

static unsigned int morsel_stop;
static atomic_t morsel_stopped;

static const char *const stop_names[MORSEL_STOPS] = {
	[STOP_NOWHERE] = "nowhere",
	[STOP_BEFORE_CLOSE] = "before_close",
	[STOP_BEFORE_ATTACH] = "before_attach",
	[STOP_IN_REMOVE] = "in_remove",
};

/**
 * morsel_stop_at - wait at a place as long as a test requests it
 * @stop: the place
 *
 * Context: may sleep, for at most 10 s.
 */
void morsel_stop_at(enum morsel_stop stop)
{
	int ms;

	if (READ_ONCE(morsel_stop) != stop)
		return;
	atomic_inc(&morsel_stopped);
	for (ms = 0; ms < 10000 && READ_ONCE(morsel_stop) == stop; ms++)
		usleep_range(1000, 2000);
	atomic_dec(&morsel_stopped);
}

static ssize_t morsel_stop_at_show(struct kobject *kobj, struct kobj_attribute *attr,
				   char *text)
{
	return toll_plant_show(text, stop_names, MORSEL_STOPS, READ_ONCE(morsel_stop));
}

static ssize_t morsel_stop_at_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *text, size_t length)
{
	return toll_plant_store(text, length, stop_names, MORSEL_STOPS, &morsel_stop);
}

static struct kobj_attribute stop_at_attr = PLANT_ATTR_RW(stop_at);

static ssize_t morsel_stopped_show(struct kobject *kobj, struct kobj_attribute *attr,
				   char *text)
{
	return sysfs_emit(text, "%d\n", atomic_read(&morsel_stopped));
}

static struct kobj_attribute stopped_attr = PLANT_ATTR_RO(stopped);

static struct attribute *plant_attrs[] = {
	&plant_attr.attr,
	&stop_at_attr.attr,
	&stopped_attr.attr,
	NULL,
};

const struct attribute_group morsel_plant_group = { .attrs = plant_attrs };
