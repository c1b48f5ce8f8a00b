/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is neither used nor free, and there for who asks. */
#ifndef _MM_TOLLFREE_SPARE_H
#define _MM_TOLLFREE_SPARE_H

#include <linux/printk.h>

#include "../econ/hooks.h"
#include "../luf/hooks.h"

static inline unsigned long tollfree_spare_pages(void)
{
	return luf_pages() + econ_pages();
}

static inline void tollfree_show_spare_pages(void)
{
	if (IS_ENABLED(CONFIG_LUF))
		pr_notice("%lu pages that wait for a flush\n", luf_pages());
	if (IS_ENABLED(CONFIG_ECON))
		pr_notice("%lu pages that are zeroed ahead\n", econ_pages());
}

#endif /* _MM_TOLLFREE_SPARE_H */
