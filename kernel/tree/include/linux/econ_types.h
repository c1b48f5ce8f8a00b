/* SPDX-License-Identifier: GPL-2.0-only */
/* What a task knows of the fault that it handles: see mm/econ/measure.c */
#ifndef _LINUX_ECON_TYPES_H
#define _LINUX_ECON_TYPES_H

#include <linux/types.h>

#ifdef CONFIG_ECON

/**
 * struct econ_watch - something that is being measured
 * @begin: when it began
 * @disturbances: what had happened to the task by then
 * @is_on: whether it is measured at all
 */
struct econ_watch {
	u64 begin;
	u64 disturbances;
	bool is_on;
};

/**
 * struct econ_task - of a fault
 * @seen: what it had to do, as bits of enum econ_saw
 * @cleared_ns: what clearing a huge page took, if that is known
 * @fault: all of it
 * @clearing: the page that it clears
 *
 * Not on the stack of who handles it, where even what is not used is cleared.
 */
struct econ_task {
	unsigned int seen;
	u64 cleared_ns;
	struct econ_watch fault;
	struct econ_watch clearing;
};

#endif /* CONFIG_ECON */

#endif /* _LINUX_ECON_TYPES_H */
