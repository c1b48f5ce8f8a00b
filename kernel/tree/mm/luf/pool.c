// SPDX-License-Identifier: GPL-2.0-only
/*
 * A zone's pool of pages that were unmapped lazily: reclaim puts them in, a
 * flush makes them clean, and whoever needs memory releases them, a few at a
 * time. Flushed and released are two states.
 *
 * Pool pages are not free pages: no watermark counts them. What the pool costs
 * is its cap, once: no page is added beyond it, whatever state the others are in.
 *
 * A page that is being flushed or released is in a transit, on no list that a
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

/* 99 % fewer flushes than one for 31 pages need about 3,100 pages a drain. */
#define DEFAULT_PAGES		4096UL
#define DEFAULT_SHARE		1000UL
#define LARGEST_SHARE		64UL
/*
 * This part of the cap is worth a flush where a task waits for memory, and is left
 * free when a full pool is flushed.
 */
#define SMALL_SHARE		16

/**
 * luf_part_init - nothing
 * @part: the part
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
 * luf_part_cover - more batches cover it
 * @part: the part
 * @first: the oldest of them, 0 if there is none
 * @last: the newest of them
 */
void luf_part_cover(struct luf_part *part, u64 first, u64 last)
{
	if (first && (!part->first || first < part->first))
		part->first = first;
	part->last = max(part->last, last);
}

/**
 * luf_part_join - one out of two
 * @part: what it goes to, behind what is there
 * @other: what is empty then
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
 * luf_pool_default_cap - how many pages a zone's pool holds
 * @managed_pages: the zone's size
 *
 * Return: 4,096 pages or a thousandth of the zone, the larger of them, but never
 * more than one page of 64; 0 where that is less than what one task releases.
 */
unsigned long luf_pool_default_cap(unsigned long managed_pages)
{
	unsigned long most = managed_pages / LARGEST_SHARE;

	if (most < LUF_RELEASE_PAGES)
		return 0;
	return min(most, max(DEFAULT_PAGES, managed_pages / DEFAULT_SHARE));
}

/**
 * luf_pool_scaled_cap - how many pages a zone's pool holds that is not as usual
 * @managed_pages: the zone's size
 * @scale: as many times twice as large, or half as large if it is below 0
 *
 * Return: the number of pages, never more than one page of 64, and never less than
 * what one task releases; 0 where the usual pool holds none.
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
 * luf_pool_init - an empty pool that holds nothing yet
 * @pool: the pool
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
 * luf_pool_resize - how much it holds from now on
 * @pool: the pool
 * @cap: the most pages that it may hold, 0 for none
 * @batch: from how many on a flush pays, 0 for fifteen sixteenths of @cap
 */
void luf_pool_resize(struct luf_pool *pool, unsigned long cap,
		     unsigned long batch)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->cap, cap);
	WRITE_ONCE(pool->batch, batch ? min(batch, cap) :
					cap - cap / SMALL_SHARE);
}

/* What the pool holds changes only here. */
static void luf_pool_count(struct luf_pool *pool, unsigned long pages)
{
	WRITE_ONCE(pool->pages, pages);
}

/**
 * luf_pool_add - take what reclaim or migration is done with
 * @pool: of the folios' zone
 * @part: the folios; empty then if they were taken
 * @now: in jiffies
 *
 * Return: false if nothing may wait in here, or not as much.
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
 * luf_pool_begin_flush - take out everything that waits for its flush
 * @pool: the pool
 * @transit: where it goes; the caller flushes its batches
 *
 * Two that flush at the same time never take the same folio.
 *
 * Return: false if nothing waits: then there is nothing to end.
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

/* A waiter looks at the list under the lock once it is on the wait queue. */
static void luf_pool_wake(struct luf_pool *pool)
{
	/* Pairs with the barrier of prepare_to_wait_event(). */
	smp_mb();
	wake_up_var(&pool->transits);
}

/**
 * luf_pool_end_flush - what was taken out is flushed
 * @pool: the pool
 * @transit: what luf_pool_begin_flush() gave
 *
 * Return: false if nothing may wait in here: then the caller gives the folios to
 * the allocator and calls luf_pool_end_transit().
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
 * luf_pool_take - take out what is flushed, the oldest first
 * @pool: the pool
 * @most: stop when so many pages are out
 * @transit: where the folios go; the caller gives them to the allocator and calls
 *	luf_pool_end_transit()
 *
 * Return: the number of pages, 0 if there are none: then there is nothing to end.
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
 * luf_pool_end_transit - the allocator has what was taken out
 * @pool: the pool
 * @transit: what was taken out; its part still says how many pages it had
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
 * @ticket: of the newest transit that is concerned
 *
 * Return: true if none up to that one is left.
 */
bool luf_pool_is_settled(struct luf_pool *pool, u64 ticket)
{
	guard(spinlock)(&pool->lock);
	return list_empty(&pool->transits) ||
	       list_first_entry(&pool->transits, struct luf_transit,
				node)->ticket > ticket;
}

/**
 * luf_pool_wait - wait until what is being flushed or released now no longer is
 * @pool: the pool
 *
 * Does not wait for what begins later. May sleep. The caller has no transit of
 * its own, and holds no lock that is taken by who flushes or frees.
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
 * luf_pool_block - from here on nothing is added
 * @pool: the pool
 *
 * What is there stays until somebody takes it out. Nests; luf_pool_unblock() ends
 * it.
 */
void luf_pool_block(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->blocked, pool->blocked + 1);
}

/**
 * luf_pool_unblock - pages may be added again
 * @pool: the pool
 */
void luf_pool_unblock(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->blocked, pool->blocked - 1);
}

/**
 * luf_pool_pages - what is neither used nor free
 * @pool: the pool
 *
 * Return: the number of pages, those included that are being flushed or released.
 */
unsigned long luf_pool_pages(const struct luf_pool *pool)
{
	return READ_ONCE(pool->pages);
}

/**
 * luf_pool_missing - how many pages the pool could still hold
 * @pool: the pool
 *
 * Reclaim in the background goes on until they are there as well.
 *
 * Return: the number of pages.
 */
unsigned long luf_pool_missing(const struct luf_pool *pool)
{
	unsigned long cap = READ_ONCE(pool->cap);

	return cap - min(cap, luf_pool_pages(pool));
}

/**
 * luf_pool_excess - how many pages have to leave
 * @pool: the pool
 * @more: as many pages are to be added
 *
 * Return: the number of pages, 0 if there is room.
 */
unsigned long luf_pool_excess(const struct luf_pool *pool, unsigned long more)
{
	unsigned long pages = luf_pool_pages(pool) + more;

	return pages - min(pages, READ_ONCE(pool->cap));
}

/**
 * luf_pool_is_full - whether as much waits for its flush as should
 * @pool: the pool
 *
 * The rest of the cap is for what others add during the flush.
 *
 * Return: true from fifteen sixteenths of the cap on.
 */
bool luf_pool_is_full(const struct luf_pool *pool)
{
	unsigned long cap = READ_ONCE(pool->cap);

	return READ_ONCE(pool->pending.nr_pages) >= cap - cap / SMALL_SHARE;
}

/**
 * luf_part_is_old - whether something has been in the pool for too long
 * @part: pending or flushed
 * @limit: what came then, in jiffies, or before
 *
 * Return: true if there is something, and it may have come that early.
 */
bool luf_part_is_old(const struct luf_part *part, unsigned long limit)
{
	return READ_ONCE(part->nr_pages) &&
	       time_before_eq(READ_ONCE(part->since), limit);
}

/**
 * luf_pool_pays - whether so much waits that a flush costs little a page
 * @pool: the pool
 * @order: of what is asked for
 *
 * Return: true from the batch's size on; for a large block, which free pages have
 * to merge to, already from as many pages on as it has.
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
 * luf_pool_direct_pages - what one task reclaims before it flushes
 * @pool: the pool that it fills
 *
 * Return: from how many pages on a task that reclaims for itself flushes what
 * waits: where a flush pays, but never more than LUF_DIRECT_PAGES, because one
 * allocation or page fault lasts that long.
 */
unsigned long luf_pool_direct_pages(const struct luf_pool *pool)
{
	return min(READ_ONCE(pool->batch), LUF_DIRECT_PAGES);
}

/**
 * luf_pool_is_urgent - whether to flush though it does not pay yet
 * @pool: the pool
 * @free_pages: of the zone
 * @min_mark: of the zone
 *
 * Return: true if so little memory is left that who reclaims is made to wait
 * and who may not sleep gets nothing, and the flush would bring some.
 */
bool luf_pool_is_urgent(const struct luf_pool *pool, unsigned long free_pages,
			unsigned long min_mark)
{
	unsigned long pending = READ_ONCE(pool->pending.nr_pages);

	return free_pages < min_mark / 2 && pending &&
	       pending >= READ_ONCE(pool->cap) / SMALL_SHARE;
}

/**
 * luf_pool_owes - how many pages the allocator lacks
 * @pool: the pool
 * @free_pages: of the zone
 * @low_mark: of the zone
 * @high_mark: of the zone, that to which kswapd goes on
 *
 * kswapd releases no more: what is beyond is there at once when it wakes again.
 *
 * Return: the number of pages, 0 where enough is free.
 */
unsigned long luf_pool_owes(const struct luf_pool *pool,
			    unsigned long free_pages, unsigned long low_mark,
			    unsigned long high_mark)
{
	unsigned long goal = max(high_mark, low_mark + READ_ONCE(pool->cap) / 4);

	return goal - min(goal, free_pages);
}
