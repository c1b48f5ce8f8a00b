/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_TOLLFREE_HISTOGRAM_H
#define _MM_TOLLFREE_HISTOGRAM_H

#include <linux/types.h>

/* Each power of two has 1 << TOLLFREE_HISTOGRAM_SHIFT buckets. */
#define TOLLFREE_HISTOGRAM_SHIFT	3
#define TOLLFREE_HISTOGRAM_BUCKETS \
	((65 - TOLLFREE_HISTOGRAM_SHIFT) << TOLLFREE_HISTOGRAM_SHIFT)

unsigned int tollfree_histogram_bucket(u64 value);
u64 tollfree_histogram_low(unsigned int bucket);
u64 tollfree_histogram_quantile(const u64 *counts, unsigned int permyriad);

#endif /* _MM_TOLLFREE_HISTOGRAM_H */
