// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pool of lazily unmapped pages of a zone: reclaim adds pages, a flush makes them
 * reusable, and tasks that need memory release them, a few at a time. Flushed and
 * released are two states.
 *
 * Pool pages are not free pages: no watermark counts them. The memory cost of a pool
 * is bounded by its cap: no page is added beyond it, in any state of the others.
 *
 * A page that is being flushed or released is in a transit, and not on a list that a
 * drain can take it from. A drain waits for the transits that it finds.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>

#include "pool.h"

/* 99 % fewer flushes than with one for 31 pages need about 3,100 pages per drain. */
#define DEFAULT_PAGES		4096UL
#define DEFAULT_SHARE		1000UL
#define LARGEST_SHARE		64UL
/*
 * Fraction of the cap that justifies a flush where a task waits for memory, and that
 * stays free when a full pool is flushed.
 */
#define SMALL_SHARE		16

/**
 * luf_part_init - initialise an empty part
 * @part: the part
 *
 * Context: any.
 */
void luf_part_init(struct luf_part *part)
{
	INIT_LIST_HEAD(&part->folios);
	part->nr_pages = 0;
	part->since = 0;
	part->first = 0;
	part->last = 0;
}

/**
 * luf_part_cover - extend the range of batches that cover a part
 * @part: the part
 * @first: oldest generation, 0 if there is none
 * @last: newest generation
 *
 * Context: any; the caller serialises.
 */
void luf_part_cover(struct luf_part *part, u64 first, u64 last)
{
	if (first && (!part->first || first < part->first))
		part->first = first;
	part->last = max(part->last, last);
}

/**
 * luf_part_join - append a part to another
 * @part: the part that grows at its tail
 * @other: the part that is empty on return
 *
 * Context: any; the caller serialises.
 */
void luf_part_join(struct luf_part *part, struct luf_part *other)
{
	if (other->nr_pages &&
	    (!part->nr_pages || time_before(other->since, part->since)))
		WRITE_ONCE(part->since, other->since);
	list_splice_tail_init(&other->folios, &part->folios);
	WRITE_ONCE(part->nr_pages, part->nr_pages + other->nr_pages);
	luf_part_cover(part, other->first, other->last);
	luf_part_init(other);
}

/**
 * luf_pool_default_cap - default upper bound of the pool of a zone
 * @managed_pages: size of the zone
 *
 * Context: any.
 * Return: the larger of 4,096 pages and a thousandth of the zone, but at most a 64th
 * of the zone; 0 if that is less than LUF_RELEASE_PAGES.
 */
unsigned long luf_pool_default_cap(unsigned long managed_pages)
{
	unsigned long most = managed_pages / LARGEST_SHARE;

	if (most < LUF_RELEASE_PAGES)
		return 0;
	return min(most, max(DEFAULT_PAGES, managed_pages / DEFAULT_SHARE));
}

/**
 * luf_pool_scaled_cap - scaled upper bound of the pool of a zone
 * @managed_pages: size of the zone
 * @scale: binary logarithm of the factor
 *
 * Context: any.
 * Return: number of pages, at most a 64th of the zone and at least
 * LUF_RELEASE_PAGES; 0 if the default is 0.
 */
unsigned long luf_pool_scaled_cap(unsigned long managed_pages, int scale)
{
	unsigned long cap = luf_pool_default_cap(managed_pages);

	if (!cap)
		return 0;
	if (scale < 0)
		return max(cap >> -scale, LUF_RELEASE_PAGES);
	return min(cap << scale, managed_pages / LARGEST_SHARE);
}

/**
 * luf_pool_init - initialise an empty pool with a cap of 0
 * @pool: the pool
 *
 * Context: any.
 */
void luf_pool_init(struct luf_pool *pool)
{
	spin_lock_init(&pool->lock);
	luf_part_init(&pool->pending);
	luf_part_init(&pool->flushed);
	INIT_LIST_HEAD(&pool->transits);
	pool->tickets = 0;
	pool->pages = 0;
	pool->cap = 0;
	pool->batch = 0;
	pool->blocked = 0;
}

/**
 * luf_pool_resize - set the size of a pool
 * @pool: the pool
 * @cap: upper bound of its pages, 0 for none
 * @batch: number of pending pages from which on a flush pays, 0 for fifteen
 *	sixteenths of @cap
 *
 * Context: process; takes the lock of the pool.
 */
void luf_pool_resize(struct luf_pool *pool, unsigned long cap,
		     unsigned long batch)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->cap, cap);
	WRITE_ONCE(pool->batch, batch ? min(batch, cap) :
					cap - cap / SMALL_SHARE);
}

/* The only place that changes the number of pages. */
static void luf_pool_count(struct luf_pool *pool, unsigned long pages)
{
	WRITE_ONCE(pool->pages, pages);
}

/**
 * luf_pool_add - add pending folios to a pool
 * @pool: pool of the zone of the folios
 * @part: the folios; empty on success
 * @now: current time in jiffies
 *
 * Context: process; takes the lock of the pool.
 * Return: false if the pool is blocked or @part does not fit.
 */
bool luf_pool_add(struct luf_pool *pool, struct luf_part *part,
		  unsigned long now)
{
	guard(spinlock)(&pool->lock);
	if (pool->blocked || pool->pages + part->nr_pages > pool->cap)
		return false;
	part->since = now;
	luf_pool_count(pool, pool->pages + part->nr_pages);
	luf_part_join(&pool->pending, part);
	return true;
}

static void luf_transit_begin(struct luf_pool *pool,
			      struct luf_transit *transit)
{
	transit->ticket = ++pool->tickets;
	list_add_tail(&transit->node, &pool->transits);
}

/**
 * luf_pool_begin_flush - move all pending folios to a transit
 * @pool: the pool
 * @transit: the transit; the caller flushes its batches
 *
 * Concurrent flushes never get the same folio.
 *
 * Context: process; takes the lock of the pool.
 * Return: false if no folio is pending; then do not call luf_pool_end_flush().
 */
bool luf_pool_begin_flush(struct luf_pool *pool, struct luf_transit *transit)
{
	luf_part_init(&transit->part);
	guard(spinlock)(&pool->lock);
	if (!pool->pending.nr_pages)
		return false;
	luf_part_join(&transit->part, &pool->pending);
	luf_transit_begin(pool, transit);
	return true;
}

/* A waiter checks the list under the lock once it is on the wait queue. */
static void luf_pool_wake(struct luf_pool *pool)
{
	/* Pairs with the barrier of prepare_to_wait_event(). */
	smp_mb();
	wake_up_var(&pool->transits);
}

/**
 * luf_pool_end_flush - return flushed folios to their pool
 * @pool: the pool
 * @transit: transit of luf_pool_begin_flush()
 *
 * Context: process; takes the lock of the pool.
 * Return: false if the pool is blocked: then the caller frees the folios and calls
 * luf_pool_end_transit().
 */
bool luf_pool_end_flush(struct luf_pool *pool, struct luf_transit *transit)
{
	bool joins;

	spin_lock(&pool->lock);
	joins = !pool->blocked;
	if (joins) {
		luf_part_join(&pool->flushed, &transit->part);
		list_del(&transit->node);
	}
	spin_unlock(&pool->lock);
	if (joins)
		luf_pool_wake(pool);
	return joins;
}

/**
 * luf_pool_take - move flushed folios to a transit, oldest first
 * @pool: the pool
 * @most: number of pages after which to stop
 * @transit: the transit; the caller frees the folios and calls
 *	luf_pool_end_transit()
 *
 * Context: process; takes the lock of the pool.
 * Return: number of pages; if it is 0, do not call luf_pool_end_transit().
 */
unsigned long luf_pool_take(struct luf_pool *pool, unsigned long most,
			    struct luf_transit *transit)
{
	struct luf_part *flushed = &pool->flushed, *part = &transit->part;
	struct folio *folio, *next;

	if (!most || !READ_ONCE(flushed->nr_pages))
		return 0;
	luf_part_init(part);
	guard(spinlock)(&pool->lock);
	list_for_each_entry_safe(folio, next, &flushed->folios, lru) {
		if (part->nr_pages >= most)
			break;
		list_move_tail(&folio->lru, &part->folios);
		part->nr_pages += folio_nr_pages(folio);
	}
	WRITE_ONCE(flushed->nr_pages, flushed->nr_pages - part->nr_pages);
	if (part->nr_pages)
		luf_transit_begin(pool, transit);
	return part->nr_pages;
}

/**
 * luf_pool_end_transit - end a transit after its folios were freed
 * @pool: the pool
 * @transit: the transit; its part still has the number of pages
 *
 * Context: process; takes the lock of the pool.
 */
void luf_pool_end_transit(struct luf_pool *pool, struct luf_transit *transit)
{
	spin_lock(&pool->lock);
	luf_pool_count(pool, pool->pages - transit->part.nr_pages);
	list_del(&transit->node);
	spin_unlock(&pool->lock);
	luf_pool_wake(pool);
}

/**
 * luf_pool_is_settled - whether old transits have ended
 * @pool: the pool
 * @ticket: ticket of the newest transit to check
 *
 * Context: process; takes the lock of the pool.
 * Return: true if no transit up to @ticket is left.
 */
bool luf_pool_is_settled(struct luf_pool *pool, u64 ticket)
{
	guard(spinlock)(&pool->lock);
	return list_empty(&pool->transits) ||
	       list_first_entry(&pool->transits, struct luf_transit,
				node)->ticket > ticket;
}

/**
 * luf_pool_wait - wait for the current transits of a pool
 * @pool: the pool
 *
 * Does not wait for transits that begin later.
 *
 * Context: may sleep. The caller has no transit of its own, and holds no lock that
 * flushing or freeing takes.
 */
void luf_pool_wait(struct luf_pool *pool)
{
	u64 ticket;

	spin_lock(&pool->lock);
	ticket = pool->tickets;
	spin_unlock(&pool->lock);
	wait_var_event(&pool->transits, luf_pool_is_settled(pool, ticket));
}

/**
 * luf_pool_block - refuse further pages
 * @pool: the pool
 *
 * Pages that are in the pool stay. Calls nest; luf_pool_unblock() ends each.
 *
 * Context: process; takes the lock of the pool.
 */
void luf_pool_block(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->blocked, pool->blocked + 1);
}

/**
 * luf_pool_unblock - end luf_pool_block()
 * @pool: the pool
 *
 * Context: process; takes the lock of the pool.
 */
void luf_pool_unblock(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->blocked, pool->blocked - 1);
}

/**
 * luf_pool_pages - number of pages of a pool
 * @pool: the pool
 *
 * Context: any.
 * Return: the number, including pages that are being flushed or released.
 */
unsigned long luf_pool_pages(const struct luf_pool *pool)
{
	return READ_ONCE(pool->pages);
}

/**
 * luf_pool_missing - number of pages that a pool can still hold
 * @pool: the pool
 *
 * Background reclaim continues until the pool is full as well.
 *
 * Context: any.
 * Return: number of pages.
 */
unsigned long luf_pool_missing(const struct luf_pool *pool)
{
	unsigned long cap = READ_ONCE(pool->cap);

	return cap - min(cap, luf_pool_pages(pool));
}

/**
 * luf_pool_excess - number of pages to release before others are added
 * @pool: the pool
 * @more: number of pages to add
 *
 * Context: any.
 * Return: number of pages, 0 if there is room.
 */
unsigned long luf_pool_excess(const struct luf_pool *pool, unsigned long more)
{
	unsigned long pages = luf_pool_pages(pool) + more;

	return pages - min(pages, READ_ONCE(pool->cap));
}

/**
 * luf_pool_is_full - whether a pool is full enough to flush it
 * @pool: the pool
 *
 * The rest of the cap is left for pages that are added during the flush.
 *
 * Context: any.
 * Return: true from fifteen sixteenths of the cap on.
 */
bool luf_pool_is_full(const struct luf_pool *pool)
{
	unsigned long cap = READ_ONCE(pool->cap);

	return READ_ONCE(pool->pending.nr_pages) >= cap - cap / SMALL_SHARE;
}

/**
 * luf_part_is_old - whether a part may have folios that are too old
 * @part: pending or flushed folios of a pool
 * @limit: latest time of addition of an old folio, in jiffies
 *
 * Context: any.
 * Return: true if @part is not empty and has a folio that may be that old.
 */
bool luf_part_is_old(const struct luf_part *part, unsigned long limit)
{
	return READ_ONCE(part->nr_pages) &&
	       time_before_eq(READ_ONCE(part->since), limit);
}

/**
 * luf_pool_pays - whether enough pages are pending for a flush to pay
 * @pool: the pool
 * @order: order of the allocation
 *
 * Context: any.
 * Return: true if at least a batch is pending. For a large block, which needs free
 * pages to merge, true if as many pages are pending as the block has.
 */
bool luf_pool_pays(const struct luf_pool *pool, unsigned int order)
{
	unsigned long pending = READ_ONCE(pool->pending.nr_pages);
	unsigned long enough = READ_ONCE(pool->batch);

	if (order > PAGE_ALLOC_COSTLY_ORDER)
		enough = min(enough, 1UL << order);
	return pending && pending >= enough;
}

/**
 * luf_pool_direct_pages - number of pages that direct reclaim frees before a flush
 * @pool: pool that it fills
 *
 * Context: any.
 * Return: the number from which on a flush pays, at most LUF_DIRECT_PAGES, because
 * one allocation or page fault waits for it.
 */
unsigned long luf_pool_direct_pages(const struct luf_pool *pool)
{
	return min(READ_ONCE(pool->batch), LUF_DIRECT_PAGES);
}

/**
 * luf_pool_is_urgent - whether to flush although it does not pay yet
 * @pool: the pool
 * @free_pages: number of free pages of the zone
 * @min_mark: min watermark of the zone
 *
 * Context: any.
 * Return: true if less than half of @min_mark is free, where direct reclaim is
 * throttled and atomic allocations fail, and the flush would release pages.
 */
bool luf_pool_is_urgent(const struct luf_pool *pool, unsigned long free_pages,
			unsigned long min_mark)
{
	unsigned long pending = READ_ONCE(pool->pending.nr_pages);

	return free_pages < min_mark / 2 && pending &&
	       pending >= READ_ONCE(pool->cap) / SMALL_SHARE;
}

/**
 * luf_pool_owes - number of pages that kswapd releases to the allocator
 * @pool: the pool
 * @free_pages: number of free pages of the zone
 * @low_mark: low watermark of the zone
 * @high_mark: watermark of the zone that kswapd reclaims to
 *
 * kswapd releases no more: the rest is available at once when it wakes again.
 *
 * Context: any.
 * Return: number of pages, 0 if enough is free.
 */
unsigned long luf_pool_owes(const struct luf_pool *pool,
			    unsigned long free_pages, unsigned long low_mark,
			    unsigned long high_mark)
{
	unsigned long goal = max(high_mark, low_mark + READ_ONCE(pool->cap) / 4);

	return goal - min(goal, free_pages);
}
