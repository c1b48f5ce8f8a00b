// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation of the pools, and their sizes: default, limits from sysfs, scale, and
 * changes by memory hotplug.
 */

#include <linux/init.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/slab.h>

#include "internal.h"

/* Limits; 0 means the default. */
unsigned long luf_pool_max_pages;
unsigned long luf_direct_batch_pages;

/* Binary logarithm of the scale of pool sizes. */
static int luf_pool_scale;

/**
 * luf_resize_pools - update the sizes of all pools
 *
 * Called after memory hotplug, or when a limit or the scale was changed.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_resize_pools(void)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		struct luf_pool *pool = luf_zone_pool(zone);
		unsigned long cap =
			luf_pool_scaled_cap(zone_managed_pages(zone),
					    READ_ONCE(luf_pool_scale));

		if (!pool)
			continue;
		if (luf_pool_max_pages)
			cap = min(cap ? ULONG_MAX : 0, luf_pool_max_pages);
		luf_pool_resize(pool, cap, luf_direct_batch_pages);
		if (luf_pool_is_full(pool) || luf_pool_excess(pool, 0))
			luf_zone_drain_wait(zone, LUF_FOR_CAP);
	}
}

/**
 * luf_scale_pools - change the scale of all pools
 * @by: 1 to double the sizes, -1 to halve them, 0 for the default
 *
 * Does not change sizes that were set by pool_max_pages.
 *
 * Context: may sleep; callers are serialised.
 */
void luf_scale_pools(int by)
{
	int scale = by ? clamp(luf_pool_scale + by, -LUF_LARGEST_SCALE,
			       LUF_LARGEST_SCALE) : 0;

	if (scale == luf_pool_scale)
		return;
	WRITE_ONCE(luf_pool_scale, scale);
	luf_resize_pools();
}

/**
 * luf_node_cap - upper bound of the pools of a node
 * @nid: the node
 *
 * Context: any.
 * Return: number of pages.
 */
unsigned long luf_node_cap(int nid)
{
	const struct zone *zones = NODE_DATA(nid)->node_zones;
	unsigned long pages = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		pages += luf_zone_cap(&zones[i]);
	return pages;
}

static void luf_alloc_pools(void)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		struct luf_pool *pool;

		if (luf_zone_pool(zone))
			continue;
		/* Without a pool no page of the zone is unmapped lazily. */
		pool = kmalloc_node(sizeof(*pool), GFP_KERNEL,
				    zone_to_nid(zone));
		if (!pool)
			continue;
		luf_pool_init(pool);
		/* Publish the initialised pool. */
		smp_store_release(&zone->luf_pool, pool);
	}
	luf_resize_pools();
}

static int luf_memory_notify(struct notifier_block *block, unsigned long action,
			     void *arg)
{
	if (action == MEM_ONLINE || action == MEM_OFFLINE)
		luf_alloc_pools();
	return NOTIFY_OK;
}

static int __init luf_pools_init(void)
{
	luf_alloc_pools();
	hotplug_memory_notifier(luf_memory_notify, DEFAULT_CALLBACK_PRI);
	return 0;
}
subsys_initcall(luf_pools_init);
