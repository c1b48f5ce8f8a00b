// SPDX-License-Identifier: GPL-2.0-only
/*
 * Size of the pools of LUF (mm/luf). Flushes count the CPUs that they interrupt, and
 * refaults count pages that would still be resident without pools. After some flushes
 * the pools are doubled or halved if that pays, and both counters are reset.
 */

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/workqueue.h>

#include "../luf/hooks.h"
#include "internal.h"

/* Number of flushes between two decisions. */
#define FLUSHES_A_DECISION	16

static atomic_t flushes;
static atomic_t interrupted;
static atomic_t refaults;

atomic_long_t econ_refault_pages;

static void econ_pools_forget(void)
{
	atomic_set(&flushes, 0);
	atomic_set(&interrupted, 0);
	atomic_set(&refaults, 0);
}

static void econ_resize_pools(struct work_struct *work)
{
	struct econ_action action = {
		.kind = ECON_POOL,
		.interrupted = atomic_read(&interrupted),
		.refaults = atomic_read(&refaults),
	};
	bool acts = READ_ONCE(econ_mode) == ECON_ON;
	int by = 0;

	econ_pools_forget();
	if (econ_decide(&action, 0, NULL, acts)) {
		by = 1;
	} else {
		action.is_smaller = true;
		if (econ_decide(&action, 0, NULL, acts))
			by = -1;
	}
	if (by && acts)
		luf_scale_pools(by);
}

static DECLARE_WORK(resizing, econ_resize_pools);

void __econ_pool_flushed(struct econ_watch *watch, unsigned int cpus)
{
	u64 ns;

	if (watch->is_on && __econ_watch_end(watch, &ns))
		econ_sample(ECON_FLUSH, ns / cpus);
	atomic_add(cpus, &interrupted);
	if (atomic_inc_return(&flushes) == FLUSHES_A_DECISION)
		schedule_work(&resizing);
}

void __econ_refaulted(int nid, unsigned long distance)
{
	if (distance >= luf_node_cap(nid))
		return;
	atomic_inc(&refaults);
	atomic_long_inc(&econ_refault_pages);
}

/**
 * econ_leave_pools - give the pools the size that they have without econ
 *
 * Called after econ_mode was set to a mode other than on, so that the work item does
 * not resize them again.
 *
 * Context: may sleep.
 */
void econ_leave_pools(void)
{
	cancel_work_sync(&resizing);
	econ_pools_forget();
	luf_scale_pools(0);
}
