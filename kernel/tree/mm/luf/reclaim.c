// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of the pools for tasks that need memory: allocations, direct reclaim, kswapd
 * and compaction.
 */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>
/* Needs the headers above. */
#include <linux/compaction.h>

#include "../internal.h"
#include "internal.h"

/* Allocation */

/**
 * luf_drain_all - drain all pools before an allocation fails
 *
 * The static branch is in here and not at the call: there it would change the code
 * layout of the allocator, and each allocation would cost more.
 *
 * Context: may sleep.
 */
void luf_drain_all(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		luf_drain_everything(LUF_FOR_DRAIN);
}

/* A large block needs all free pages to merge. */
static unsigned long luf_release_share(unsigned int order)
{
	return order > PAGE_ALLOC_COSTLY_ORDER ? ULONG_MAX : LUF_RELEASE_PAGES;
}

bool __luf_refill(struct zone *zone, unsigned int order, unsigned long mark,
		  int highest_zoneidx, unsigned int alloc_flags,
		  gfp_t gfp_mask)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	/* Between the low and the min watermark kswapd does it. */
	if (!pool || !gfpflags_allow_blocking(gfp_mask) ||
	    (alloc_flags & ALLOC_WMARK_MASK) != ALLOC_WMARK_MIN ||
	    !luf_pool_pages(pool))
		return false;
	/* kswapd refills the pool before its last page is released. */
	wakeup_kswapd(zone, gfp_mask, order, highest_zoneidx);
	if (luf_zone_release(zone, luf_release_share(order)) &&
	    zone_watermark_ok(zone, order, mark, highest_zoneidx, alloc_flags))
		return true;
	if (!luf_pool_pays(pool, order))
		return false;
	luf_zone_flush(zone, LUF_FOR_ALLOCATION);
	luf_zone_release(zone, luf_release_share(order));
	return zone_watermark_ok(zone, order, mark, highest_zoneidx,
				 alloc_flags);
}

/* Direct reclaim */

/*
 * Flush a pool if it pays or a task needs its pages, and release up to @most of them.
 * Where it only needs pages, those that another task is flushing come first.
 */
static unsigned long luf_flush_and_release(struct zone *zone, unsigned int order,
					   unsigned long most, bool must)
{
	unsigned long pages = 0;
	long left = LUF_ROOM_TIMEOUT;

	if (!luf_pool_pays(luf_zone_pool(zone), order)) {
		if (!must && !luf_zone_is_urgent(zone))
			return 0;
		while (pages < most &&
		       luf_zone_wait_for_room(zone, luf_zone_cap(zone), &left))
			pages += luf_zone_release(zone, most - pages);
		if (pages >= most)
			return pages;
	}
	luf_zone_flush(zone, LUF_FOR_RECLAIM);
	return pages + luf_zone_release(zone, most - pages);
}

/* Release up to @most pages of each zone. With @must, flush even if it does not pay. */
static unsigned long luf_release_from_zones(struct zonelist *zonelist, unsigned int order,
					    int highest_zoneidx, nodemask_t *nodemask,
					    unsigned long most, bool must)
{
	unsigned long pages = 0;
	struct zoneref *at;
	struct zone *zone;

	for_each_zone_zonelist_nodemask(zone, at, zonelist, highest_zoneidx,
					nodemask) {
		unsigned long found;

		if (!luf_zone_pool(zone))
			continue;
		found = luf_zone_release(zone, most);
		if (found < most)
			found += luf_flush_and_release(zone, order, most - found,
						       must && pages + found < most);
		pages += found;
	}
	return pages;
}

/* State of the zones that direct reclaim may use. */
struct luf_zonelist_state {
	bool has_free_pages; /* one of them meets its min watermark */
	bool has_room; /* one of the pools is not full */
	unsigned long batch; /* number of reclaimed pages after which a flush is due */
};

static struct luf_zonelist_state luf_read_zonelist_state(struct zonelist *zonelist,
							 int highest_zoneidx,
							 nodemask_t *nodemask)
{
	struct luf_zonelist_state seen = {};
	struct zoneref *at;
	struct zone *zone;

	for_each_zone_zonelist_nodemask(zone, at, zonelist, highest_zoneidx,
					nodemask) {
		const struct luf_pool *pool = luf_zone_pool(zone);

		if (zone_watermark_ok(zone, 0, min_wmark_pages(zone),
				      highest_zoneidx, 0))
			seen.has_free_pages = true;
		if (!pool)
			continue;
		if (luf_pool_missing(pool))
			seen.has_room = true;
		seen.batch = max(seen.batch, luf_pool_direct_pages(pool));
	}
	return seen;
}

/*
 * If flushed pages exist, take some and refill the pool by as much reclaim as the
 * task would do without one. Otherwise reclaim until a flush pays, but at most
 * LUF_DIRECT_PAGES, then flush the pending pages unless free ones suffice now. If
 * reclaim makes no progress, release everything.
 */
unsigned long __luf_try_to_free_pages(struct zonelist *zonelist, int order,
				      gfp_t gfp_mask, nodemask_t *nodemask)
{
	int highest = gfp_zone(gfp_mask);
	struct luf_zonelist_state seen = luf_read_zonelist_state(zonelist, highest, nodemask);
	unsigned long progress, pages;
	bool is_due;

	progress = luf_release_from_zones(zonelist, order, highest, nodemask,
					  luf_release_share(order), false);
	if (progress && order == 0) {
		/* Have the next pages ready before the last one of these is used. */
		if (seen.has_room)
			try_to_free_pages(zonelist, order, gfp_mask, nodemask);
		return progress;
	}
	do {
		pages = try_to_free_pages(zonelist, order, gfp_mask, nodemask);
		progress += pages;
		seen = luf_read_zonelist_state(zonelist, highest, nodemask);
		/* A larger block may need the pages that are pending to merge. */
		is_due = progress >= seen.batch && (order || !seen.has_free_pages);
		if (luf_release_from_zones(zonelist, order, highest, nodemask,
					   luf_release_share(order), is_due) ||
		    seen.has_free_pages || fatal_signal_pending(current))
			return progress;
	} while (pages && !is_due);
	return progress + luf_release_from_zones(zonelist, order, highest, nodemask,
						 ULONG_MAX, true);
}

/* kswapd */

static bool luf_zone_has_block(struct zone *zone, int order, int highest_zoneidx)
{
	return zone_watermark_ok(zone, order, high_wmark_pages(zone),
				 highest_zoneidx, 0);
}

/* Whether kswapd reclaims for a large block that only a drain can provide. */
static bool luf_kswapd_lacks_block(struct zone *zone, unsigned int order,
				   int highest_zoneidx)
{
	return order > PAGE_ALLOC_COSTLY_ORDER &&
	       luf_pool_pays(luf_zone_pool(zone), order) &&
	       !luf_zone_has_block(zone, order, highest_zoneidx);
}

void __luf_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx)
{
	int i;

	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = pgdat->node_zones + i;

		if (!managed_zone(zone) || !luf_zone_pool(zone))
			continue;
		/* The previous round of reclaim may have freed almost nothing. */
		if (luf_zone_free_pages(zone) < min_wmark_pages(zone) / 2 ||
		    luf_kswapd_lacks_block(zone, order, highest_zoneidx))
			luf_zone_drain(zone, LUF_FOR_KSWAPD);
		else
			luf_zone_balance(zone);
	}
}

/* More pages than a zone has. The sum with a watermark does not overflow. */
#define MORE_THAN_THERE_IS	(LONG_MAX / 2)

/*
 * A small zone without a pool must not put kswapd to sleep while programs allocate
 * from the pool of a larger zone. Zones that kswapd does not reclaim from miss no
 * pages: it cannot fill their pools, and would reclaim the small zone over and over.
 * Neither does a node from which the last round reclaimed nothing: kswapd gives up
 * after sixteen such rounds.
 */
unsigned long __luf_missing_pages(const struct zone *zone, int highest_zoneidx)
{
	const struct zone *other = zone->zone_pgdat->node_zones;
	int i;

	if (READ_ONCE(zone->zone_pgdat->kswapd_failures))
		return 0;
	if (luf_zone_cap(zone))
		return luf_pool_missing(luf_zone_pool(zone));
	for (i = 0; i <= highest_zoneidx; i++)
		if (luf_zone_pool(&other[i]) && luf_pool_missing(luf_zone_pool(&other[i])))
			return MORE_THAN_THERE_IS;
	return 0;
}

/* Compaction */

/* Number of free pages that compaction_suitable() asks for. */
static unsigned long luf_compaction_needs(const struct zone *zone, int order)
{
	return low_wmark_pages(zone) + compact_gap(order);
}

void __luf_begin_compaction(struct zone *zone, int order)
{
	unsigned long pages = luf_zone_free_pages(zone) + luf_zone_pages(zone);

	/* Compaction does not begin if there is a block, or too little memory for one. */
	if (order < 0 || (pages >= luf_compaction_needs(zone, order) &&
			  !luf_zone_has_block(zone, order, zone_idx(zone))))
		luf_zone_drain(zone, LUF_FOR_COMPACTION);
}

void __luf_prepare_compaction(struct zone *zone, int order)
{
	if (luf_zone_free_pages(zone) < luf_compaction_needs(zone, order))
		__luf_begin_compaction(zone, order);
}
