/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MATH_H
#define TOLLFREE_LINUX_MATH_H

#define DIV_ROUND_UP(n, d)		\
({					\
	__typeof__(d) divisor = (d);	\
					\
	((n) + divisor - 1) / divisor;	\
})

#define round_up(n, d)		(DIV_ROUND_UP(n, d) * (d))
#define round_down(n, d)	((n) - (n) % (d))

#endif
