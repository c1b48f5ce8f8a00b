// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that enter the pool of their zone, and leave it when they reach the age limit.
 */

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/swap.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Age at which a page leaves its pool. */
unsigned int luf_max_age_ms = 30 * MSEC_PER_SEC;

static void luf_age_pools(struct work_struct *work);
static DECLARE_DELAYED_WORK(luf_ager, luf_age_pools);

static unsigned long luf_max_age(void)
{
	return msecs_to_jiffies(READ_ONCE(luf_max_age_ms));
}

static void luf_rearm_ager(void)
{
	queue_delayed_work(system_unbound_wq, &luf_ager, luf_max_age());
}

/**
 * luf_age_changed - apply a new value of max_age_ms
 *
 * Pages that already wait are checked after the new time.
 *
 * Context: process.
 */
void luf_age_changed(void)
{
	mod_delayed_work(system_unbound_wq, &luf_ager, luf_max_age());
}

/*
 * Release flushed pages first. Where other tasks have all of them, wait for these. Then
 * flush and release pending pages.
 */
static void luf_make_room(struct zone *zone, unsigned long pages)
{
	struct luf_pool *pool = luf_zone_pool(zone);
	long left = LUF_ROOM_TIMEOUT;

	if (pages > READ_ONCE(pool->cap))
		return;
	/* Another task may take the room: try again. */
	while (luf_zone_release(zone, luf_pool_excess(pool, pages)) ||
	       luf_zone_wait_for_room(zone, pages, &left))
		;
	if (luf_pool_excess(pool, pages)) {
		luf_zone_flush(zone, LUF_FOR_CAP);
		luf_zone_release(zone, luf_pool_excess(pool, pages));
	}
}

/* Count first: other tasks may release the pages as soon as they are added. */
static bool luf_zone_add(struct zone *zone, struct luf_part *part)
{
	unsigned long pages = part->nr_pages;

	if (!luf_zone_takes(zone))
		return false;
	luf_make_room(zone, pages);
	mod_zone_page_state(zone, NR_LUF_PAGES, pages);
	if (luf_pool_add(luf_zone_pool(zone), part, jiffies))
		return true;
	mod_zone_page_state(zone, NR_LUF_PAGES, -(long)pages);
	return false;
}

/**
 * luf_zone_put - put folios into the pool of their zone
 * @zone: the zone
 * @part: the folios; empty on return
 *
 * Flushes and frees them if the pool does not accept them. Flushed folios are kept
 * for allocations that will soon lack memory. While kswapd sleeps and the zone is
 * above its high watermark they are freed instead.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_zone_put(struct zone *zone, struct luf_part *part)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!luf_zone_add(zone, part)) {
		luf_flush_part(part, LUF_FOR_CAP);
		luf_free_folios(&part->folios);
		luf_part_init(part);
		return;
	}
	if (current_is_kswapd())
		luf_zone_balance(zone);
	if (luf_pool_is_full(pool)) {
		luf_zone_flush(zone, LUF_FOR_CAP);
		luf_zone_release(zone, current_is_kswapd() ? luf_zone_owes(zone) :
								LUF_RELEASE_PAGES);
	}
	if (!current_is_kswapd() && luf_zone_free_pages(zone) > luf_zone_goal(zone))
		luf_zone_release(zone, ULONG_MAX);
	/* Pairs with the worker: luf_ager is not pending before it checks for pages. */
	smp_mb();
	if (!delayed_work_pending(&luf_ager))
		luf_rearm_ager();
}

/*
 * No page stays in a pool for longer than twice the age: younger pages are checked
 * again after the age. A flush in progress keeps the age of its pages.
 */
static void luf_age_pools(struct work_struct *work)
{
	struct zone *zone;
	bool more = false;

	for_each_populated_zone(zone) {
		struct luf_pool *pool = luf_zone_pool(zone);
		unsigned long limit;

		if (!pool || !luf_pool_pages(pool))
			continue;
		luf_pool_wait(pool);
		limit = jiffies - luf_max_age();
		if (luf_part_is_old(&pool->pending, limit))
			luf_zone_drain_wait(zone, LUF_FOR_AGE);
		else if (luf_part_is_old(&pool->flushed, limit))
			luf_zone_release(zone, ULONG_MAX);
		if (luf_pool_pages(pool))
			more = true;
	}
	if (more)
		luf_rearm_ager();
}
