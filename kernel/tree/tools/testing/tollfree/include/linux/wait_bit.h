/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_WAIT_BIT_H
#define TOLLFREE_LINUX_WAIT_BIT_H

#include <sched.h>
#include <unistd.h>

#define wait_var_event(var, condition)		\
	do {					\
		while (!(condition))		\
			sched_yield();		\
	} while (0)

/* A jiffy is a millisecond. */
#define wait_var_event_timeout(var, condition, timeout)	\
({							\
	long left_ = (timeout);				\
							\
	while (!(condition) && left_) {			\
		usleep(1000);				\
		left_--;				\
	}						\
	left_;						\
})

#define wake_up_var(var) ((void)(var))

#endif
