// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy of a pool: how large it is, when a flush pays, and how many pages to release.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>

#include "pool.h"

/* 99 % fewer flushes than with one for 31 pages need about 3,100 pages per drain. */
#define DEFAULT_PAGES		4096UL
#define DEFAULT_SHARE		1000UL
#define LARGEST_SHARE		64UL

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

	return READ_ONCE(pool->pending.nr_pages) >= cap - cap / LUF_SMALL_SHARE;
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
	       pending >= READ_ONCE(pool->cap) / LUF_SMALL_SHARE;
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
