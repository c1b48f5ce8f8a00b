/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_CPUMASK_H
#define TOLLFREE_LINUX_CPUMASK_H

#include <linux/types.h>

/* Up to 64 CPUs. */
struct cpumask {
	u64 bits;
};

static inline void cpumask_clear(struct cpumask *mask)
{
	__atomic_store_n(&mask->bits, 0, __ATOMIC_SEQ_CST);
}

static inline void cpumask_set_cpu(unsigned int cpu, struct cpumask *mask)
{
	__atomic_fetch_or(&mask->bits, 1ULL << cpu, __ATOMIC_SEQ_CST);
}

static inline void cpumask_or(struct cpumask *to, const struct cpumask *one,
			      const struct cpumask *other)
{
	to->bits = __atomic_load_n(&one->bits, __ATOMIC_SEQ_CST) |
		   __atomic_load_n(&other->bits, __ATOMIC_SEQ_CST);
}

static inline bool cpumask_test_cpu(unsigned int cpu, const struct cpumask *mask)
{
	return __atomic_load_n(&mask->bits, __ATOMIC_SEQ_CST) >> cpu & 1;
}

#endif
