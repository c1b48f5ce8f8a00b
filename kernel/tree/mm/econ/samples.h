/* SPDX-License-Identifier: GPL-2.0-only */
/* A cost of the samples of an operation, see samples.c. */
#ifndef _MM_ECON_SAMPLES_H
#define _MM_ECON_SAMPLES_H

#include <linux/types.h>

#include "../tollfree/histogram.h"

/**
 * struct econ_samples - measured costs of an operation
 * @buckets: histogram of the costs, by weight
 * @kept: sum of @buckets
 * @seen: number of all samples
 * @failed_ns: time of attempts that failed and that no sample contains
 * @aged_ns: time up to which @buckets were halved
 */
struct econ_samples {
	u64 buckets[TOLLFREE_HISTOGRAM_BUCKETS];
	u64 kept;
	u64 seen;
	u64 failed_ns;
	u64 aged_ns;
};

bool econ_samples_add(struct econ_samples *all, u64 ns, u64 now);
u64 econ_samples_cost(const struct econ_samples *all);
bool econ_samples_charge(struct econ_samples *all, u64 *ns, bool is_made, u64 cost);

#endif /* _MM_ECON_SAMPLES_H */
