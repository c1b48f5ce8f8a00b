// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file /sys/kernel/mm/econ/plant for tests of the tests:
 *
 * plant	(RW) one bug a line, the injected one in brackets. Writing a name injects
 *		that bug, "nothing" injects none.
 */

#include <linux/kobject.h>
#include <linux/sysfs.h>
#include <linux/toll_plant.h>

#include "plant.h"

unsigned int econ_planted;

static const char *const plant_names[PLANTS] = {
	[PLANT_NOTHING] = "nothing",
	[PLANT_LAST_PAGE_UNCLEARED] = "last_page_uncleared",
};

static ssize_t econ_plant_show(struct kobject *kobj, struct kobj_attribute *attr,
			       char *text)
{
	return toll_plant_show(text, plant_names, PLANTS, READ_ONCE(econ_planted));
}

static ssize_t econ_plant_store(struct kobject *kobj, struct kobj_attribute *attr,
				const char *text, size_t length)
{
	return toll_plant_store(text, length, plant_names, PLANTS, &econ_planted);
}

static struct kobj_attribute plant_attr =
	__ATTR(plant, 0644, econ_plant_show, econ_plant_store);

static struct attribute *plant_attrs[] = {
	&plant_attr.attr,
	NULL,
};

const struct attribute_group econ_plant_group = { .attrs = plant_attrs };
