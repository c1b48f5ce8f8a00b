/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the files of mm/luf. */
#ifndef _MM_LUF_INTERNAL_H
#define _MM_LUF_INTERNAL_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/srcu.h>

#include "../tollfree/histogram.h"
#include "batch.h"
#include "hooks.h"
#include "pool.h"

/*
 * Event counters. Those from LUF_DEFERRED on follow enum luf_path, those from
 * LUF_FLUSHES on follow enum luf_reason. Their names are in sysfs.c.
 */
enum luf_count {
	/* pages added to a pool, by the path that unmapped them */
	LUF_DEFERRED,
	LUF_DEFERRED_DIRECT,
	LUF_DEFERRED_DEMOTION,
	LUF_DEFERRED_PROMOTION,
	LUF_DEFERRED_COMPACTION,
	/* folios that may not be unmapped lazily, by reason */
	LUF_REFUSED_KIND,
	LUF_REFUSED_MAPPING,
	LUF_REFUSED_WRITER,
	LUF_REFUSED_ZONE,
	/* entries that may not be unmapped lazily, by reason */
	LUF_REFUSED_WRITABLE,
	LUF_REFUSED_LOCAL,
	LUF_REFUSED_LATE_WRITER,
	LUF_REFUSED_BATCH,
	/* entries of eligible folios, unmapped lazily or not */
	LUF_UNMAPPED_READ_ONLY,
	LUF_UNMAPPED_WRITABLE,
	/* flushes, by reason */
	LUF_FLUSHES,
	LUF_FLUSHES_KSWAPD,
	LUF_FLUSHES_RECLAIM,
	LUF_FLUSHES_CAP,
	LUF_FLUSHES_AGE,
	LUF_FLUSHES_DRAIN,
	LUF_FLUSHES_WRITER,
	LUF_FLUSHES_COMPACTION,
	LUF_FLUSHES_KEPT,
	LUF_FLUSHES_MM,
	LUF_FLUSHES_PTE,
	/* CPUs in the masks of flushed batches */
	LUF_CPUS_INTERRUPTED,
	LUF_CPUS_SPARED,
	/* flushed pages, by whether an interrupt was needed */
	LUF_RELEASED_FLUSHED,
	LUF_RELEASED_ELIDED,
	/* lists of pages that waited for room in a pool */
	LUF_ROOM_WAITED,
	/* writers that waited for a flush, and for how long */
	LUF_WRITERS_WAITED,
	LUF_WRITERS_NS,
	LUF_COUNTS,
};

/* Reason of a flush. */
enum luf_reason {
	LUF_FOR_ALLOCATION,
	LUF_FOR_KSWAPD,
	LUF_FOR_RECLAIM,
	LUF_FOR_CAP,
	LUF_FOR_AGE,
	LUF_FOR_DRAIN,
	LUF_FOR_WRITER,
	LUF_FOR_COMPACTION,
	LUF_FOR_KEPT,
	LUF_FOR_MM,
	LUF_FOR_PTE,
	LUF_REASONS,
};

DECLARE_PER_CPU(unsigned long[LUF_COUNTS], luf_counts);

static_assert(LUF_DEFERRED + LUF_COMPACTION == LUF_DEFERRED_COMPACTION);
static_assert(LUF_FLUSHES + LUF_FOR_PTE == LUF_FLUSHES_PTE);

/**
 * luf_count_many - add to an event counter
 * @what: the counter
 * @n: number of events
 *
 * Context: any.
 */
static inline void luf_count_many(enum luf_count what, unsigned long n)
{
	this_cpu_add(luf_counts[what], n);
}

/**
 * luf_count - count an event
 * @what: the counter
 *
 * Context: any.
 */
static inline void luf_count(enum luf_count what)
{
	luf_count_many(what, 1);
}

extern struct srcu_struct luf_runs;

extern atomic_long_t luf_drain_sizes[TOLLFREE_HISTOGRAM_BUCKETS];
extern u64 luf_longest_drain_ns;
extern unsigned int luf_max_age_ms;
extern unsigned long luf_pool_max_pages;
extern unsigned long luf_direct_batch_pages;

#ifdef CONFIG_LUF_DEBUG
extern int luf_debug_delay_ms;

void luf_debug_begin(struct luf_run *run);
void luf_debug_unmap(struct luf_run *run, struct page *page, u64 generation);
void luf_debug_settle(struct luf_run *run);
void luf_debug_end(struct luf_run *run);
void luf_debug_defer(struct folio *folio, struct luf_run *run);
void luf_debug_forget(const struct folio *folio);
void luf_debug_release(struct folio *folio);
bool luf_debug_waits(struct page *page);
void luf_debug_delay(void);
#else
static inline void luf_debug_begin(struct luf_run *run)
{
}

static inline void luf_debug_unmap(struct luf_run *run, struct page *page,
				   u64 generation)
{
}

static inline void luf_debug_settle(struct luf_run *run)
{
}

static inline void luf_debug_end(struct luf_run *run)
{
}

static inline void luf_debug_defer(struct folio *folio, struct luf_run *run)
{
}

static inline void luf_debug_forget(const struct folio *folio)
{
}

static inline void luf_debug_release(struct folio *folio)
{
}

static inline bool luf_debug_waits(struct page *page)
{
	return false;
}

static inline void luf_debug_delay(void)
{
}
#endif

/**
 * luf_zone_pool - pool of a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: the pool, or NULL if it could not be allocated.
 */
static inline struct luf_pool *luf_zone_pool(const struct zone *zone)
{
	return READ_ONCE(zone->luf_pool);
}

/**
 * luf_zone_free_pages - number of free pages of a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: the number; pages of the pool are not free.
 */
static inline unsigned long luf_zone_free_pages(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES);
}

/* zone.c */

bool luf_zone_takes(const struct zone *zone);
unsigned long luf_zone_cap(const struct zone *zone);
unsigned long luf_zone_pages(const struct zone *zone);
bool luf_zone_is_urgent(struct zone *zone);
unsigned long luf_zone_goal(const struct zone *zone);
unsigned long luf_zone_owes(struct zone *zone);
void luf_free_folios(struct list_head *folios);
unsigned long luf_zone_release(struct zone *zone, unsigned long most);
bool luf_zone_wait_for_room(struct zone *zone, unsigned long more, long *left);
unsigned int luf_flush_part(struct luf_part *part, enum luf_reason reason);
void luf_zone_flush(struct zone *zone, enum luf_reason reason);
void luf_zone_drain(struct zone *zone, enum luf_reason reason);
void luf_zone_drain_wait(struct zone *zone, enum luf_reason reason);
void luf_drain_everything(enum luf_reason reason);
void luf_zone_balance(struct zone *zone);

/* fill.c */

void luf_zone_put(struct zone *zone, struct luf_part *part);
void luf_age_changed(void);

/* size.c */

void luf_resize_pools(void);

#endif /* _MM_LUF_INTERNAL_H */
