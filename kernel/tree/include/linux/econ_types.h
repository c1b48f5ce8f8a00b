/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the fault that a task handles: see mm/econ/measure.c */
#ifndef _LINUX_ECON_TYPES_H
#define _LINUX_ECON_TYPES_H

#include <linux/types.h>

#ifdef CONFIG_ECON

/**
 * struct econ_watch - measurement in progress
 * @begin: start time
 * @disturbances: time before the start in which the task did not run
 * @is_on: whether the operation is measured
 */
struct econ_watch {
	u64 begin;
	u64 disturbances;
	bool is_on;
};

/**
 * struct econ_task - state of a fault
 * @seen: events of the fault, bits of enum econ_saw
 * @cleared_ns: time that clearing a huge page took, 0 if unknown
 * @fault: measurement of the whole fault
 * @clearing: measurement of clearing a page
 * @block: first page frame of the block that the fault may make for a huge page; 0 if none
 *	was chosen
 *
 * Not on the stack of the fault handler, which would clear it even if it is unused.
 */
struct econ_task {
	unsigned int seen;
	u64 cleared_ns;
	struct econ_watch fault;
	struct econ_watch clearing;
	unsigned long block;
};

#endif /* CONFIG_ECON */

#endif /* _LINUX_ECON_TYPES_H */
