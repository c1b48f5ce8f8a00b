// SPDX-License-Identifier: GPL-2.0-only
/*
 * A zone's pool of pages that were unmapped lazily: reclaim puts them in, a
 * flush makes them clean, and whoever needs memory releases them, a few at a
 * time. Flushed and released are two states.
 *
 * Pool pages are not free pages: no watermark counts them. What the pool costs
 * is its cap, once.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/spinlock.h>

#include "pool.h"

/* 99 % fewer flushes than one for 31 pages need about 3,100 pages a drain. */
#define DEFAULT_PAGES		4096UL
#define DEFAULT_SHARE		1000UL
#define LARGEST_SHARE		64UL
/* Where somebody waits for memory, a flush for one part of the cap in so many. */
#define SMALL_SHARE		16

/**
 * luf_part_init - nothing
 * @part: the part
 */
void luf_part_init(struct luf_part *part)
{
	INIT_LIST_HEAD(&part->folios);
	part->nr_pages = 0;
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
	pool->cap = 0;
	pool->batch = 0;
	pool->blocked = 0;
}

/**
 * luf_pool_resize - how much it holds from now on
 * @pool: the pool
 * @cap: the most pages that wait, 0 for none
 * @batch: from how many on a flush pays, 0 for fifteen sixteenths of @cap
 */
void luf_pool_resize(struct luf_pool *pool, unsigned long cap,
		     unsigned long batch)
{
	guard(spinlock)(&pool->lock);
	WRITE_ONCE(pool->cap, cap);
	WRITE_ONCE(pool->batch, batch ? min(batch, cap) : cap - cap / 16);
}

/**
 * luf_pool_add - take what reclaim or migration is done with
 * @pool: of the folios' zone
 * @part: the folios; empty then if they were taken
 * @now: in jiffies
 *
 * Return: false if nothing may wait in here.
 */
bool luf_pool_add(struct luf_pool *pool, struct luf_part *part,
		  unsigned long now)
{
	guard(spinlock)(&pool->lock);
	if (pool->blocked || !pool->cap)
		return false;
	if (!pool->pending.nr_pages)
		pool->since = now;
	luf_part_join(&pool->pending, part);
	return true;
}

/**
 * luf_pool_begin_flush - take out everything that waits for its flush
 * @pool: the pool
 * @part: where it goes; the caller flushes its batches
 *
 * Two that flush at the same time never take the same folio.
 */
void luf_pool_begin_flush(struct luf_pool *pool, struct luf_part *part)
{
	luf_part_init(part);
	guard(spinlock)(&pool->lock);
	luf_part_join(part, &pool->pending);
}

/**
 * luf_pool_end_flush - what was taken out is flushed
 * @pool: the pool
 * @part: what luf_pool_begin_flush() gave
 */
void luf_pool_end_flush(struct luf_pool *pool, struct luf_part *part)
{
	guard(spinlock)(&pool->lock);
	luf_part_join(&pool->flushed, part);
}

/**
 * luf_pool_take - take out what is flushed, the oldest first
 * @pool: the pool
 * @most: stop when so many pages are out
 * @taken: where the folios go
 *
 * Return: the number of pages.
 */
unsigned long luf_pool_take(struct luf_pool *pool, unsigned long most,
			    struct list_head *taken)
{
	struct luf_part *flushed = &pool->flushed;
	struct folio *folio, *next;
	unsigned long pages = 0;

	if (!most || !READ_ONCE(flushed->nr_pages))
		return 0;
	guard(spinlock)(&pool->lock);
	list_for_each_entry_safe(folio, next, &flushed->folios, lru) {
		if (pages >= most)
			break;
		list_move_tail(&folio->lru, taken);
		pages += folio_nr_pages(folio);
	}
	WRITE_ONCE(flushed->nr_pages, flushed->nr_pages - pages);
	return pages;
}

/**
 * luf_pool_pages - what is neither used nor free
 * @pool: the pool
 *
 * Return: the number of pages, those that are just being flushed left out.
 */
unsigned long luf_pool_pages(const struct luf_pool *pool)
{
	return READ_ONCE(pool->pending.nr_pages) +
	       READ_ONCE(pool->flushed.nr_pages);
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
 * luf_pool_is_full - whether as much waits as may
 * @pool: the pool
 * @is_kswapd: who asks reclaims more at a time, and looks himself when to flush
 *
 * Return: true from the cap on, for kswapd from twice the cap on.
 */
bool luf_pool_is_full(const struct luf_pool *pool, bool is_kswapd)
{
	return READ_ONCE(pool->pending.nr_pages) >=
	       READ_ONCE(pool->cap) * (is_kswapd ? 2 : 1);
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
