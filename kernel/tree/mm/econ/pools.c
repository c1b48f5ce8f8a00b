// SPDX-License-Identifier: GPL-2.0-only
/*
 * Size of pools of pages that wait for a TLB flush. Flushes count the CPUs that they
 * interrupt, and refaults count pages that would still be resident without pools. After
 * some flushes the pools are doubled or halved if that pays, and both counters are reset.
 */

#include <linux/atomic.h>
#include <linux/init.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Number of flushes between two decisions. */
#define FLUSHES_A_DECISION	16

/* NULL if there are none. */
static const struct econ_pools *econ_pools __ro_after_init;

static atomic_t flushes;
static atomic_t interrupted;
static atomic_t refaults;

atomic_long_t econ_refault_pages;

/**
 * econ_set_pools - register the pools for which econ decides the size
 * @pools: the pools
 *
 * Context: an initcall before late_initcall().
 */
void __init econ_set_pools(const struct econ_pools *pools)
{
	econ_pools = pools;
}

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
		econ_pools->scale(by);
}

static DECLARE_WORK(resizing, econ_resize_pools);

void __econ_pool_flushed(struct econ_watch *watch, unsigned int cpus)
{
	if (watch->is_on)
		econ_sample(ECON_FLUSH, __econ_watch_end(watch) / cpus);
	atomic_add(cpus, &interrupted);
	if (atomic_inc_return(&flushes) == FLUSHES_A_DECISION)
		schedule_work(&resizing);
}

void __econ_refaulted(int nid, unsigned long distance)
{
	if (!econ_pools || distance >= econ_pools->node_cap(nid))
		return;
	atomic_inc(&refaults);
	atomic_long_inc(&econ_refault_pages);
}

/**
 * econ_observe_pools - begin or stop to observe flushes of the pools
 * @on: whether they call econ_pool_flushed()
 *
 * Context: may sleep; callers are serialised.
 */
void econ_observe_pools(bool on)
{
	if (econ_pools)
		econ_pools->observe(on);
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
	if (econ_pools)
		econ_pools->scale(0);
}
