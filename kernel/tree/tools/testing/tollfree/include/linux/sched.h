/* SPDX-License-Identifier: GPL-2.0-only */
/* What waiting needs is in wait_bit.h. */
#ifndef TOLLFREE_LINUX_SCHED_H
#define TOLLFREE_LINUX_SCHED_H

#endif
