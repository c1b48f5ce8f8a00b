// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flush of lazy unmaps, release of the pages to the allocator, and the gates that
 * wait for flushes. The order of the steps is given in include/linux/luf.h.
 */

#include <linux/export.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/sched/signal.h>
#include <linux/sched/sysctl.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/workqueue.h>
/* Needs the headers above. */
#include <linux/compaction.h>
#include <asm/tlbflush.h>

#include "../econ/hooks.h"
#include "../internal.h"
#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/luf.h>

DEFINE_STATIC_KEY_FALSE(luf_gate_key);
/* Used by get_write_access(), an inline function that all modules may call. */
EXPORT_SYMBOL(luf_gate_key);
DEFINE_PER_CPU(u64, luf_flushed_since);
DEFINE_PER_CPU(unsigned long[LUF_COUNTS], luf_counts);

/* Separate from the task's own batch, which may be in use. */
static DEFINE_PER_CPU(struct arch_tlbflush_unmap_batch, luf_cpus);

atomic_long_t luf_drain_sizes[TOLLFREE_HISTOGRAM_BUCKETS];
u64 luf_longest_drain_ns;

/* Tunables; 0 means the default, except for the age. */
unsigned int luf_max_age_ms = 30 * MSEC_PER_SEC;
unsigned long luf_pool_max_pages;
unsigned long luf_direct_batch_pages;

/* Flushing */

u64 __luf_sequence(void)
{
	/* Read before the tlb_gen to compare with. */
	return smp_load_acquire(&luf_batches.sequence);
}

static bool luf_cpu_has_flushed(unsigned int cpu, u64 completed)
{
	return READ_ONCE(per_cpu(luf_flushed_since, cpu)) >= completed;
}

unsigned int luf_flush_cpus(const struct cpumask *cpus, u64 completed)
{
	struct arch_tlbflush_unmap_batch *own = &get_cpu_var(luf_cpus);
	unsigned int cpu, interrupted = 0, spared = 0;

	cpumask_clear(&own->cpumask);
	for_each_cpu(cpu, cpus) {
		if (luf_cpu_has_flushed(cpu, completed)) {
			spared++;
		} else {
			cpumask_set_cpu(cpu, &own->cpumask);
			interrupted++;
		}
	}
	luf_count_many(LUF_CPUS_INTERRUPTED, interrupted);
	luf_count_many(LUF_CPUS_SPARED, spared);
	if (interrupted)
		arch_tlbbatch_flush(own);
	put_cpu_var(luf_cpus);
	return interrupted;
}

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

/* Pools */

static struct luf_pool *luf_zone_pool(const struct zone *zone)
{
	return READ_ONCE(zone->luf_pool);
}

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

static unsigned long luf_release_flushed(struct zone *zone, unsigned long most)
{
	struct luf_transit transit;
	unsigned long pages = luf_pool_take(luf_zone_pool(zone), most, &transit);

	if (pages)
		luf_free_transit(zone, &transit);
	return pages;
}

static void luf_flush_zone_pool(struct zone *zone, enum luf_reason reason)
{
	struct luf_pool *pool = luf_zone_pool(zone);
	struct luf_transit transit;
	struct econ_watch watch;

	if (!luf_pool_begin_flush(pool, &transit))
		return;
	luf_note_drain_size(transit.part.nr_pages);
	econ_watch_begin(&watch);
	econ_pool_flushed(&watch, luf_flush_part(&transit.part, reason));
	luf_debug_delay();
	/* A blocked pool keeps no pages: free them at once. */
	if (!luf_pool_end_flush(pool, &transit))
		luf_free_transit(zone, &transit);
}

static unsigned long luf_drain_zone(struct zone *zone, enum luf_reason reason)
{
	if (!luf_zone_pool(zone))
		return 0;
	luf_flush_zone_pool(zone, reason);
	return luf_release_flushed(zone, ULONG_MAX);
}

/*
 * Drain a pool. On return all pages that were in it are free, including those that
 * other tasks were flushing or releasing.
 */
static void luf_drain_zone_wait(struct zone *zone, enum luf_reason reason)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!pool)
		return;
	luf_flush_zone_pool(zone, reason);
	luf_pool_wait(pool);
	/* Pages that other tasks flushed are in the pool, or in their transits. */
	luf_release_flushed(zone, ULONG_MAX);
	luf_pool_wait(pool);
}

static void luf_age_pools(struct work_struct *work);
static DECLARE_DELAYED_WORK(luf_ager, luf_age_pools);

static unsigned long luf_max_age(void)
{
	return msecs_to_jiffies(READ_ONCE(luf_max_age_ms));
}

static void luf_rearm_ager(void)
{
	queue_delayed_work(system_unbound_wq, &luf_ager, luf_max_age());
}

/**
 * luf_age_changed - apply a new value of max_age_ms
 *
 * Pages that already wait are checked after the new time.
 *
 * Context: process.
 */
void luf_age_changed(void)
{
	mod_delayed_work(system_unbound_wq, &luf_ager, luf_max_age());
}

static unsigned long luf_zone_free_pages(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES);
}

static bool luf_zone_is_urgent(struct zone *zone)
{
	return luf_pool_is_urgent(luf_zone_pool(zone), luf_zone_free_pages(zone),
				  min_wmark_pages(zone));
}

/* Watermark that kswapd reclaims to: with memory tiers, includes room for promotions. */
static unsigned long luf_kswapd_goal(const struct zone *zone)
{
	if (sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING)
		return promo_wmark_pages(zone);
	return high_wmark_pages(zone);
}

static unsigned long luf_zone_owes(struct zone *zone)
{
	return luf_pool_owes(luf_zone_pool(zone), luf_zone_free_pages(zone),
			     low_wmark_pages(zone), luf_kswapd_goal(zone));
}

/* kswapd flushes when no flushed page is left, before a task has to wait. */
static void luf_balance_zone(struct zone *zone)
{
	luf_release_flushed(zone, luf_zone_owes(zone));
	if (luf_zone_is_urgent(zone) ||
	    (luf_zone_owes(zone) && luf_pool_pays(luf_zone_pool(zone), 0))) {
		luf_flush_zone_pool(zone, LUF_FOR_KSWAPD);
		luf_release_flushed(zone, luf_zone_owes(zone));
	}
}

/* Release flushed pages first; then flush and release pending ones. */
static void luf_make_room(struct zone *zone, unsigned long pages)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (pages > READ_ONCE(pool->cap))
		return;
	luf_release_flushed(zone, luf_pool_excess(pool, pages));
	if (luf_pool_excess(pool, pages)) {
		luf_flush_zone_pool(zone, LUF_FOR_CAP);
		luf_release_flushed(zone, luf_pool_excess(pool, pages));
	}
}

/* Count first: other tasks may release the pages as soon as they are added. */
static bool luf_pool_gets(struct zone *zone, struct luf_part *part)
{
	unsigned long pages = part->nr_pages;

	if (!luf_zone_takes(zone))
		return false;
	luf_make_room(zone, pages);
	mod_zone_page_state(zone, NR_LUF_PAGES, pages);
	if (luf_pool_add(luf_zone_pool(zone), part, jiffies))
		return true;
	mod_zone_page_state(zone, NR_LUF_PAGES, -(long)pages);
	return false;
}

/**
 * luf_pool_put - put folios into the pool of their zone
 * @zone: the zone
 * @part: the folios; empty on return
 *
 * Flushes and frees them if the pool does not accept them. Flushed folios are kept
 * for allocations that will soon lack memory. While kswapd sleeps and the zone is
 * above its high watermark they are freed instead.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_pool_put(struct zone *zone, struct luf_part *part)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!luf_pool_gets(zone, part)) {
		luf_flush_part(part, LUF_FOR_CAP);
		luf_free_folios(&part->folios);
		luf_part_init(part);
		return;
	}
	if (current_is_kswapd())
		luf_balance_zone(zone);
	if (luf_pool_is_full(pool)) {
		luf_flush_zone_pool(zone, LUF_FOR_CAP);
		luf_release_flushed(zone, current_is_kswapd() ? luf_zone_owes(zone) :
								LUF_RELEASE_PAGES);
	}
	if (!current_is_kswapd() && luf_zone_free_pages(zone) > luf_kswapd_goal(zone))
		luf_release_flushed(zone, ULONG_MAX);
	/* Pairs with the worker: luf_ager is not pending before it checks for pages. */
	smp_mb();
	if (!delayed_work_pending(&luf_ager))
		luf_rearm_ager();
}

/*
 * No page stays in a pool for longer than twice the age: younger pages are checked
 * again after the age. A flush in progress keeps the age of its pages.
 */
static void luf_age_pools(struct work_struct *work)
{
	struct zone *zone;
	bool more = false;

	for_each_populated_zone(zone) {
		struct luf_pool *pool = luf_zone_pool(zone);
		unsigned long limit;

		if (!pool || !luf_pool_pages(pool))
			continue;
		luf_pool_wait(pool);
		limit = jiffies - luf_max_age();
		if (luf_part_is_old(&pool->pending, limit))
			luf_drain_zone_wait(zone, LUF_FOR_AGE);
		else if (luf_part_is_old(&pool->flushed, limit))
			luf_release_flushed(zone, ULONG_MAX);
		if (luf_pool_pages(pool))
			more = true;
	}
	if (more)
		luf_rearm_ager();
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
		luf_drain_zone_wait(zone, reason);
	luf_drain(&luf_batches, READ_ONCE(luf_batches.newest));
}

/**
 * luf_drain_all - drain all pools before an allocation fails
 *
 * The static branch is in here and not at the call: there it would change the code
 * layout of the allocator, and each allocation would cost more.
 *
 * Context: may sleep.
 */
void luf_drain_all(void)
{
	if (static_branch_unlikely(&luf_gate_key))
		luf_drain_everything(LUF_FOR_DRAIN);
}

static unsigned long luf_zone_pages(const struct zone *zone)
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

/* Allocation and reclaim */

/* A large block needs all free pages to merge. */
static unsigned long luf_release_share(unsigned int order)
{
	return order > PAGE_ALLOC_COSTLY_ORDER ? ULONG_MAX : LUF_RELEASE_PAGES;
}

bool __luf_refill(struct zone *zone, unsigned int order, unsigned long mark,
		  int highest_zoneidx, unsigned int alloc_flags,
		  gfp_t gfp_mask)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	/* Between the low and the min watermark kswapd does it. */
	if (!pool || !gfpflags_allow_blocking(gfp_mask) ||
	    (alloc_flags & ALLOC_WMARK_MASK) != ALLOC_WMARK_MIN ||
	    !luf_pool_pages(pool))
		return false;
	/* kswapd refills the pool before its last page is released. */
	wakeup_kswapd(zone, gfp_mask, order, highest_zoneidx);
	if (luf_release_flushed(zone, luf_release_share(order)) &&
	    zone_watermark_ok(zone, order, mark, highest_zoneidx, alloc_flags))
		return true;
	if (!luf_pool_pays(pool, order))
		return false;
	luf_flush_zone_pool(zone, LUF_FOR_ALLOCATION);
	luf_release_flushed(zone, luf_release_share(order));
	return zone_watermark_ok(zone, order, mark, highest_zoneidx,
				 alloc_flags);
}

/* Release up to @most pages of each zone. With @must, flush even if it does not pay. */
static unsigned long luf_release_from_zones(struct zonelist *zonelist, unsigned int order,
					    int highest_zoneidx, nodemask_t *nodemask,
					    unsigned long most, bool must)
{
	unsigned long pages = 0;
	struct zoneref *at;
	struct zone *zone;

	for_each_zone_zonelist_nodemask(zone, at, zonelist, highest_zoneidx,
					nodemask) {
		struct luf_pool *pool = luf_zone_pool(zone);
		unsigned long found;

		if (!pool)
			continue;
		found = luf_release_flushed(zone, most);
		if (found < most &&
		    ((must && pages + found < most) ||
		     luf_pool_pays(pool, order) || luf_zone_is_urgent(zone))) {
			luf_flush_zone_pool(zone, LUF_FOR_RECLAIM);
			found += luf_release_flushed(zone, most - found);
		}
		pages += found;
	}
	return pages;
}

/* State of the zones that direct reclaim may use. */
struct luf_zonelist_state {
	bool has_free_pages; /* one of them meets its min watermark */
	bool has_room; /* one of the pools is not full */
	unsigned long batch; /* number of reclaimed pages after which a flush is due */
};

static struct luf_zonelist_state luf_read_zonelist_state(struct zonelist *zonelist,
							 int highest_zoneidx,
							 nodemask_t *nodemask)
{
	struct luf_zonelist_state seen = {};
	struct zoneref *at;
	struct zone *zone;

	for_each_zone_zonelist_nodemask(zone, at, zonelist, highest_zoneidx,
					nodemask) {
		const struct luf_pool *pool = luf_zone_pool(zone);

		if (zone_watermark_ok(zone, 0, min_wmark_pages(zone),
				      highest_zoneidx, 0))
			seen.has_free_pages = true;
		if (!pool)
			continue;
		if (luf_pool_missing(pool))
			seen.has_room = true;
		seen.batch = max(seen.batch, luf_pool_direct_pages(pool));
	}
	return seen;
}

/*
 * If flushed pages exist, take some and refill the pool by as much reclaim as the
 * task would do without one. Otherwise reclaim until a flush pays, but at most
 * LUF_DIRECT_PAGES, then flush the pending pages. If reclaim makes no progress,
 * release everything.
 */
unsigned long __luf_try_to_free_pages(struct zonelist *zonelist, int order,
				      gfp_t gfp_mask, nodemask_t *nodemask)
{
	int highest = gfp_zone(gfp_mask);
	struct luf_zonelist_state seen = luf_read_zonelist_state(zonelist, highest, nodemask);
	unsigned long progress, pages;
	bool is_due;

	progress = luf_release_from_zones(zonelist, order, highest, nodemask,
					  luf_release_share(order), false);
	if (progress && order == 0) {
		/* Have the next pages ready before the last one of these is used. */
		if (seen.has_room)
			try_to_free_pages(zonelist, order, gfp_mask, nodemask);
		return progress;
	}
	do {
		pages = try_to_free_pages(zonelist, order, gfp_mask, nodemask);
		progress += pages;
		is_due = progress >= seen.batch;
		if (luf_release_from_zones(zonelist, order, highest, nodemask,
					   luf_release_share(order), is_due) ||
		    fatal_signal_pending(current))
			return progress;
		seen = luf_read_zonelist_state(zonelist, highest, nodemask);
		if (seen.has_free_pages)
			return progress;
	} while (pages && !is_due);
	return progress + luf_release_from_zones(zonelist, order, highest, nodemask,
						 ULONG_MAX, true);
}

static bool luf_zone_has_block(struct zone *zone, int order, int highest_zoneidx)
{
	return zone_watermark_ok(zone, order, high_wmark_pages(zone),
				 highest_zoneidx, 0);
}

/* Whether kswapd reclaims for a large block that only a drain can provide. */
static bool luf_kswapd_lacks_block(struct zone *zone, unsigned int order,
				   int highest_zoneidx)
{
	return order > PAGE_ALLOC_COSTLY_ORDER &&
	       luf_pool_pays(luf_zone_pool(zone), order) &&
	       !luf_zone_has_block(zone, order, highest_zoneidx);
}

void __luf_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx)
{
	int i;

	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = pgdat->node_zones + i;

		if (!managed_zone(zone) || !luf_zone_pool(zone))
			continue;
		/* The previous round of reclaim may have freed almost nothing. */
		if (luf_zone_free_pages(zone) < min_wmark_pages(zone) / 2 ||
		    luf_kswapd_lacks_block(zone, order, highest_zoneidx))
			luf_drain_zone(zone, LUF_FOR_KSWAPD);
		else
			luf_balance_zone(zone);
	}
}

/* More pages than a zone has. The sum with a watermark does not overflow. */
#define MORE_THAN_THERE_IS	(LONG_MAX / 2)

/*
 * A small zone without a pool must not put kswapd to sleep while programs allocate
 * from the pool of a larger zone. Zones that kswapd does not reclaim from miss no
 * pages: it cannot fill their pools, and would reclaim the small zone over and over.
 * Neither does a node from which the last round reclaimed nothing: kswapd gives up
 * after sixteen such rounds.
 */
unsigned long __luf_missing_pages(const struct zone *zone, int highest_zoneidx)
{
	const struct zone *other = zone->zone_pgdat->node_zones;
	int i;

	if (READ_ONCE(zone->zone_pgdat->kswapd_failures))
		return 0;
	if (luf_zone_cap(zone))
		return luf_pool_missing(luf_zone_pool(zone));
	for (i = 0; i <= highest_zoneidx; i++)
		if (luf_zone_pool(&other[i]) && luf_pool_missing(luf_zone_pool(&other[i])))
			return MORE_THAN_THERE_IS;
	return 0;
}

/* Compaction */

/* Number of free pages that compaction_suitable() asks for. */
static unsigned long luf_compaction_needs(const struct zone *zone, int order)
{
	return low_wmark_pages(zone) + compact_gap(order);
}

void __luf_begin_compaction(struct zone *zone, int order)
{
	unsigned long pages = luf_zone_free_pages(zone) + luf_zone_pages(zone);

	/* Compaction does not begin if there is a block, or too little memory for one. */
	if (order < 0 || (pages >= luf_compaction_needs(zone, order) &&
			  !luf_zone_has_block(zone, order, zone_idx(zone))))
		luf_drain_zone(zone, LUF_FOR_COMPACTION);
}

void __luf_prepare_compaction(struct zone *zone, int order)
{
	if (luf_zone_free_pages(zone) < luf_compaction_needs(zone, order))
		__luf_begin_compaction(zone, order);
}

/* Isolation */

void __luf_block_zone(struct zone *zone)
{
	struct luf_pool *pool = luf_zone_pool(zone);

	if (!pool)
		return;
	luf_pool_block(pool);
	luf_drain_zone_wait(zone, LUF_FOR_DRAIN);
}

void __luf_unblock_zone(struct zone *zone)
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
	__luf_block_zone(zone);
	/* Only pages that have left the per-CPU lists are known to be free. */
	if (!page_count(page))
		drain_all_pages(zone);
}

/* Gates */

static bool luf_generation_is_drained(u64 generation)
{
	return luf_is_drained(&luf_batches, generation);
}

void __luf_gate_writer(struct address_space *mapping)
{
	u64 generation = atomic64_read(&mapping->luf_generation);
	u64 begin;
	unsigned int cpus;

	if (luf_generation_is_drained(generation))
		return;
	might_sleep();
	begin = ktime_get_ns();
	cpus = luf_drain(&luf_batches, generation);
	luf_count(LUF_WRITERS_WAITED);
	luf_count_many(LUF_WRITERS_NS, ktime_get_ns() - begin);
	if (cpus)
		luf_count(LUF_FLUSHES_WRITER);
	trace_luf_flush(LUF_FOR_WRITER, 0, generation, 0, cpus);
}
EXPORT_SYMBOL(__luf_gate_writer);

void __luf_gate_remote_writer(struct address_space *mapping)
{
	mapping_set_writers_remote(mapping);
	/* Pairs with the barrier in luf_publish_unmap(), as that of i_writecount. */
	smp_mb__after_atomic();
	luf_gate_writer(mapping);
}
EXPORT_SYMBOL_GPL(__luf_gate_remote_writer);

/* Out of line, so that a gate without pending unmaps needs no stack frame. */

static noinline void luf_flush_mm(struct mm_struct *mm, s64 unmaps)
{
	if (luf_generation_is_drained(atomic64_read(&mm->luf_generation)))
		return;
	flush_tlb_mm(mm);
	luf_count(LUF_FLUSHES_MM);
	trace_luf_flush(LUF_FOR_MM, 0, atomic64_read(&mm->luf_generation), 0,
			cpumask_weight(mm_cpumask(mm)));
	/* Fails after a concurrent unmap: then the bit stays set. */
	atomic64_cmpxchg(&mm->luf_unmaps, unmaps, unmaps & ~1);
}

void __luf_gate_mm(struct mm_struct *mm)
{
	s64 unmaps = atomic64_read(&mm->luf_unmaps);

	if (unmaps & 1)
		luf_flush_mm(mm, unmaps);
}

static noinline void luf_flush_pte_table(struct mm_struct *mm, unsigned long address,
					 struct ptdesc *table)
{
	u64 generation = table->pt_index;

	table->pt_index = 0;
	if (luf_generation_is_drained(generation))
		return;
	address &= PMD_MASK;
	flush_tlb_mm_range(mm, address, address + PMD_SIZE, PAGE_SHIFT, false);
	luf_count(LUF_FLUSHES_PTE);
	trace_luf_flush(LUF_FOR_PTE, 0, generation, 0,
			cpumask_weight(mm_cpumask(mm)));
}

/*
 * Flush all that the table maps, so that its other entries need no flush. The lock
 * of the table is held: it is not stamped concurrently.
 */
void __luf_gate_pte(struct mm_struct *mm, unsigned long address,
		    const void *slot)
{
	struct ptdesc *table = virt_to_ptdesc(slot);

	if (table->pt_index)
		luf_flush_pte_table(mm, address, table);
}

/* Sizes */

/* Binary logarithm of the scale of pool sizes. */
static int luf_pool_scale;

/**
 * luf_resize_pools - update the sizes of all pools
 *
 * Called after memory hotplug, or when a limit or the scale was changed.
 *
 * Context: may sleep; no page-table lock is held.
 */
void luf_resize_pools(void)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		struct luf_pool *pool = luf_zone_pool(zone);
		unsigned long cap =
			luf_pool_scaled_cap(zone_managed_pages(zone),
					    READ_ONCE(luf_pool_scale));

		if (!pool)
			continue;
		if (luf_pool_max_pages)
			cap = min(cap ? ULONG_MAX : 0, luf_pool_max_pages);
		luf_pool_resize(pool, cap, luf_direct_batch_pages);
		if (luf_pool_is_full(pool) || luf_pool_excess(pool, 0))
			luf_drain_zone_wait(zone, LUF_FOR_CAP);
	}
}

/**
 * luf_scale_pools - change the scale of all pools
 * @by: 1 to double the sizes, -1 to halve them, 0 for the default
 *
 * Does not change sizes that were set by pool_max_pages.
 *
 * Context: may sleep; callers are serialised.
 */
void luf_scale_pools(int by)
{
	int scale = by ? clamp(luf_pool_scale + by, -LUF_LARGEST_SCALE,
			       LUF_LARGEST_SCALE) : 0;

	if (scale == luf_pool_scale)
		return;
	WRITE_ONCE(luf_pool_scale, scale);
	luf_resize_pools();
}

/**
 * luf_node_cap - upper bound of the pools of a node
 * @nid: the node
 *
 * Context: any.
 * Return: number of pages.
 */
unsigned long luf_node_cap(int nid)
{
	const struct zone *zones = NODE_DATA(nid)->node_zones;
	unsigned long pages = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		pages += luf_zone_cap(&zones[i]);
	return pages;
}

static void luf_alloc_pools(void)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		struct luf_pool *pool;

		if (luf_zone_pool(zone))
			continue;
		/* Without a pool no page of the zone is unmapped lazily. */
		pool = kmalloc_node(sizeof(*pool), GFP_KERNEL,
				    zone_to_nid(zone));
		if (!pool)
			continue;
		luf_pool_init(pool);
		/* Publish the initialised pool. */
		smp_store_release(&zone->luf_pool, pool);
	}
	luf_resize_pools();
}

static int luf_memory_notify(struct notifier_block *block, unsigned long action,
			     void *arg)
{
	if (action == MEM_ONLINE || action == MEM_OFFLINE)
		luf_alloc_pools();
	return NOTIFY_OK;
}

static int __init luf_pools_init(void)
{
	luf_alloc_pools();
	hotplug_memory_notifier(luf_memory_notify, DEFAULT_CALLBACK_PRI);
	return 0;
}
subsys_initcall(luf_pools_init);
