/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_BITMAP_H
#define TOLLFREE_LINUX_BITMAP_H

#include <linux/bitops.h>

static inline void bitmap_set(unsigned long *bits, unsigned int first, unsigned int count)
{
	for (; count--; first++)
		test_and_set_bit(first, bits);
}

static inline void bitmap_clear(unsigned long *bits, unsigned int first, unsigned int count)
{
	for (; count--; first++)
		bits[first / BITS_PER_LONG] &= ~(1UL << first % BITS_PER_LONG);
}

static inline unsigned long bitmap_weight(const unsigned long *bits, unsigned int count)
{
	unsigned long set = 0;

	for (unsigned int i = 0; i < count; i++)
		set += bits[i / BITS_PER_LONG] >> i % BITS_PER_LONG & 1;
	return set;
}

#endif
