// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroed blocks that are given back: to allocations that lack memory, to kswapd and
 * reclaim, and to the isolation of pages.
 */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>
#include <linux/swap.h>
#include <linux/wait.h>

#include "../internal.h"
#include "internal.h"
#include "prezero.h"

/* Memory shortage */

/* Freed blocks may be on the per-CPU lists, which no watermark counts. */
static void econ_drain_local_pages(struct zone *zone)
{
	guard(preempt)();
	drain_local_pages(zone);
}

/* Supposed blocks would have been freed. */
static void econ_prezero_suppose_none(struct econ_prezero *prezero)
{
	guard(spinlock_irqsave)(&prezero->lock);
	WRITE_ONCE(prezero->supposed, 0);
}

/* Under memory pressure the supposed blocks would have been freed. */
static void econ_prezero_check_supposed(struct econ_prezero *prezero)
{
	unsigned long supposed = READ_ONCE(prezero->supposed);

	if (supposed && !econ_prezero_has_room(prezero, supposed))
		econ_prezero_suppose_none(prezero);
}

bool __econ_refill(struct zone *zone, unsigned int order, unsigned long mark,
		   int highest_zoneidx, unsigned int alloc_flags)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	/* Between the low and the min watermark kswapd does it. */
	if (!prezero || current == READ_ONCE(prezero->thread) ||
	    (alloc_flags & ALLOC_WMARK_MASK) != ALLOC_WMARK_MIN)
		return false;
	econ_prezero_check_supposed(prezero);
	while (econ_prezero_give_back(prezero, zone_idx(zone))) {
		if (in_task())
			econ_drain_local_pages(zone);
		if (zone_watermark_ok(zone, order, mark, highest_zoneidx,
				      alloc_flags))
			return true;
	}
	return false;
}

void __econ_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx)
{
	struct econ_prezero *prezero = econ_prezero_of_node(pgdat->node_id);
	int i;

	if (!prezero)
		return;
	econ_prezero_check_supposed(prezero);
	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = &pgdat->node_zones[i];

		while (managed_zone(zone) &&
		       !zone_watermark_ok(zone, order, high_wmark_pages(zone),
					  highest_zoneidx, 0) &&
		       !econ_prezero_pays_memory(prezero, READ_ONCE(prezero->kept)) &&
		       econ_prezero_give_back(prezero, i))
			econ_drain_local_pages(zone);
	}
}

/**
 * econ_drain_all - free all kept blocks before an allocation fails
 *
 * The check for kept blocks is in here and not at the call: there it would change the
 * code layout of the allocator, and each allocation would cost more.
 *
 * Context: may sleep.
 */
void econ_drain_all(void)
{
	bool found = false;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		struct econ_prezero *prezero = econ_prezero_of_node(nid);

		if (!prezero)
			continue;
		econ_prezero_check_supposed(prezero);
		while (econ_prezero_give_back_any(prezero))
			found = true;
	}
	if (found)
		drain_all_pages(NULL);
}

static unsigned long econ_prezero_count_pages(struct shrinker *shrinker,
					      struct shrink_control *control)
{
	const struct econ_prezero *prezero = econ_prezero_of_node(control->nid);
	unsigned long blocks = prezero ? READ_ONCE(prezero->kept) : 0;

	/* kswapd works ahead; a task that has to reclaim gets all. */
	if (current_is_kswapd() && prezero && econ_prezero_pays_memory(prezero, blocks))
		return SHRINK_EMPTY;
	return blocks ? blocks * HPAGE_PMD_NR : SHRINK_EMPTY;
}

static unsigned long econ_prezero_scan_pages(struct shrinker *shrinker,
					     struct shrink_control *control)
{
	struct econ_prezero *prezero = econ_prezero_of_node(control->nid);
	unsigned long pages = 0;

	while (prezero && pages < control->nr_to_scan && econ_prezero_give_back_any(prezero))
		pages += HPAGE_PMD_NR;
	control->nr_scanned = pages;
	return pages ?: SHRINK_STOP;
}

/**
 * econ_prezero_alloc_shrinker - allocate the shrinker of zeroed blocks
 *
 * Context: an initcall.
 * Return: the shrinker, not registered yet, or NULL.
 */
struct shrinker * __init econ_prezero_alloc_shrinker(void)
{
	struct shrinker *shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE,
						   "econ-zeroed-blocks");

	if (!shrinker)
		return NULL;
	/* Kept blocks cost only idle time to make again. */
	shrinker->seeks = 0;
	shrinker->batch = HPAGE_PMD_NR;
	shrinker->count_objects = econ_prezero_count_pages;
	shrinker->scan_objects = econ_prezero_scan_pages;
	return shrinker;
}

/* Isolation */

/**
 * econ_prezero_wait_idle - wait until no block is being zeroed
 * @prezero: blocks of a node
 *
 * The thread checks after each page whether to stop, provided that it runs: raise its
 * priority.
 *
 * Context: may sleep.
 */
void econ_prezero_wait_idle(struct econ_prezero *prezero)
{
	struct task_struct *thread = READ_ONCE(prezero->thread);

	if (thread && READ_ONCE(prezero->is_at_work))
		sched_set_normal(thread, 0);
	wait_event(prezero->rested, !READ_ONCE(prezero->is_at_work));
}

/**
 * econ_block_zone - free all kept blocks of the node of a zone, and keep none
 * @zone: the zone
 *
 * Calls nest; econ_unblock_zone() ends each.
 *
 * Context: may sleep.
 */
void econ_block_zone(struct zone *zone)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	if (!prezero)
		return;
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		WRITE_ONCE(prezero->blocked, prezero->blocked + 1);
		WRITE_ONCE(prezero->supposed, 0);
	}
	econ_prezero_shrink_to(prezero, 0);
	econ_prezero_wait_idle(prezero);
}

/**
 * econ_unblock_zone - end econ_block_zone()
 * @zone: the zone
 *
 * Context: process; takes a spinlock.
 */
void econ_unblock_zone(struct zone *zone)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	if (!prezero)
		return;
	guard(spinlock_irqsave)(&prezero->lock);
	WRITE_ONCE(prezero->blocked, prezero->blocked - 1);
}

void __econ_drain_zone(struct zone *zone)
{
	econ_block_zone(zone);
	econ_unblock_zone(zone);
	drain_all_pages(zone);
}
