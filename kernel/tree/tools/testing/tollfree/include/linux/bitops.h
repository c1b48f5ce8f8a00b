/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_BITOPS_H
#define TOLLFREE_LINUX_BITOPS_H

#include <linux/bits.h>
#include <linux/types.h>

/* Number of the highest set bit, from 1 on; 0 if none is. */
static inline int fls64(u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

#define BITS_PER_LONG		(8 * sizeof(long))
#define BITS_TO_LONGS(nr)	(((nr) + BITS_PER_LONG - 1) / BITS_PER_LONG)

static inline bool test_and_set_bit(long nr, unsigned long *bits)
{
	unsigned long bit = 1UL << nr % BITS_PER_LONG;

	return __atomic_fetch_or(&bits[nr / BITS_PER_LONG], bit, __ATOMIC_SEQ_CST) & bit;
}

#endif
