// SPDX-License-Identifier: GPL-2.0-only
/* What depends on the kernel's own atomics, masks and lists. */

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "batch.h"
#include "hooks.h"
#include "internal.h"
#include "pool.h"

static void a_generation_is_drained_with_all_before_it(struct kunit *test)
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

	/* No CPU is in a batch, so that nobody is interrupted. */
	KUNIT_EXPECT_EQ(test, luf_flush_batch(all, 2), 0U);
	KUNIT_EXPECT_TRUE(test, luf_is_flushed(all, 2));
	KUNIT_EXPECT_FALSE(test, luf_is_drained(all, 2));
	KUNIT_EXPECT_EQ(test, luf_drain(all, 1), 0U);
	KUNIT_EXPECT_TRUE(test, luf_is_drained(all, 2));
	KUNIT_EXPECT_PTR_EQ(test, first.open, NULL);
	KUNIT_EXPECT_PTR_EQ(test, second.open, NULL);
}

static void the_cpus_of_pending_batches_are_added(struct kunit *test)
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
	/* This CPU flushes more than it has to. */
	luf_drain(all, 1);
	KUNIT_EXPECT_FALSE(test, luf_add_cpus(all, 1, 1, cpus));
}

static void a_folio_leaves_after_its_flush(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	struct luf_pool pool;
	struct luf_part part;
	LIST_HEAD(taken);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	luf_pool_init(&pool);
	luf_pool_resize(&pool, luf_pool_default_cap(1UL << 20), 0);
	luf_part_init(&part);
	list_add(&folio->lru, &part.folios);
	part.nr_pages = 1;
	luf_part_cover(&part, 3, 5);
	KUNIT_EXPECT_TRUE(test, luf_pool_add(&pool, &part, jiffies));
	KUNIT_EXPECT_EQ(test, luf_pool_take(&pool, 9, &taken), 0UL);
	luf_pool_begin_flush(&pool, &part);
	KUNIT_EXPECT_EQ(test, part.first, 3ULL);
	KUNIT_EXPECT_EQ(test, part.last, 5ULL);
	luf_pool_end_flush(&pool, &part);
	KUNIT_EXPECT_EQ(test, luf_pool_take(&pool, 9, &taken), 1UL);
	KUNIT_EXPECT_EQ(test, luf_pool_pages(&pool), 0UL);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&taken));
	list_del(&folio->lru);
	folio_put(folio);
}

/* kswapd that reclaims from a zone alone would never be done for others' pools. */
static void a_zone_out_of_reach_is_not_missing_pages(struct kunit *test)
{
	struct zone *zones = NODE_DATA(first_online_node)->node_zones;
	struct zone *small = &zones[0], *large = NULL;
	int i;

	for (i = 1; i < MAX_NR_ZONES; i++)
		if (luf_zone_cap(&zones[i]))
			large = &zones[i];
	if (!large || luf_zone_cap(small))
		kunit_skip(test, "no small zone without a pool beside a large one");
	KUNIT_EXPECT_EQ(test, __luf_missing(small, 0), 0UL);
	KUNIT_EXPECT_GT(test, __luf_missing(small, zone_idx(large)),
			zone_managed_pages(large));
}

/* A node that has nothing more to give must not be given up because of the pools. */
static void a_node_that_yields_nothing_is_missing_nothing(struct kunit *test)
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
	before = __luf_missing(zone, zone_idx(zone));
	WRITE_ONCE(pgdat->kswapd_failures, 1);
	after = __luf_missing(zone, zone_idx(zone));
	WRITE_ONCE(pgdat->kswapd_failures, failures);
	KUNIT_EXPECT_GT(test, before, 0UL);
	KUNIT_EXPECT_EQ(test, after, 0UL);
}

/* Nobody says when a remote client has written for the last time. */
static void a_remote_writer_is_not_forgotten(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	mapping_set_writers_counted(mapping);
	luf_gate_remote_writer(mapping, false);
	KUNIT_EXPECT_TRUE(test, mapping_writers_counted(mapping));
	luf_gate_remote_writer(mapping, true);
	KUNIT_EXPECT_FALSE(test, mapping_writers_counted(mapping));
	/* As when it is mapped once more. */
	mapping_set_writers_counted(mapping);
	KUNIT_EXPECT_FALSE(test, mapping_writers_counted(mapping));
}

static struct kunit_case luf_cases[] = {
	KUNIT_CASE(a_generation_is_drained_with_all_before_it),
	KUNIT_CASE(the_cpus_of_pending_batches_are_added),
	KUNIT_CASE(a_folio_leaves_after_its_flush),
	KUNIT_CASE(a_zone_out_of_reach_is_not_missing_pages),
	KUNIT_CASE(a_remote_writer_is_not_forgotten),
	KUNIT_CASE(a_node_that_yields_nothing_is_missing_nothing),
	{}
};

static struct kunit_suite luf_suite = {
	.name = "tollfree-luf",
	.test_cases = luf_cases,
};

kunit_test_suite(luf_suite);
