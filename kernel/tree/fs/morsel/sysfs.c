// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/mm/morsel */

#include <linux/delay.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

#define MORSEL_ATTR_RO(_name)	__ATTR(_name, 0444, morsel_##_name##_show, NULL)
#define MORSEL_ATTR_RW(_name)	\
	__ATTR(_name, 0644, morsel_##_name##_show, morsel_##_name##_store)

DEFINE_STATIC_KEY_TRUE(morsel_key);

static bool wanted = true;

static int __init morsel_setup(char *text)
{
	return kstrtobool(text, &wanted);
}
early_param("morsel", morsel_setup);

static ssize_t morsel_enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
				   char *text)
{
	return sysfs_emit(text, "%d\n", static_key_enabled(&morsel_key));
}

static ssize_t morsel_enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *text, size_t length)
{
	bool on;
	int err = kstrtobool(text, &on);

	if (err)
		return err;
	if (on)
		static_branch_enable(&morsel_key);
	else
		static_branch_disable(&morsel_key);
	return length;
}

static struct kobj_attribute enabled_attr = MORSEL_ATTR_RW(enabled);

static ssize_t morsel_pages_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *text)
{
	return sysfs_emit(text, "%lld\n",
			  percpu_counter_sum_positive(&morsel_all_pages));
}

static struct kobj_attribute pages_attr = MORSEL_ATTR_RO(pages);

static ssize_t morsel_tables_show(struct kobject *kobj, struct kobj_attribute *attr,
				  char *text)
{
	return sysfs_emit(text, "%lld\n",
			  percpu_counter_sum_positive(&morsel_all_tables));
}

static struct kobj_attribute tables_attr = MORSEL_ATTR_RO(tables);

#ifdef CONFIG_MORSEL_PLANTS
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
	[PLANT_TWO_WRITERS] = "two_writers",
	[PLANT_CLAIM_STAYS] = "claim_stays",
	[PLANT_MAY_WRITE_SEALED] = "may_write_sealed",
	[PLANT_SPLIT_STAYS_WHOLE] = "split_stays_whole",
	[PLANT_LAST_FILL_WINS] = "last_fill_wins",
	[PLANT_OLD_CONTENT] = "old_content",
	[PLANT_TLB_LAZY_CPUS_KEEP] = "tlb_lazy_cpus_keep",
	[PLANT_TLB_TABLES_GO_AT_ONCE] = "tlb_tables_go_at_once",
};

/* Print one name per line, the selected one in brackets. */
static ssize_t morsel_show_names(char *text, const char *const *names,
				 int count, int chosen)
{
	int i, length = 0;

	for (i = 0; i < count; i++)
		length += sysfs_emit_at(text, length,
					i == chosen ? "[%s]\n" : "%s\n",
					names[i]);
	return length;
}

static ssize_t morsel_plant_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *text)
{
	return morsel_show_names(text, plant_names, PLANTS,
				 READ_ONCE(morsel_planted));
}

static ssize_t morsel_plant_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *text, size_t length)
{
	int plant = sysfs_match_string(plant_names, text);

	if (plant < 0)
		return plant;
	WRITE_ONCE(morsel_planted, plant);
	return length;
}

static struct kobj_attribute plant_attr = MORSEL_ATTR_RW(plant);

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
	return morsel_show_names(text, stop_names, MORSEL_STOPS,
				 READ_ONCE(morsel_stop));
}

static ssize_t morsel_stop_at_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *text, size_t length)
{
	int stop = sysfs_match_string(stop_names, text);

	if (stop < 0)
		return stop;
	WRITE_ONCE(morsel_stop, stop);
	return length;
}

static struct kobj_attribute stop_at_attr = MORSEL_ATTR_RW(stop_at);

static ssize_t morsel_stopped_show(struct kobject *kobj, struct kobj_attribute *attr,
				   char *text)
{
	return sysfs_emit(text, "%d\n", atomic_read(&morsel_stopped));
}

static struct kobj_attribute stopped_attr = MORSEL_ATTR_RO(stopped);
#endif

static struct attribute *attrs[] = {
#ifdef CONFIG_MORSEL_PLANTS
	&plant_attr.attr,
	&stop_at_attr.attr,
	&stopped_attr.attr,
#endif
	&enabled_attr.attr,
	&pages_attr.attr,
	&tables_attr.attr,
	NULL,
};

static const struct attribute_group group = { .attrs = attrs };

static ssize_t morsel_count_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *text);

#define COUNT(_name) \
	{ .attr = { .name = #_name, .mode = 0444 }, .show = morsel_count_show }

static struct kobj_attribute counts[MORSEL_COUNTS] = {
	[MORSEL_ATTACHED_PUD] = COUNT(attached_pud),
	[MORSEL_ATTACHED_PMD] = COUNT(attached_pmd),
	[MORSEL_DETACHED] = COUNT(detached),
	[MORSEL_CONVERTED] = COUNT(converted),
	[MORSEL_FAULTS] = COUNT(faults),
	[MORSEL_FILLED_SMALL] = COUNT(filled_small),
	[MORSEL_FILLED_LARGE] = COUNT(filled_large),
	[MORSEL_FILLED_GIANT] = COUNT(filled_giant),
	[MORSEL_NO_LARGE] = COUNT(no_large),
	[MORSEL_NO_GIANT] = COUNT(no_giant),
	[MORSEL_SEALED] = COUNT(sealed),
	[MORSEL_BROKEN] = COUNT(broken),
	[MORSEL_CLOSED] = COUNT(closed),
};

static ssize_t morsel_count_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *text)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(morsel_counts, cpu)[attr - counts];
	return sysfs_emit(text, "%lu\n", sum);
}

static struct attribute *count_attrs[MORSEL_COUNTS + 1];

static const struct attribute_group count_group = {
	.name = "stats",
	.attrs = count_attrs,
};

static const struct attribute_group *groups[] = { &group, &count_group, NULL };

static int __init morsel_sysfs_init(void)
{
	struct kobject *kobj;
	int i, err;

	if (!wanted)
		static_branch_disable(&morsel_key);
	for (i = 0; i < MORSEL_COUNTS; i++)
		count_attrs[i] = &counts[i].attr;
	kobj = kobject_create_and_add("morsel", mm_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_groups(kobj, groups);
	if (err)
		kobject_put(kobj);
	return err;
}
late_initcall(morsel_sysfs_init);
