// SPDX-License-Identifier: GPL-2.0-only
/* Tests of code that depends on the kernel's own atomics, masks and lists. */

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <asm/tlb.h>

#include "../internal.h"
#include "batch.h"
#include "hooks.h"
#include "internal.h"
#include "pool.h"

#define LUF_TEST_ADDRESS	PMD_SIZE

static void luf_test_drain_includes_older_batches(struct kunit *test)
{
	struct luf_batches *all = kunit_kzalloc(test, sizeof(*all), GFP_KERNEL);
	struct luf_stream first = {}, second = {};
	struct luf_batch *batch;

	KUNIT_ASSERT_NOT_NULL(test, all);
	spin_lock_init(&all->lock);
	batch = luf_batch_get(all, &first);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	KUNIT_EXPECT_EQ(test, batch->generation, 1ULL);
	luf_batch_put(batch);
	batch = luf_batch_get(all, &second);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	KUNIT_EXPECT_EQ(test, batch->generation, 2ULL);
	luf_batch_put(batch);

	/* No batch has a CPU, so none is interrupted. */
	KUNIT_EXPECT_EQ(test, luf_flush_batch(all, 2), 0U);
	KUNIT_EXPECT_TRUE(test, luf_is_flushed(all, 2));
	KUNIT_EXPECT_FALSE(test, luf_is_drained(all, 2));
	KUNIT_EXPECT_EQ(test, luf_drain(all, 1), 0U);
	KUNIT_EXPECT_TRUE(test, luf_is_drained(all, 2));
	KUNIT_EXPECT_PTR_EQ(test, first.open, NULL);
	KUNIT_EXPECT_PTR_EQ(test, second.open, NULL);
}

static void luf_test_add_cpus_of_pending_batches(struct kunit *test)
{
	struct luf_batches *all = kunit_kzalloc(test, sizeof(*all), GFP_KERNEL);
	struct cpumask *cpus = kunit_kzalloc(test, sizeof(*cpus), GFP_KERNEL);
	struct luf_stream stream = {};
	struct luf_batch *batch;

	KUNIT_ASSERT_NOT_NULL(test, all);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	spin_lock_init(&all->lock);
	batch = luf_batch_get(all, &stream);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	cpumask_set_cpu(0, &batch->cpus);
	luf_batch_put(batch);
	KUNIT_EXPECT_FALSE(test, luf_add_cpus(all, 2, 9, cpus));
	KUNIT_EXPECT_TRUE(test, cpumask_empty(cpus));
	KUNIT_EXPECT_TRUE(test, luf_add_cpus(all, 1, 1, cpus));
	KUNIT_EXPECT_TRUE(test, cpumask_test_cpu(0, cpus));
	/* Flushes this CPU, which holds no translation. */
	luf_drain(all, 1);
	KUNIT_EXPECT_FALSE(test, luf_add_cpus(all, 1, 1, cpus));
}

static void luf_test_folio_leaves_after_flush(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	struct luf_pool pool;
	struct luf_transit transit;
	struct luf_part part;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	luf_pool_init(&pool);
	luf_pool_resize(&pool, luf_pool_default_cap(1UL << 20), 0);
	luf_part_init(&part);
	list_add(&folio->lru, &part.folios);
	part.nr_pages = 1;
	luf_part_cover(&part, 3, 5);
	KUNIT_EXPECT_TRUE(test, luf_pool_add(&pool, &part, jiffies));
	KUNIT_EXPECT_EQ(test, luf_pool_take(&pool, 9, &transit), 0UL);
	KUNIT_ASSERT_TRUE(test, luf_pool_begin_flush(&pool, &transit));
	KUNIT_EXPECT_EQ(test, transit.part.first, 3ULL);
	KUNIT_EXPECT_EQ(test, transit.part.last, 5ULL);
	KUNIT_EXPECT_TRUE(test, luf_pool_end_flush(&pool, &transit));
	KUNIT_ASSERT_EQ(test, luf_pool_take(&pool, 9, &transit), 1UL);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&transit.part.folios));
	list_del(&folio->lru);
	luf_pool_end_transit(&pool, &transit);
	KUNIT_EXPECT_EQ(test, luf_pool_pages(&pool), 0UL);
	luf_pool_wait(&pool);
	folio_put(folio);
}

/* Reclaim from one zone cannot fill the pools of other zones, and would never end. */
static void luf_test_unreachable_zone_misses_nothing(struct kunit *test)
{
	struct zone *zones = NODE_DATA(first_online_node)->node_zones;
	struct zone *small = &zones[0], *large = NULL;
	int i;

	for (i = 1; i < MAX_NR_ZONES; i++)
		if (luf_zone_cap(&zones[i]))
			large = &zones[i];
	if (!large || luf_zone_cap(small))
		kunit_skip(test, "no small zone without a pool beside a large one");
	KUNIT_EXPECT_EQ(test, __luf_missing_pages(small, 0), 0UL);
	KUNIT_EXPECT_GT(test, __luf_missing_pages(small, zone_idx(large)),
			zone_managed_pages(large));
}

enum { LUF_TEST_FOLIOS = 3 };

/* A compaction run that unmaps entries of an mm that no task runs. */
struct luf_replay {
	struct mm_struct *mm;
	struct vm_area_struct vma;
	struct luf_run run;
	struct folio *folios[LUF_TEST_FOLIOS];
};

static pte_t *luf_replay_lock(struct kunit *test, struct luf_replay *replay, int i,
			      spinlock_t **lock)
{
	pte_t *ptep = get_locked_pte(replay->mm, LUF_TEST_ADDRESS + i * PAGE_SIZE, lock);

	if (!ptep)
		KUNIT_FAIL(test, "no memory for a page table");
	return ptep;
}

static void luf_replay_map(struct kunit *test, struct luf_replay *replay, int i)
{
	spinlock_t *lock; /* of the table */
	pte_t *ptep = luf_replay_lock(test, replay, i, &lock);

	if (!ptep)
		return;
	set_pte_at(replay->mm, LUF_TEST_ADDRESS + i * PAGE_SIZE, ptep,
		   mk_pte(folio_page(replay->folios[i], 0), PAGE_READONLY));
	pte_unmap_unlock(ptep, lock);
}

static void luf_replay_unmap(struct kunit *test, struct luf_replay *replay, int i)
{
	struct folio *folio = replay->folios[i];
	spinlock_t *lock; /* of the table */
	pte_t *ptep, old;
	bool done;

	KUNIT_EXPECT_EQ(test, __luf_flags(&replay->run, folio), TTU_LAZY);
	ptep = luf_replay_lock(test, replay, i, &lock);
	if (!ptep)
		return;
	done = __luf_unmap(folio, &replay->vma, LUF_TEST_ADDRESS + i * PAGE_SIZE, ptep,
			   &old);
	pte_unmap_unlock(ptep, lock);
	KUNIT_EXPECT_TRUE(test, done);
}

/* The mm ran on no other CPU: there is nothing to flush. */
static void luf_replay_unmap_eagerly(struct kunit *test, struct luf_replay *replay, int i)
{
	spinlock_t *lock; /* of the table */
	pte_t *ptep = luf_replay_lock(test, replay, i, &lock);

	if (!ptep)
		return;
	ptep_get_and_clear(replay->mm, LUF_TEST_ADDRESS + i * PAGE_SIZE, ptep);
	pte_unmap_unlock(ptep, lock);
}

/* The folio was moved. Another reference to the source may still exist. */
static bool luf_replay_take(struct luf_replay *replay, int i, bool is_held)
{
	struct folio *folio = replay->folios[i];
	bool taken;

	if (is_held)
		folio_get(folio);
	__luf_migrated(&replay->run, folio);
	taken = __luf_take_source(&replay->run, folio);
	if (is_held)
		folio_put(folio);
	return taken;
}

static void luf_replay_begin(struct kunit *test, struct luf_replay *replay)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	int i;

	if (other >= nr_cpu_ids)
		kunit_skip(test, "one CPU: nothing is unmapped lazily");
	if (!static_key_enabled(&luf_key))
		kunit_skip(test, "lazy unmap flush is switched off");
	replay->mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, replay->mm);
	replay->vma.vm_mm = replay->mm;
	/* Pretend that the mm runs there, and here. */
	cpumask_set_cpu(other, mm_cpumask(replay->mm));
	cpumask_set_cpu(raw_smp_processor_id(), mm_cpumask(replay->mm));
	for (i = 0; i < LUF_TEST_FOLIOS; i++) {
		struct folio *folio = folio_alloc(GFP_KERNEL, 0);

		KUNIT_ASSERT_NOT_NULL(test, folio);
		/* Anonymous memory; the test has the only reference. */
		folio->mapping = (void *)PAGE_MAPPING_ANON;
		__folio_set_swapbacked(folio);
		replay->folios[i] = folio;
		luf_replay_map(test, replay, i);
	}
	__luf_run_begin(&replay->run, LUF_COMPACTION);
	for (i = 0; i < LUF_TEST_FOLIOS; i++)
		luf_replay_unmap(test, replay, i);
}

static void luf_replay_end(struct luf_replay *replay)
{
	struct mmu_gather tlb;

	__luf_run_end(&replay->run);
	mmap_write_lock(replay->mm);
	tlb_gather_mmu(&tlb, replay->mm);
	free_pgd_range(&tlb, LUF_TEST_ADDRESS, LUF_TEST_ADDRESS + PMD_SIZE, 0, 0);
	tlb_finish_mmu(&tlb);
	mmap_write_unlock(replay->mm);
	mmput(replay->mm);
}

static unsigned long luf_replay_flushes(void)
{
	unsigned long sum = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(luf_counts[LUF_FLUSHES_KEPT], cpu);
	return sum;
}

/*
 * Three sources are unmapped. The first one has another reference, the second one is
 * taken, the third one cannot be moved yet, is mapped again and unmapped again; then
 * it has another reference as well. A holder of a reference may free the folio at
 * once.
 */
static void luf_test_held_source_is_flushed(struct kunit *test)
{
	struct luf_replay *replay = kunit_kzalloc(test, sizeof(*replay), GFP_KERNEL);
	unsigned long before;

	KUNIT_ASSERT_NOT_NULL(test, replay);
	luf_replay_begin(test, replay);
	before = luf_replay_flushes();
	KUNIT_EXPECT_FALSE(test, luf_replay_take(replay, 0, true));
	KUNIT_EXPECT_EQ(test, luf_replay_flushes() - before, 1UL);
	KUNIT_EXPECT_TRUE(test, luf_replay_take(replay, 1, false));
	luf_replay_map(test, replay, 2);
	luf_replay_unmap(test, replay, 2);
	if (IS_ENABLED(CONFIG_LUF_DEBUG))
		KUNIT_EXPECT_TRUE(test, luf_debug_waits(folio_page(replay->folios[2], 0)));
	KUNIT_EXPECT_FALSE(test, luf_replay_take(replay, 2, true));
	KUNIT_EXPECT_EQ(test, luf_replay_flushes() - before, 2UL);
	KUNIT_EXPECT_FALSE(test, luf_debug_waits(folio_page(replay->folios[2], 0)));

	/* LUF_DEBUG checks them once more. */
	folio_put(replay->folios[0]);
	folio_put(replay->folios[2]);
	luf_replay_end(replay);
}

/* A taken source needs no flush of its own. A kept one is flushed at the end. */
static void luf_test_kept_source_is_flushed_at_end(struct kunit *test)
{
	struct luf_replay *replay = kunit_kzalloc(test, sizeof(*replay), GFP_KERNEL);
	unsigned long before;

	KUNIT_ASSERT_NOT_NULL(test, replay);
	luf_replay_begin(test, replay);
	before = luf_replay_flushes();
	KUNIT_EXPECT_TRUE(test, luf_replay_take(replay, 0, false));
	KUNIT_EXPECT_TRUE(test, luf_replay_take(replay, 1, false));
	KUNIT_EXPECT_EQ(test, luf_replay_flushes() - before, 0UL);
	__luf_release_block(&replay->run);
	KUNIT_EXPECT_EQ(test, luf_replay_flushes() - before, 1UL);
	KUNIT_EXPECT_FALSE(test, luf_debug_waits(folio_page(replay->folios[2], 0)));

	folio_put(replay->folios[2]);
	luf_replay_end(replay);
}

/*
 * A source that could not be moved is mapped again, and another attempt unmaps it eagerly
 * and frees it. A source in between is taken as before.
 */
static void luf_test_source_is_flushed_before_another_attempt(struct kunit *test)
{
	struct luf_replay *replay = kunit_kzalloc(test, sizeof(*replay), GFP_KERNEL);
	unsigned long before;

	KUNIT_ASSERT_NOT_NULL(test, replay);
	luf_replay_begin(test, replay);
	before = luf_replay_flushes();
	luf_keep_source();
	KUNIT_EXPECT_EQ(test, luf_replay_flushes() - before, 1UL);
	KUNIT_EXPECT_FALSE(test, luf_debug_waits(folio_page(replay->folios[2], 0)));
	luf_replay_map(test, replay, 2);
	luf_replay_unmap_eagerly(test, replay, 2);
	/* LUF_DEBUG checks it once more. */
	folio_put(replay->folios[2]);
	KUNIT_EXPECT_TRUE(test, luf_replay_take(replay, 0, false));
	KUNIT_EXPECT_TRUE(test, luf_replay_take(replay, 1, false));
	luf_replay_end(replay);
}

/* kswapd must not give up a node from which it reclaims nothing because of its pools. */
static void luf_test_failing_node_misses_nothing(struct kunit *test)
{
	pg_data_t *pgdat = NODE_DATA(first_online_node);
	struct zone *zone = NULL;
	int i, failures = READ_ONCE(pgdat->kswapd_failures);
	unsigned long before, after;

	for (i = 0; i < MAX_NR_ZONES; i++)
		if (luf_zone_cap(&pgdat->node_zones[i]))
			zone = &pgdat->node_zones[i];
	if (!zone || failures)
		kunit_skip(test, "no pool, or a node that yields nothing");
	before = __luf_missing_pages(zone, zone_idx(zone));
	WRITE_ONCE(pgdat->kswapd_failures, 1);
	after = __luf_missing_pages(zone, zone_idx(zone));
	WRITE_ONCE(pgdat->kswapd_failures, failures);
	KUNIT_EXPECT_GT(test, before, 0UL);
	KUNIT_EXPECT_EQ(test, after, 0UL);
}

/* The last write of a remote client is not reported. */
static void luf_test_remote_writer_persists(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	mapping_set_writers_counted(mapping);
	luf_gate_remote_writer(mapping, false);
	KUNIT_EXPECT_TRUE(test, mapping_writers_counted(mapping));
	luf_gate_remote_writer(mapping, true);
	KUNIT_EXPECT_FALSE(test, mapping_writers_counted(mapping));
	/* As after another mapping of the file. */
	mapping_set_writers_counted(mapping);
	KUNIT_EXPECT_FALSE(test, mapping_writers_counted(mapping));
}

static struct kunit_case luf_cases[] = {
	KUNIT_CASE(luf_test_drain_includes_older_batches),
	KUNIT_CASE(luf_test_add_cpus_of_pending_batches),
	KUNIT_CASE(luf_test_folio_leaves_after_flush),
	KUNIT_CASE(luf_test_unreachable_zone_misses_nothing),
	KUNIT_CASE(luf_test_held_source_is_flushed),
	KUNIT_CASE(luf_test_kept_source_is_flushed_at_end),
	KUNIT_CASE(luf_test_source_is_flushed_before_another_attempt),
	KUNIT_CASE(luf_test_remote_writer_persists),
	KUNIT_CASE(luf_test_failing_node_misses_nothing),
	{}
};

static struct kunit_suite luf_suite = {
	.name = "tollfree-luf",
	.test_cases = luf_cases,
};

kunit_test_suite(luf_suite);
