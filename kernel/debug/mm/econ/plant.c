// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file /sys/kernel/mm/econ/plant for tests of the tests:
 *
 * plant	(RW) one bug a line, the injected one in brackets. Writing a name injects
 *		that bug, "nothing" injects none.
 */

#include <linux/kobject.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "plant.h"

unsigned int econ_planted;

static const char *const plant_names[PLANTS] = {
	[PLANT_NOTHING] = "nothing",
	[PLANT_LAST_PAGE_UNCLEARED] = "last_page_uncleared",
};

static ssize_t econ_plant_show(struct kobject *kobj, struct kobj_attribute *attr,
			       char *text)
{
	unsigned int planted = READ_ONCE(econ_planted), i;
	int length = 0;

	for (i = 0; i < PLANTS; i++)
		length += sysfs_emit_at(text, length,
					i == planted ? "[%s]\n" : "%s\n",
					plant_names[i]);
	return length;
}

static ssize_t econ_plant_store(struct kobject *kobj, struct kobj_attribute *attr,
				const char *text, size_t length)
{
	int plant = sysfs_match_string(plant_names, text);

	if (plant < 0)
		return plant;
	WRITE_ONCE(econ_planted, plant);
	return length;
}

static struct kobj_attribute plant_attr =
	__ATTR(plant, 0644, econ_plant_show, econ_plant_store);

static struct attribute *plant_attrs[] = {
	&plant_attr.attr,
	NULL,
};

const struct attribute_group econ_plant_group = { .attrs = plant_attrs };
