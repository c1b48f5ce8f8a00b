/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_WAIT_BIT_H
#define TOLLFREE_LINUX_WAIT_BIT_H

#include <sched.h>

#define wait_var_event(var, condition)		\
	do {					\
		while (!(condition))		\
			sched_yield();		\
	} while (0)

#define wake_up_var(var) ((void)(var))

#endif
