/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_LUF_POOL_H
#define _MM_LUF_POOL_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* What a task that allocates releases at most: nobody pays for everybody. */
#define LUF_RELEASE_PAGES	64UL

/**
 * enum luf_mark - the watermark that an allocation failed at
 * @LUF_MARK_LOW: the low one; kswapd may still be in time
 * @LUF_MARK_MIN: the min one; what follows is reclaim
 */
enum luf_mark {
	LUF_MARK_LOW,
	LUF_MARK_MIN,
};

/**
 * struct luf_pool - a zone's pages between reclaim and the allocator
 * @lock: a leaf
 * @folios: in the order in which they came, frozen and uncharged, by their lru;
 *	their index is the generation of the batch that covers them
 * @nr_pages: of all of them
 * @cap: as many pages as it should hold
 */
struct luf_pool {
	spinlock_t lock; /* of all below */
	struct list_head folios;
	unsigned long nr_pages;
	unsigned long cap;
};

unsigned long luf_pool_default_cap(unsigned long managed_pages);
void luf_pool_init(struct luf_pool *pool, unsigned long managed_pages);
void luf_pool_add(struct luf_pool *pool, struct folio *folio, u64 generation);
unsigned long luf_pool_take(struct luf_pool *pool, unsigned long most,
			    struct list_head *taken);
u64 luf_pool_first_generation(struct luf_pool *pool);
u64 luf_pool_last_generation(struct luf_pool *pool);
bool luf_pool_is_full(const struct luf_pool *pool);
bool luf_pool_drains_at(const struct luf_pool *pool, enum luf_mark mark);
bool luf_pool_flushes_early(const struct luf_pool *pool,
			    unsigned long free_pages, unsigned long low_mark);

/**
 * luf_generation_is_flushed - whether pages of a batch may be given away
 * @generation: the batch's
 *
 * For who uses this file to define.
 */
bool luf_generation_is_flushed(u64 generation);

#endif /* _MM_LUF_POOL_H */
