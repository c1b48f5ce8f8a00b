// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/luf/pool.c. */

#include "luf/pool.c"

#include "tap.h"

enum { FOLIOS = 200 };

static struct luf_pool pool;
static struct folio folios[FOLIOS];
static u64 flushed_up_to;
static unsigned int questions;

bool luf_generation_is_flushed(u64 generation)
{
	questions++;
	return generation <= flushed_up_to;
}

/* A pool of a zone with so many pages, nothing of which is flushed. */
static void begin(unsigned long managed_pages)
{
	luf_pool_init(&pool, managed_pages);
	flushed_up_to = 0;
	questions = 0;
	for (int i = 0; i < FOLIOS; i++)
		folios[i].nr_pages = 1;
}

static void add(int from, int to, u64 generation)
{
	for (int i = from; i < to; i++)
		luf_pool_add(&pool, &folios[i], generation);
}

static unsigned long take(unsigned long most)
{
	LIST_HEAD(taken);
	unsigned long pages = luf_pool_take(&pool, most, &taken), seen = 0;
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, &taken, lru)
		seen += folio->nr_pages;
	EXPECT_EQ(seen, pages);
	return pages;
}

static void a_cap_is_a_share_of_the_zone(void)
{
	/* 4 KiB pages: 1 MiB, 15.9 MiB, 16 MiB, 512 MiB, 4 GiB, 64 GiB. */
	EXPECT_EQ(luf_pool_default_cap(256), 0);
	EXPECT_EQ(luf_pool_default_cap(4095), 0);
	EXPECT_EQ(luf_pool_default_cap(4096), 64);
	EXPECT_EQ(luf_pool_default_cap(131072), 2048);
	EXPECT_EQ(luf_pool_default_cap(1048576), 4096);
	EXPECT_EQ(luf_pool_default_cap(16777216), 16777);
}

static void nothing_leaves_before_its_flush(void)
{
	begin(1048576);
	add(0, 3, 1);
	add(3, 5, 2);
	EXPECT_EQ(take(100), 0);
	EXPECT_EQ(pool.nr_pages, 5);
	flushed_up_to = 1;
	EXPECT_EQ(take(100), 3);
	EXPECT_EQ(take(100), 0);
	flushed_up_to = 2;
	EXPECT_EQ(take(100), 2);
	EXPECT_EQ(pool.nr_pages, 0);
	EXPECT_EQ(list_empty(&pool.folios), true);
}

static void a_late_folio_of_an_old_batch_waits_for_its_turn(void)
{
	begin(1048576);
	add(0, 1, 2);
	add(1, 2, 1);
	EXPECT_EQ(luf_pool_first_generation(&pool), 2);
	EXPECT_EQ(luf_pool_last_generation(&pool), 1);
	flushed_up_to = 1;
	EXPECT_EQ(take(100), 0);
	flushed_up_to = 2;
	EXPECT_EQ(take(100), 2);
	EXPECT_EQ(luf_pool_first_generation(&pool), 0);
	EXPECT_EQ(luf_pool_last_generation(&pool), 0);
}

static void a_task_takes_no_more_than_its_part(void)
{
	begin(1048576);
	folios[1].nr_pages = 16;
	add(0, FOLIOS, 1);
	EXPECT_EQ(pool.nr_pages, FOLIOS + 15);
	flushed_up_to = 1;
	EXPECT_EQ(take(0), 0);
	/* A large folio goes as a whole. */
	EXPECT_EQ(take(2), 17);
	EXPECT_EQ(take(LUF_RELEASE_PAGES), LUF_RELEASE_PAGES);
	EXPECT_EQ(pool.nr_pages, FOLIOS + 15 - 17 - LUF_RELEASE_PAGES);
	/* One question each time, not one a folio. */
	EXPECT_EQ(questions, 2);
}

static void who_drains_depends_on_the_mark(void)
{
	begin(1048576);
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_MIN), false);
	pool.nr_pages = 1;
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_MIN), true);
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_LOW), false);
	pool.nr_pages = 3071;
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_LOW), false);
	pool.nr_pages = 3072;
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_LOW), true);
	EXPECT_EQ(luf_pool_is_full(&pool), false);
	pool.nr_pages = 4096;
	EXPECT_EQ(luf_pool_is_full(&pool), true);
}

static void kswapd_flushes_when_memory_gets_short(void)
{
	begin(1048576);
	EXPECT_EQ(luf_pool_flushes_early(&pool, 0, 1000), false);
	pool.nr_pages = 1;
	EXPECT_EQ(luf_pool_flushes_early(&pool, 2024, 1000), false);
	EXPECT_EQ(luf_pool_flushes_early(&pool, 2023, 1000), true);
}

static void a_pool_without_a_cap_stays_empty(void)
{
	begin(256);
	EXPECT_EQ(luf_pool_is_full(&pool), true);
	EXPECT_EQ(luf_pool_drains_at(&pool, LUF_MARK_LOW), false);
}

int main(void)
{
	RUN(a_cap_is_a_share_of_the_zone);
	RUN(nothing_leaves_before_its_flush);
	RUN(a_late_folio_of_an_old_batch_waits_for_its_turn);
	RUN(a_task_takes_no_more_than_its_part);
	RUN(who_drains_depends_on_the_mark);
	RUN(kswapd_flushes_when_memory_gets_short);
	RUN(a_pool_without_a_cap_stays_empty);
	return tap_end();
}
