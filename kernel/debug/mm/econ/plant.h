/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bugs that tests inject into econ, to check that they detect them. The debug-only
 * seams (95x) call these.
 */
#ifndef _MM_ECON_PLANT_H
#define _MM_ECON_PLANT_H

#include <linux/compiler.h>
#include <linux/mm.h>
#include <linux/sysfs.h>
#include <linux/types.h>

/* In the order of the names in sysfs. */
enum econ_plant {
	PLANT_NOTHING,
	PLANT_LAST_PAGE_UNCLEARED,
	PLANTS,
};

extern unsigned int econ_planted;
extern const struct attribute_group econ_plant_group;

/**
 * econ_plant_leaves_page - whether a test leaves a page of a zeroed block as it was
 * @page: index of the page in its block
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool econ_plant_leaves_page(unsigned int page)
{
	return page == HPAGE_PMD_NR - 1 &&
	       READ_ONCE(econ_planted) == PLANT_LAST_PAGE_UNCLEARED;
}

#endif /* _MM_ECON_PLANT_H */
