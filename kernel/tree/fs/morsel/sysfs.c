// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/mm/morsel */

#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
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

/**
 * morsel_report_meminfo - print the memory of all morsels
 * @m: seq_file of /proc/meminfo
 *
 * Their tables are in the line PageTables.
 *
 * Context: any.
 */
void morsel_report_meminfo(struct seq_file *m)
{
	seq_printf(m, "Morsels:        %8lld kB\n",
		   percpu_counter_sum_positive(&morsel_all_pages) << (PAGE_SHIFT - 10));
}

static struct attribute *attrs[] = {
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
	[MORSEL_BUILT] = COUNT(built),
	[MORSEL_ADDED_SMALL] = COUNT(added_small),
	[MORSEL_ADDED_LARGE] = COUNT(added_large),
	[MORSEL_WRITTEN_BACK] = COUNT(written_back),
	[MORSEL_RECOVERED] = COUNT(recovered),
	[MORSEL_HELD] = COUNT(held),
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

static const struct attribute_group *groups[] = {
	&group,
	&count_group,
	NULL,
};

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
