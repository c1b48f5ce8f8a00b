// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/mm/tollfree: the common directory of tollfree's mechanisms.
 */

#define pr_fmt(fmt) "tollfree: " fmt

#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/sysfs.h>
#include <linux/tollfree.h>

struct kobject *tollfree_kobj;

static ssize_t tollfree_version_show(struct kobject *kobj, struct kobj_attribute *attr,
				     char *buf)
{
	return sysfs_emit(buf, "%s\n", TOLLFREE_VERSION);
}

static struct kobj_attribute version_attr =
	__ATTR(version, 0444, tollfree_version_show, NULL);

static struct attribute *tollfree_attrs[] = {
	&version_attr.attr,
	NULL,
};

static const struct attribute_group tollfree_attr_group = {
	.attrs = tollfree_attrs,
};

static int __init tollfree_sysfs_init(void)
{
	int err;

	tollfree_kobj = kobject_create_and_add("tollfree", mm_kobj);
	if (!tollfree_kobj)
		return -ENOMEM;

	err = sysfs_create_group(tollfree_kobj, &tollfree_attr_group);
	if (err) {
		pr_err("no files in /sys/kernel/mm/tollfree: %d\n", err);
		kobject_put(tollfree_kobj);
		tollfree_kobj = NULL;
	}
	return err;
}
subsys_initcall(tollfree_sysfs_init);
