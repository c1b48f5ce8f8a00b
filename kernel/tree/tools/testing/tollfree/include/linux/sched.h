/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_SCHED_H
#define TOLLFREE_LINUX_SCHED_H

#include <sched.h>

#define IS_ENABLED(option)			0
#define cond_resched()				((void)0)
#define schedule_timeout_uninterruptible(ticks)	((void)(ticks), sched_yield())

#endif
