/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MATH64_H
#define TOLLFREE_LINUX_MATH64_H

#include <linux/types.h>

/* As on x86 a quotient of more than 64 bits is a bug. */
static inline u64 mul_u64_u64_div_u64(u64 a, u64 mul, u64 div)
{
	unsigned __int128 quotient = (unsigned __int128)a * mul / div;

	if (quotient >> 64)
		__builtin_trap();
	return quotient;
}

#endif
