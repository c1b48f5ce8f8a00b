// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of a zone: flush of its pages and their release to the allocator. The order
 * of the steps is given in include/linux/luf.h.
 */

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pagevec.h>
#include <linux/sched/sysctl.h>

#include "../internal.h"
#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/luf.h>

atomic_long_t luf_drain_sizes[TOLLFREE_HISTOGRAM_BUCKETS];
u64 luf_longest_drain_ns;

/* State */

/**
 * luf_zone_takes - whether the pool of a zone accepts pages
 * @zone: the zone
 *
 * Context: any.
 * Return: false if the zone is too small, or blocked.
 */
bool luf_zone_takes(const struct zone *zone)
{
	const struct luf_pool *pool = luf_zone_pool(zone);

	return pool && READ_ONCE(pool->cap) && !READ_ONCE(pool->blocked);
}

/**
 * luf_zone_cap - upper bound of the pool of a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: number of pages, 0 if the zone has no pool.
 */
unsigned long luf_zone_cap(const struct zone *zone)
{
	const struct luf_pool *pool = luf_zone_pool(zone);

	return pool ? READ_ONCE(pool->cap) : 0;
}

/**
 * luf_zone_pages - number of pages in the pool of a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: the number, including pages that are being flushed or released.
 */
unsigned long luf_zone_pages(const struct zone *zone)
{
	return luf_zone_pool(zone) ? luf_pool_pages(luf_zone_pool(zone)) : 0;
}

unsigned long __luf_pages(void)
{
	unsigned long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		pages += luf_zone_pages(zone);
	return pages;
}

/**
 * luf_zone_is_urgent - whether to flush the pool of a zone although it does not pay yet
 * @zone: the zone; it has a pool
 *
 * Context: any.
 * Return: true if so, see luf_pool_is_urgent().
 */
bool luf_zone_is_urgent(struct zone *zone)
{
	return luf_pool_is_urgent(luf_zone_pool(zone), luf_zone_free_pages(zone),
				  min_wmark_pages(zone));
}

/**
 * luf_zone_goal - watermark of a zone that kswapd reclaims to
 * @zone: the zone
 *
 * Context: any.
 * Return: number of pages. With memory tiers it includes room for promotions.
 */
unsigned long luf_zone_goal(const struct zone *zone)
{
	if (sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING)
		return promo_wmark_pages(zone);
	return high_wmark_pages(zone);
}

/**
 * luf_zone_owes - number of pages that kswapd releases to the allocator
 * @zone: the zone; it has a pool
 *
 * Context: any.
 * Return: number of pages, 0 if enough is free.
 */
unsigned long luf_zone_owes(struct zone *zone)
{
	return luf_pool_owes(luf_zone_pool(zone), luf_zone_free_pages(zone),
			     low_wmark_pages(zone), luf_zone_goal(zone));
}

/* Release */

/**
 * luf_free_folios - free folios to the allocator
 * @folios: the folios: frozen, uncharged and flushed; empty on return
 *
 * Context: process.
 */
void luf_free_folios(struct list_head *folios)
{
	struct folio_batch batch;
	struct folio *folio, *next;

	folio_batch_init(&batch);
	list_for_each_entry_safe(folio, next, folios, lru) {
		list_del(&folio->lru);
		luf_debug_release(folio);
		if (folio_batch_add(&batch, folio))
			continue;
		free_unref_folios(&batch);
	}
	free_unref_folios(&batch);
}

/* Free the pages of a transit, and remove them from the pool's count. */
static void luf_free_transit(struct zone *zone, struct luf_transit *transit)
{
	unsigned long pages = transit->part.nr_pages;

	luf_free_folios(&transit->part.folios);
	mod_zone_page_state(zone, NR_LUF_PAGES, -(long)pages);
	luf_pool_end_transit(luf_zone_pool(zone), transit);
	trace_luf_release(zone_to_nid(zone), zone_idx(zone), pages);
}

/**
 * luf_zone_release - release flushed pages of a pool to the allocator, oldest first
 * @zone: the zone; it has a pool
 * @most: number of pages after which to stop
 *
 * Context: process.
 * Return: number of released pages.
 */
unsigned long luf_zone_release(struct zone *zone, unsigned long most)
{
	struct luf_transit transit;
	unsigned long pages = luf_pool_take(luf_zone_pool(zone), most, &transit);

	if (pages)
		luf_free_transit(zone, &transit);
	return pages;
}

/**
 * luf_zone_wait_for_room - wait until pages fit into a pool, or some can be released
 * @zone: the zone; it has a pool
 * @more: number of pages to add; the cap of the pool to wait for any that is flushed
 * @left: jiffies that the caller may still wait; updated
 *
 * Context: may sleep, see luf_pool_wait_for_room().
 * Return: whether it waited. Another task may have been faster: call again.
 */
bool luf_zone_wait_for_room(struct zone *zone, unsigned long more, long *left)
{
	if (!luf_pool_wait_for_room(luf_zone_pool(zone), more, left))
		return false;
	luf_count(LUF_ROOM_WAITED);
	return true;
}

/* Flush */

static void luf_note_longest_drain(u64 ns)
{
	u64 seen = READ_ONCE(luf_longest_drain_ns);

	while (ns > seen)
		if (try_cmpxchg64(&luf_longest_drain_ns, &seen, ns))
			break;
}

static void luf_note_drain_size(unsigned long pages)
{
	atomic_long_inc(&luf_drain_sizes[tollfree_histogram_bucket(pages)]);
}

/**
 * luf_flush_part - flush the batches of some folios
 * @part: the folios and their batches
 * @reason: reason of the flush
 *
 * Context: may sleep; no page-table lock is held.
 * Return: number of CPUs that were interrupted.
 */
unsigned int luf_flush_part(struct luf_part *part, enum luf_reason reason)
{
	u64 begin = ktime_get_ns();
	unsigned int cpus = luf_flush_range(&luf_batches, part->first,
					    part->last);

	luf_note_longest_drain(ktime_get_ns() - begin);
	if (cpus)
		luf_count(LUF_FLUSHES + reason);
	luf_count_many(cpus ? LUF_RELEASED_FLUSHED : LUF_RELEASED_ELIDED,
		       part->nr_pages);
	trace_luf_flush(reason, part->first, part->last, part->nr_pages, cpus);
	return cpus;
}

/* An observer is registered. */
static DEFINE_STATIC_KEY_FALSE(luf_observer_key);
static const struct luf_observer *luf_flush_observer;

/**
 * luf_observe - register or remove the observer of flushes of pools
 * @observer: the observer, which must stay valid forever, or NULL for none
 *
 * After its removal flushes in progress may still call it.
 *
 * Context: may sleep; takes cpus_read_lock(). Callers are serialised.
 */
void luf_observe(const struct luf_observer *observer)
{
	if (observer) {
		WRITE_ONCE(luf_flush_observer, observer);
		static_branch_enable(&luf_observer_key);
	} else {
		static_branch_disable(&luf_observer_key);
	}
}

/* Return: the observer, or NULL if there is none. */
static const struct luf_observer *luf_observer(void)
{
	if (static_branch_unlikely(&luf_observer_key))
		return READ_ONCE(luf_flush_observer);
	return NULL;
}

/* Flush the batches of pages in transit, and tell the observer. */
static void luf_flush_transit(struct luf_transit *transit, enum luf_reason reason)
{
	const struct luf_observer *observer = luf_observer();
	struct luf_observation it;
	unsigned int cpus;

	if (observer)
		observer->begin(&it);
	cpus = luf_flush_part(&transit->part, reason);
	if (observer)
		observer->end(&it, cpus);
}

/**
 * luf_zone_flush - flush the pending pages of a pool
 * @zone: the zone; it has a pool
 * @reason: reason of the flush
 *
 * The pages stay in the pool until luf_zone_release().
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_zone_flush(struct zone *zone, enum luf_reason reason)
{
	struct luf_pool *pool = luf_zone_pool(zone);
	struct luf_transit transit;

	if (!luf_pool_begin_flush(pool, &transit))
		return;
	luf_note_drain_size(transit.part.nr_pages);
	luf_flush_transit(&transit, reason);
	luf_debug_delay();
	/* A blocked pool keeps no pages: free them at once. */
	if (!luf_pool_end_flush(pool, &transit))
		luf_free_transit(zone, &transit);
}

/* Drain */

/**
 * luf_zone_drain - flush a pool and release all of its flushed pages
 * @zone: the zone
 * @reason: reason of the flush
 *
 * Does not wait for pages that other tasks are flushing or releasing.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_zone_drain(struct zone *zone, enum luf_reason reason)
{
	if (!luf_zone_pool(zone))
		return;
	luf_zone_flush(zone, reason);
	luf_zone_release(zone, ULONG_MAX);
}

/**
 * luf_zone_drain_wait - drain a pool completely
 * @zone: the zone
 * @reason: reason of the flush
 *
 * On return all pages that were in the pool are free, including those that other tasks
 * were flushing or releasing.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_zone_drain_wait(struct zone *zone, enum luf_reason reason)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!pool)
		return;
	luf_zone_flush(zone, reason);
	luf_pool_wait(pool);
	/* Pages that other tasks flushed are in the pool, or in their transits. */
	luf_zone_release(zone, ULONG_MAX);
	luf_pool_wait(pool);
}

/**
 * luf_drain_everything - drain all pools and flush all batches
 * @reason: reason of the flushes
 *
 * Waits for concurrent flushes and releases. Flushes batches that have no page in a
 * pool yet, too.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_drain_everything(enum luf_reason reason)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		luf_zone_drain_wait(zone, reason);
	luf_drain(&luf_batches, READ_ONCE(luf_batches.newest));
}

/**
 * luf_zone_balance - release and flush pages of a pool while kswapd balances its zone
 * @zone: the zone; it has a pool
 *
 * kswapd flushes when no flushed page is left, before a task has to wait.
 *
 * Context: kswapd; may sleep.
 */
void luf_zone_balance(struct zone *zone)
{
	luf_zone_release(zone, luf_zone_owes(zone));
	if (luf_zone_is_urgent(zone) ||
	    (luf_zone_owes(zone) && luf_pool_pays(luf_zone_pool(zone), 0))) {
		luf_zone_flush(zone, LUF_FOR_KSWAPD);
		luf_zone_release(zone, luf_zone_owes(zone));
	}
}

/* Isolation */

/**
 * luf_block_zone - drain the pool of a zone and keep it empty
 * @zone: the zone
 *
 * Waits for concurrent flushes and releases of the pool. Calls nest;
 * luf_unblock_zone() ends each.
 *
 * Context: may sleep.
 */
void luf_block_zone(struct zone *zone)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!pool)
		return;
	luf_pool_block(pool);
	luf_zone_drain_wait(zone, LUF_FOR_DRAIN);
}

/**
 * luf_unblock_zone - end luf_block_zone()
 * @zone: the zone
 *
 * Context: process.
 */
void luf_unblock_zone(struct zone *zone)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (pool)
		luf_pool_unblock(pool);
}

void __luf_begin_recovery(struct luf_recovery *recovery, const struct page *page)
{
	struct zone *zone = page_zone(page);

	if (!luf_zone_pool(zone))
		return;
	recovery->zone = zone;
	luf_block_zone(zone);
	/* Only pages that have left the per-CPU lists are known to be free. */
	if (!page_count(page))
		drain_all_pages(zone);
}
