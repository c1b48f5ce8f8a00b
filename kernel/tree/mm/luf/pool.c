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
#include <linux/spinlock.h>
#include <linux/wait_bit.h>

#include "pool.h"

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
	pool->overdue = 0;
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
					cap - cap / LUF_SMALL_SHARE);
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

static u64 luf_pool_newest_ticket(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	return pool->tickets;
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
	u64 ticket = luf_pool_newest_ticket(pool);

	wait_var_event(&pool->transits, luf_pool_is_settled(pool, ticket));
}

/**
 * luf_pool_must_wait - whether only the end of a transit makes room soon
 * @pool: the pool
 * @more: number of pages to add
 *
 * Context: process; takes the lock of the pool.
 * Return: true if the pages do not fit, no flushed page can be released for them, and
 * a transit has not ended that is not overdue.
 */
bool luf_pool_must_wait(struct luf_pool *pool, unsigned long more)
{
	guard(spinlock)(&pool->lock);
	return luf_pool_excess(pool, more) && !pool->flushed.nr_pages &&
	       !list_empty(&pool->transits) &&
	       list_last_entry(&pool->transits, struct luf_transit,
			       node)->ticket > pool->overdue;
}

/**
 * luf_pool_wait_for_room - wait for a transit that makes room, for a limited time
 * @pool: the pool
 * @more: number of pages to add
 * @left: jiffies that the caller may still wait; updated
 *
 * A flush by the caller would interrupt the same CPUs, and end later than the one in
 * progress. A task that was preempted may end it much later: after one wait in vain
 * no task waits for that transit again.
 *
 * Context: may sleep. The caller has no transit of its own, and holds no lock that
 * flushing or freeing takes.
 * Return: whether it waited.
 */
bool luf_pool_wait_for_room(struct luf_pool *pool, unsigned long more, long *left)
{
	u64 ticket;

	if (!*left || !luf_pool_must_wait(pool, more))
		return false;
	ticket = luf_pool_newest_ticket(pool);
	*left = wait_var_event_timeout(&pool->transits, !luf_pool_must_wait(pool, more),
				       *left);
	if (*left)
		return true;
	guard(spinlock)(&pool->lock);
	pool->overdue = max(pool->overdue, ticket);
	return true;
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
