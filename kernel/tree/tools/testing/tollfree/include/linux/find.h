/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_FIND_H
#define TOLLFREE_LINUX_FIND_H

#include <linux/bitops.h>

static inline unsigned long find_next_bit(const unsigned long *bits, unsigned long end,
					  unsigned long at)
{
	while (at < end && !(bits[at / BITS_PER_LONG] >> at % BITS_PER_LONG & 1))
		at++;
	return at;
}

static inline unsigned long find_next_zero_bit(const unsigned long *bits, unsigned long end,
					       unsigned long at)
{
	while (at < end && bits[at / BITS_PER_LONG] >> at % BITS_PER_LONG & 1)
		at++;
	return at;
}

#endif
