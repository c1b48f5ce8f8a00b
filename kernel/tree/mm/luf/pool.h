/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_LUF_POOL_H
#define _MM_LUF_POOL_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* Most pages that one allocating task releases, to bound its latency. */
#define LUF_RELEASE_PAGES	64UL
/* Most pages that one task reclaims before it flushes. */
#define LUF_DIRECT_PAGES	512UL
/*
 * Fraction of the cap that justifies a flush where a task waits for memory, and that
 * stays free when a full pool is flushed.
 */
#define LUF_SMALL_SHARE		16
/* Longest wait for room, in jiffies: as long as reclaim waits for writeback. */
#define LUF_ROOM_TIMEOUT	(HZ / 10)
/* Limit of the exponent that scales pool sizes by powers of two. */
#define LUF_LARGEST_SCALE	6

/**
 * struct luf_part - folios and the batches that cover their translations
 * @folios: the folios, frozen and uncharged, linked by lru
 * @nr_pages: number of pages of all folios
 * @since: when the first folio was added to the pool, in jiffies
 * @first: the oldest generation that covers a folio, 0 if there is none
 * @last: the newest generation that covers a folio
 */
struct luf_part {
	struct list_head folios;
	unsigned long nr_pages;
	unsigned long since;
	u64 first;
	u64 last;
};

/**
 * struct luf_transit - pages that one task flushes or frees
 * @node: node in the list of the pool, oldest first
 * @ticket: unique number
 * @part: the folios
 *
 * Lives on the stack of the task. The pool still counts the pages.
 */
struct luf_transit {
	struct list_head node;
	u64 ticket;
	struct luf_part part;
};

/**
 * struct luf_pool - pages of a zone between reclaim and the allocator
 * @lock: protects all fields; a leaf lock, taken with interrupts enabled
 * @pending: folios that wait for their flush
 * @flushed: folios that wait for their release
 * @transits: folios that tasks are flushing or releasing
 * @tickets: last ticket that was given
 * @overdue: newest ticket of transits that are not waited for
 * @pages: number of pages in @pending, @flushed and @transits
 * @cap: upper bound of @pages
 * @batch: number of pending pages from which on a flush pays
 * @blocked: the pool accepts no pages while this is not 0
 */
struct luf_pool {
	spinlock_t lock; /* of all below */
	struct luf_part pending;
	struct luf_part flushed;
	struct list_head transits;
	u64 tickets;
	u64 overdue;
	unsigned long pages;
	unsigned long cap;
	unsigned long batch;
	unsigned int blocked;
};

/* pool.c */

void luf_part_init(struct luf_part *part);
void luf_part_cover(struct luf_part *part, u64 first, u64 last);
void luf_part_join(struct luf_part *part, struct luf_part *other);

void luf_pool_init(struct luf_pool *pool);
void luf_pool_resize(struct luf_pool *pool, unsigned long cap,
		     unsigned long batch);
bool luf_pool_add(struct luf_pool *pool, struct luf_part *part,
		  unsigned long now);
bool luf_pool_begin_flush(struct luf_pool *pool, struct luf_transit *transit);
bool luf_pool_end_flush(struct luf_pool *pool, struct luf_transit *transit);
unsigned long luf_pool_take(struct luf_pool *pool, unsigned long most,
			    struct luf_transit *transit);
void luf_pool_end_transit(struct luf_pool *pool, struct luf_transit *transit);
bool luf_pool_is_settled(struct luf_pool *pool, u64 ticket);
void luf_pool_wait(struct luf_pool *pool);
bool luf_pool_must_wait(struct luf_pool *pool, unsigned long more);
bool luf_pool_wait_for_room(struct luf_pool *pool, unsigned long more, long *left);
void luf_pool_block(struct luf_pool *pool);
void luf_pool_unblock(struct luf_pool *pool);
unsigned long luf_pool_pages(const struct luf_pool *pool);

/* policy.c */

unsigned long luf_pool_default_cap(unsigned long managed_pages);
unsigned long luf_pool_scaled_cap(unsigned long managed_pages, int scale);
unsigned long luf_pool_missing(const struct luf_pool *pool);
unsigned long luf_pool_excess(const struct luf_pool *pool, unsigned long more);
bool luf_pool_is_full(const struct luf_pool *pool);
bool luf_part_is_old(const struct luf_part *part, unsigned long limit);
bool luf_pool_pays(const struct luf_pool *pool, unsigned int order);
unsigned long luf_pool_direct_pages(const struct luf_pool *pool);
bool luf_pool_is_urgent(const struct luf_pool *pool, unsigned long free_pages,
			unsigned long min_mark);
unsigned long luf_pool_owes(const struct luf_pool *pool,
			    unsigned long free_pages, unsigned long low_mark,
			    unsigned long high_mark);

#endif /* _MM_LUF_POOL_H */
