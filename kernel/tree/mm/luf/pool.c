// SPDX-License-Identifier: GPL-2.0-only
/*
 * A zone's pool of pages that were unmapped lazily: reclaim puts them in, and
 * they go on to the allocator when their batch is flushed.
 *
 * Pool pages are not free pages: no watermark counts them. What the pool costs
 * is its cap, once.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "pool.h"

/* 99 % fewer flushes than one for 31 pages need about 3,100 pages a drain. */
#define DEFAULT_PAGES		4096UL
#define DEFAULT_SHARE		1000UL
#define LARGEST_SHARE		64UL

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
 * luf_pool_init - an empty pool of the default size
 * @pool: the pool
 * @managed_pages: the zone's size
 */
void luf_pool_init(struct luf_pool *pool, unsigned long managed_pages)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->folios);
	pool->nr_pages = 0;
	pool->cap = luf_pool_default_cap(managed_pages);
}

/**
 * luf_pool_add - take a folio that reclaim is done with
 * @pool: of the folio's zone
 * @folio: frozen, uncharged, unlocked, on no list
 * @generation: of the newest batch that covers its translations
 */
void luf_pool_add(struct luf_pool *pool, struct folio *folio, u64 generation)
{
	folio->index = generation;
	guard(spinlock)(&pool->lock);
	list_add_tail(&folio->lru, &pool->folios);
	WRITE_ONCE(pool->nr_pages, pool->nr_pages + folio_nr_pages(folio));
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
	struct folio *folio, *next;
	unsigned long pages = 0;
	u64 flushed = 0;

	guard(spinlock)(&pool->lock);
	list_for_each_entry_safe(folio, next, &pool->folios, lru) {
		if (pages >= most)
			break;
		/* Neighbours are mostly of one batch. */
		if (folio->index != flushed &&
		    !luf_generation_is_flushed(folio->index))
			break;
		flushed = folio->index;
		list_move_tail(&folio->lru, taken);
		pages += folio_nr_pages(folio);
	}
	WRITE_ONCE(pool->nr_pages, pool->nr_pages - pages);
	return pages;
}

/**
 * luf_pool_first_generation - the batch that the oldest folio waits for
 * @pool: the pool
 *
 * Return: its generation, 0 if the pool is empty.
 */
u64 luf_pool_first_generation(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	if (list_empty(&pool->folios))
		return 0;
	return list_first_entry(&pool->folios, struct folio, lru)->index;
}

/**
 * luf_pool_last_generation - the batch that the newest folio waits for
 * @pool: the pool
 *
 * Return: its generation, 0 if the pool is empty.
 */
u64 luf_pool_last_generation(struct luf_pool *pool)
{
	guard(spinlock)(&pool->lock);
	if (list_empty(&pool->folios))
		return 0;
	return list_last_entry(&pool->folios, struct folio, lru)->index;
}

/**
 * luf_pool_is_full - whether it holds as much as it should
 * @pool: the pool
 *
 * Return: true from the cap on.
 */
bool luf_pool_is_full(const struct luf_pool *pool)
{
	return READ_ONCE(pool->nr_pages) >= READ_ONCE(pool->cap);
}

/**
 * luf_pool_drains_at - whether an allocation that failed drains the pool
 * @pool: the pool
 * @mark: where it failed
 *
 * At the low mark it goes on and wakes kswapd, unless so much is in the pool
 * that the flush pays; at the min mark anything is better than to reclaim.
 *
 * Return: true if it does.
 */
bool luf_pool_drains_at(const struct luf_pool *pool, enum luf_mark mark)
{
	unsigned long pages = READ_ONCE(pool->nr_pages);

	if (mark == LUF_MARK_MIN)
		return pages;
	return pages && pages >= READ_ONCE(pool->cap) / 4 * 3;
}

/**
 * luf_pool_flushes_early - whether kswapd flushes before anybody has to wait
 * @pool: the pool
 * @free_pages: of the zone
 * @low_mark: of the zone
 *
 * Return: true if free memory comes near to the low mark.
 */
bool luf_pool_flushes_early(const struct luf_pool *pool,
			    unsigned long free_pages, unsigned long low_mark)
{
	return READ_ONCE(pool->nr_pages) &&
	       free_pages < low_mark + READ_ONCE(pool->cap) / 4;
}
