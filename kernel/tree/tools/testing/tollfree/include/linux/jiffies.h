/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_JIFFIES_H
#define TOLLFREE_LINUX_JIFFIES_H

#define HZ	1000

/* The counter wraps. */
#define time_before(a, b)	((long)((a) - (b)) < 0)
#define time_before_eq(a, b)	((long)((a) - (b)) <= 0)

#endif
