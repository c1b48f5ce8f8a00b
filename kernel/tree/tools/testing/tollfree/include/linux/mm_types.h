/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MM_TYPES_H
#define TOLLFREE_LINUX_MM_TYPES_H

#include <linux/atomic.h>
#include <linux/list.h>

struct folio {
	struct list_head lru;
	unsigned long nr_pages;
};

#endif
