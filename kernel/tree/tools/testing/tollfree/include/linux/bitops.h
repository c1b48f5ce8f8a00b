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

#endif
