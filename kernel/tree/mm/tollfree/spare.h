/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is neither used nor free, but available to allocations. */
#ifndef _MM_TOLLFREE_SPARE_H
#define _MM_TOLLFREE_SPARE_H

#include <linux/printk.h>

#include "../econ/hooks.h"
#include "../luf/hooks.h"

/**
 * tollfree_spare_pages - number of pages that allocations can get without reclaim
 *
 * Context: any.
 * Return: number of pages that wait for a flush or are zeroed ahead.
 */
static inline unsigned long tollfree_spare_pages(void)
{
	return luf_pages() + econ_pages();
}

/**
 * tollfree_show_spare_pages - print the numbers of spare pages to the kernel log
 *
 * Context: any.
 */
static inline void tollfree_show_spare_pages(void)
{
	if (IS_ENABLED(CONFIG_LUF))
		pr_notice("%lu pages that wait for a flush\n", luf_pages());
	if (IS_ENABLED(CONFIG_ECON))
		pr_notice("%lu pages that are zeroed ahead\n", econ_pages());
}

#endif /* _MM_TOLLFREE_SPARE_H */
