/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MM_H
#define TOLLFREE_LINUX_MM_H

#include <linux/mm_types.h>

static inline unsigned long folio_nr_pages(const struct folio *folio)
{
	return folio->nr_pages;
}

#endif
