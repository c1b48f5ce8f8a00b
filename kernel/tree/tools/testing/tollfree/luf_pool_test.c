// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/luf/pool.c and mm/luf/policy.c. */

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "luf/pool.c"
#include "luf/policy.c"

#include "tap.h"

enum { FOLIOS = 200, MIB_512 = 131072, GIB_4 = 1048576 };

static struct luf_pool pool;
static struct folio folios[FOLIOS];

/* A pool of a zone with the given number of pages. */
static void begin(unsigned long managed_pages)
{
	luf_pool_init(&pool);
	luf_pool_resize(&pool, luf_pool_default_cap(managed_pages), 0);
	for (int i = 0; i < FOLIOS; i++)
		folios[i].nr_pages = 1;
}

/* Add folios of one batch. Return: whether the pool accepts them. */
static bool add(int from, int to, u64 generation)
{
	struct luf_part part;

	luf_part_init(&part);
	for (int i = from; i < to; i++) {
		list_add_tail(&folios[i].lru, &part.folios);
		part.nr_pages += folios[i].nr_pages;
	}
	luf_part_cover(&part, generation, generation);
	return luf_pool_add(&pool, &part, generation * 10);
}

static void flush(void)
{
	struct luf_transit transit;

	if (luf_pool_begin_flush(&pool, &transit))
		EXPECT_EQ(luf_pool_end_flush(&pool, &transit), true);
}

static unsigned long pages_of(struct luf_transit *transit)
{
	struct folio *folio, *next;
	unsigned long seen = 0;

	list_for_each_entry_safe(folio, next, &transit->part.folios, lru)
		seen += folio->nr_pages;
	return seen;
}

static unsigned long take(unsigned long most)
{
	struct luf_transit transit;
	unsigned long pages = luf_pool_take(&pool, most, &transit);

	if (!pages)
		return 0;
	EXPECT_EQ(pages_of(&transit), pages);
	luf_pool_end_transit(&pool, &transit);
	return pages;
}

static void a_cap_is_a_share_of_the_zone(void)
{
	/* 4 KiB pages: 1 MiB, 15.9 MiB, 16 MiB, 512 MiB, 4 GiB, 64 GiB. */
	EXPECT_EQ(luf_pool_default_cap(256), 0);
	EXPECT_EQ(luf_pool_default_cap(4095), 0);
	EXPECT_EQ(luf_pool_default_cap(4096), 64);
	EXPECT_EQ(luf_pool_default_cap(MIB_512), 2048);
	EXPECT_EQ(luf_pool_default_cap(GIB_4), 4096);
	EXPECT_EQ(luf_pool_default_cap(16777216), 16777);
}

static void a_cap_of_another_scale_keeps_to_its_limits(void)
{
	EXPECT_EQ(luf_pool_scaled_cap(GIB_4, 0), 4096);
	EXPECT_EQ(luf_pool_scaled_cap(GIB_4, 1), 8192);
	EXPECT_EQ(luf_pool_scaled_cap(GIB_4, LUF_LARGEST_SCALE), GIB_4 / 64);
	EXPECT_EQ(luf_pool_scaled_cap(GIB_4, -1), 2048);
	EXPECT_EQ(luf_pool_scaled_cap(GIB_4, -LUF_LARGEST_SCALE), 64);
	EXPECT_EQ(luf_pool_scaled_cap(MIB_512, 3), 2048);
	EXPECT_EQ(luf_pool_scaled_cap(4095, 3), 0);
	EXPECT_EQ(luf_pool_scaled_cap(4095, -3), 0);
}

static void nothing_leaves_before_its_flush(void)
{
	begin(GIB_4);
	EXPECT_EQ(add(0, 5, 1), true);
	EXPECT_EQ(take(100), 0);
	flush();
	EXPECT_EQ(add(5, 7, 2), true);
	EXPECT_EQ(luf_pool_pages(&pool), 7);
	EXPECT_EQ(take(100), 5);
	EXPECT_EQ(take(100), 0);
	flush();
	EXPECT_EQ(take(100), 2);
	EXPECT_EQ(luf_pool_pages(&pool), 0);
	EXPECT_EQ(list_empty(&pool.pending.folios), true);
	EXPECT_EQ(list_empty(&pool.flushed.folios), true);
}

static void what_is_being_flushed_is_nobody_elses(void)
{
	struct luf_transit first, second, third;

	begin(GIB_4);
	add(0, 5, 7);
	EXPECT_EQ(luf_pool_begin_flush(&pool, &first), true);
	EXPECT_EQ(luf_pool_begin_flush(&pool, &third), false);
	add(5, 6, 8);
	EXPECT_EQ(luf_pool_begin_flush(&pool, &second), true);
	EXPECT_EQ(first.part.nr_pages, 5);
	EXPECT_EQ(second.part.nr_pages, 1);
	EXPECT_EQ(take(100), 0);
	luf_pool_end_flush(&pool, &second);
	EXPECT_EQ(take(100), 1);
	luf_pool_end_flush(&pool, &first);
	EXPECT_EQ(take(100), 5);
}

static void a_page_counts_until_the_allocator_has_it(void)
{
	struct luf_transit flushed, taken;

	begin(GIB_4);
	add(0, 10, 1);
	luf_pool_begin_flush(&pool, &flushed);
	EXPECT_EQ(luf_pool_pages(&pool), 10);
	EXPECT_EQ(luf_pool_missing(&pool), 4086);
	luf_pool_end_flush(&pool, &flushed);
	EXPECT_EQ(luf_pool_pages(&pool), 10);
	EXPECT_EQ(luf_pool_take(&pool, 4, &taken), 4);
	EXPECT_EQ(luf_pool_pages(&pool), 10);
	luf_pool_end_transit(&pool, &taken);
	EXPECT_EQ(luf_pool_pages(&pool), 6);
}

static void a_part_knows_its_oldest_and_newest_batch(void)
{
	struct luf_transit transit;

	begin(GIB_4);
	add(0, 1, 9);
	add(1, 2, 4);
	add(2, 3, 6);
	luf_pool_begin_flush(&pool, &transit);
	EXPECT_EQ(transit.part.first, 4);
	EXPECT_EQ(transit.part.last, 9);
	luf_pool_end_flush(&pool, &transit);
	/* Earlier folios do not affect later ones. */
	add(3, 4, 11);
	luf_pool_begin_flush(&pool, &transit);
	EXPECT_EQ(transit.part.first, 11);
	EXPECT_EQ(transit.part.last, 11);
	luf_pool_end_flush(&pool, &transit);
}

static void who_waits_waits_for_what_has_begun(void)
{
	struct luf_transit first, second;

	begin(GIB_4);
	EXPECT_EQ(luf_pool_is_settled(&pool, pool.tickets), true);
	add(0, 5, 1);
	luf_pool_begin_flush(&pool, &first);
	EXPECT_EQ(luf_pool_is_settled(&pool, first.ticket), false);
	EXPECT_EQ(luf_pool_is_settled(&pool, first.ticket - 1), true);
	add(5, 9, 2);
	luf_pool_begin_flush(&pool, &second);
	/* Transits end in any order; later ones are not waited for. */
	luf_pool_end_flush(&pool, &first);
	EXPECT_EQ(luf_pool_is_settled(&pool, first.ticket), true);
	EXPECT_EQ(luf_pool_is_settled(&pool, second.ticket), false);
	luf_pool_end_flush(&pool, &second);
	EXPECT_EQ(luf_pool_take(&pool, 9, &first), 9);
	EXPECT_EQ(luf_pool_is_settled(&pool, first.ticket), false);
	luf_pool_end_transit(&pool, &first);
	EXPECT_EQ(luf_pool_is_settled(&pool, first.ticket), true);
}

static atomic_bool flush_may_end;

static void *end_slowly(void *transit)
{
	while (!flush_may_end)
		usleep(100);
	usleep(1000);
	luf_pool_end_flush(&pool, transit);
	return NULL;
}

static void a_wait_ends_after_the_flush(void)
{
	struct luf_transit transit;
	pthread_t thread;

	begin(GIB_4);
	add(0, 5, 1);
	luf_pool_begin_flush(&pool, &transit);
	flush_may_end = false;
	pthread_create(&thread, NULL, end_slowly, &transit);
	flush_may_end = true;
	luf_pool_wait(&pool);
	EXPECT_EQ(take(100), 5);
	pthread_join(thread, NULL);
}

static void what_is_flushed_for_a_blocked_pool_does_not_wait(void)
{
	struct luf_transit transit;

	begin(GIB_4);
	add(0, 5, 1);
	luf_pool_begin_flush(&pool, &transit);
	luf_pool_block(&pool);
	luf_pool_block(&pool);
	EXPECT_EQ(luf_pool_end_flush(&pool, &transit), false);
	EXPECT_EQ(luf_pool_is_settled(&pool, transit.ticket), false);
	EXPECT_EQ(pages_of(&transit), 5);
	EXPECT_EQ(take(100), 0);
	luf_pool_end_transit(&pool, &transit);
	EXPECT_EQ(luf_pool_is_settled(&pool, transit.ticket), true);
	EXPECT_EQ(luf_pool_pages(&pool), 0);
	luf_pool_unblock(&pool);
	EXPECT_EQ(add(0, 5, 2), false);
	luf_pool_unblock(&pool);
	EXPECT_EQ(add(0, 5, 2), true);
}

static void large_folios_count_by_their_pages(void)
{
	begin(GIB_4);
	folios[0].nr_pages = 16;
	folios[1].nr_pages = 512;
	add(0, 3, 1);
	flush();
	EXPECT_EQ(luf_pool_pages(&pool), 529);
	/* Whole folios only, and no more than needed. */
	EXPECT_EQ(take(1), 16);
	EXPECT_EQ(take(1), 512);
	EXPECT_EQ(take(1), 1);
}

static void a_task_takes_no_more_than_it_asks_for(void)
{
	begin(GIB_4);
	add(0, FOLIOS, 1);
	flush();
	EXPECT_EQ(take(LUF_RELEASE_PAGES), 64);
	EXPECT_EQ(luf_pool_pages(&pool), FOLIOS - 64);
}

static void the_age_is_that_of_the_first(void)
{
	begin(GIB_4);
	add(0, 1, 3);
	add(1, 2, 5);
	EXPECT_EQ(pool.pending.since, 30);
	EXPECT_EQ(luf_part_is_old(&pool.pending, 29), false);
	EXPECT_EQ(luf_part_is_old(&pool.pending, 30), true);
	flush();
	EXPECT_EQ(luf_part_is_old(&pool.pending, 1000), false);
	add(2, 3, 7);
	EXPECT_EQ(pool.pending.since, 70);
}

static void what_is_flushed_is_as_old_as_before(void)
{
	begin(GIB_4);
	add(0, 1, 3);
	flush();
	EXPECT_EQ(pool.flushed.since, 30);
	/* Later folios do not reset the age, flushed ones neither. */
	add(1, 2, 50);
	flush();
	EXPECT_EQ(pool.flushed.since, 30);
	EXPECT_EQ(luf_part_is_old(&pool.flushed, 30), true);
	EXPECT_EQ(luf_part_is_old(&pool.pending, 10000), false);
	take(2);
	EXPECT_EQ(luf_part_is_old(&pool.flushed, 10000), false);
	add(2, 3, 60);
	flush();
	EXPECT_EQ(pool.flushed.since, 600);
}

static void a_flush_that_ends_late_brings_its_age_along(void)
{
	struct luf_transit transit;

	begin(GIB_4);
	add(0, 1, 3);
	luf_pool_begin_flush(&pool, &transit);
	add(1, 2, 9);
	flush();
	EXPECT_EQ(pool.flushed.since, 90);
	luf_pool_end_flush(&pool, &transit);
	EXPECT_EQ(pool.flushed.since, 30);
}

/* In any state of the others, including flush and release. */
static void no_more_pages_are_added_than_the_cap(void)
{
	struct luf_transit transit;

	begin(MIB_512);
	folios[0].nr_pages = 2000;
	EXPECT_EQ(add(0, 1, 1), true);
	EXPECT_EQ(luf_pool_excess(&pool, 48), 0);
	EXPECT_EQ(luf_pool_excess(&pool, 49), 1);
	EXPECT_EQ(add(1, 50, 1), false);
	EXPECT_EQ(add(1, 49, 1), true);
	luf_pool_begin_flush(&pool, &transit);
	EXPECT_EQ(add(50, 51, 2), false);
	luf_pool_end_flush(&pool, &transit);
	EXPECT_EQ(add(50, 51, 2), false);
	EXPECT_EQ(luf_pool_take(&pool, luf_pool_excess(&pool, 1), &transit), 2000);
	EXPECT_EQ(add(50, 51, 2), false);
	luf_pool_end_transit(&pool, &transit);
	EXPECT_EQ(add(50, 51, 2), true);
	EXPECT_EQ(luf_pool_pages(&pool), 49);
	/* After the size was reduced, pages have to leave. */
	luf_pool_resize(&pool, 40, 0);
	EXPECT_EQ(luf_pool_excess(&pool, 0), 9);
}

static void a_full_pool_waits_for_the_end_of_a_transit(void)
{
	struct luf_transit transit, taken;

	begin(MIB_512);
	folios[0].nr_pages = 2040;
	add(0, 1, 1);
	/* A flush of its own makes room. */
	EXPECT_EQ(luf_pool_must_wait(&pool, 9), false);
	luf_pool_begin_flush(&pool, &transit);
	EXPECT_EQ(luf_pool_must_wait(&pool, 8), false);
	EXPECT_EQ(luf_pool_must_wait(&pool, 9), true);
	add(1, 9, 2);
	EXPECT_EQ(luf_pool_must_wait(&pool, 1), true);
	luf_pool_end_flush(&pool, &transit);
	/* Pages can be released. */
	EXPECT_EQ(luf_pool_must_wait(&pool, 1), false);
	EXPECT_EQ(luf_pool_take(&pool, 4096, &taken), 2040);
	EXPECT_EQ(luf_pool_must_wait(&pool, 1), true);
	luf_pool_end_transit(&pool, &taken);
	EXPECT_EQ(luf_pool_must_wait(&pool, 1), false);
}

static void a_wait_for_room_ends_with_the_flush(void)
{
	struct luf_transit transit;
	pthread_t thread;
	long left;

	begin(MIB_512);
	folios[0].nr_pages = 2048;
	add(0, 1, 1);
	luf_pool_begin_flush(&pool, &transit);
	flush_may_end = false;
	pthread_create(&thread, NULL, end_slowly, &transit);
	flush_may_end = true;
	/* Each wait is limited, and a slow machine may need several. */
	do {
		left = LUF_ROOM_TIMEOUT;
		pool.overdue = 0;
	} while (luf_pool_wait_for_room(&pool, 1, &left));
	EXPECT_EQ(take(4096), 2048);
	pthread_join(thread, NULL);
}

/* The task of the first transit was preempted. */
static void an_overdue_transit_is_not_waited_for(void)
{
	struct luf_transit first, second;
	long left = LUF_ROOM_TIMEOUT, other = LUF_ROOM_TIMEOUT;

	begin(MIB_512);
	folios[0].nr_pages = 2000;
	add(0, 1, 1);
	luf_pool_begin_flush(&pool, &first);
	EXPECT_EQ(luf_pool_wait_for_room(&pool, 49, &left), true);
	EXPECT_EQ(left, 0);
	EXPECT_EQ(pool.overdue, first.ticket);
	EXPECT_EQ(luf_pool_wait_for_room(&pool, 49, &other), false);
	EXPECT_EQ(other, LUF_ROOM_TIMEOUT);
	/* Later ones are, but not by a task that has waited long enough. */
	add(1, 49, 2);
	luf_pool_begin_flush(&pool, &second);
	EXPECT_EQ(luf_pool_must_wait(&pool, 1), true);
	EXPECT_EQ(luf_pool_wait_for_room(&pool, 1, &left), false);
	luf_pool_end_flush(&pool, &second);
	EXPECT_EQ(take(4096), 48);
	luf_pool_end_flush(&pool, &first);
	EXPECT_EQ(take(4096), 2000);
}

static void nothing_waits_where_nothing_may(void)
{
	begin(256);
	EXPECT_EQ(add(0, 1, 1), false);
	begin(GIB_4);
	luf_pool_block(&pool);
	EXPECT_EQ(add(0, 1, 1), false);
	EXPECT_EQ(luf_pool_pages(&pool), 0);
	luf_pool_unblock(&pool);
	EXPECT_EQ(add(0, 1, 1), true);
	luf_pool_resize(&pool, 0, 0);
	EXPECT_EQ(add(1, 2, 1), false);
	EXPECT_EQ(luf_pool_is_full(&pool), true);
	EXPECT_EQ(luf_pool_missing(&pool), 0);
}

static void a_flush_pays_from_the_batch_on(void)
{
	begin(MIB_512);
	EXPECT_EQ(luf_pool_pays(&pool, 0), false);
	EXPECT_EQ(luf_pool_missing(&pool), 2048);
	folios[0].nr_pages = 1919;
	add(0, 1, 1);
	EXPECT_EQ(luf_pool_pays(&pool, 0), false);
	add(1, 2, 1);
	EXPECT_EQ(luf_pool_pays(&pool, 0), true);
	EXPECT_EQ(luf_pool_is_full(&pool), true);
	EXPECT_EQ(luf_pool_missing(&pool), 128);
	folios[2].nr_pages = 128;
	add(2, 3, 1);
	flush();
	/* Flushed pages stay. */
	EXPECT_EQ(luf_pool_pays(&pool, 0), false);
	EXPECT_EQ(luf_pool_is_full(&pool), false);
	EXPECT_EQ(luf_pool_missing(&pool), 0);
	take(4096);
	EXPECT_EQ(luf_pool_missing(&pool), 2048);
	luf_pool_resize(&pool, 2048, 1);
	add(4, 5, 2);
	EXPECT_EQ(luf_pool_pays(&pool, 0), true);
	luf_pool_resize(&pool, 2048, 5000);
	EXPECT_EQ(pool.batch, 2048);
}

/* One allocation waits for it: 3,840 pages would take several milliseconds. */
static void one_task_reclaims_no_more_than_its_share(void)
{
	begin(MIB_512);
	luf_pool_resize(&pool, 4096, 0);
	EXPECT_EQ(pool.batch, 3840);
	EXPECT_EQ(luf_pool_direct_pages(&pool), 512);
	luf_pool_resize(&pool, 4096, 128);
	EXPECT_EQ(luf_pool_direct_pages(&pool), 128);
	luf_pool_resize(&pool, 256, 0);
	EXPECT_EQ(luf_pool_direct_pages(&pool), 240);
	luf_pool_resize(&pool, 0, 0);
	EXPECT_EQ(luf_pool_direct_pages(&pool), 0);
}

static void for_a_large_block_as_many_pages_pay(void)
{
	begin(MIB_512);
	folios[0].nr_pages = 511;
	add(0, 1, 1);
	EXPECT_EQ(luf_pool_pays(&pool, 9), false);
	EXPECT_EQ(luf_pool_pays(&pool, 4), true);
	EXPECT_EQ(luf_pool_pays(&pool, 3), false);
	add(1, 2, 1);
	EXPECT_EQ(luf_pool_pays(&pool, 9), true);
	EXPECT_EQ(luf_pool_pays(&pool, 0), false);
	luf_pool_resize(&pool, 2048, 256);
	EXPECT_EQ(luf_pool_pays(&pool, 9), true);
	EXPECT_EQ(luf_pool_pays(&pool, 0), true);
}

static void kswapd_releases_what_the_allocator_lacks(void)
{
	begin(MIB_512);
	EXPECT_EQ(luf_pool_owes(&pool, 2512, 2000, 2400), 0);
	EXPECT_EQ(luf_pool_owes(&pool, 2511, 2000, 2400), 1);
	EXPECT_EQ(luf_pool_owes(&pool, 0, 2000, 2400), 2512);
	EXPECT_EQ(luf_pool_owes(&pool, 2999, 2000, 3000), 1);
	EXPECT_EQ(luf_pool_owes(&pool, 3000, 2000, 3000), 0);
	EXPECT_EQ(luf_pool_owes(&pool, 9000, 2000, 3000), 0);
}

static void it_is_urgent_where_memory_is_nearly_gone(void)
{
	begin(MIB_512);
	EXPECT_EQ(luf_pool_is_urgent(&pool, 0, 1000), false);
	folios[0].nr_pages = 127;
	add(0, 1, 1);
	EXPECT_EQ(luf_pool_is_urgent(&pool, 0, 1000), false);
	folios[1].nr_pages = 1;
	add(1, 2, 1);
	EXPECT_EQ(luf_pool_is_urgent(&pool, 500, 1000), false);
	EXPECT_EQ(luf_pool_is_urgent(&pool, 499, 1000), true);
}

int main(void)
{
	RUN(a_cap_is_a_share_of_the_zone);
	RUN(a_cap_of_another_scale_keeps_to_its_limits);
	RUN(nothing_leaves_before_its_flush);
	RUN(what_is_being_flushed_is_nobody_elses);
	RUN(a_page_counts_until_the_allocator_has_it);
	RUN(a_part_knows_its_oldest_and_newest_batch);
	RUN(who_waits_waits_for_what_has_begun);
	RUN(a_wait_ends_after_the_flush);
	RUN(what_is_flushed_for_a_blocked_pool_does_not_wait);
	RUN(large_folios_count_by_their_pages);
	RUN(a_task_takes_no_more_than_it_asks_for);
	RUN(the_age_is_that_of_the_first);
	RUN(what_is_flushed_is_as_old_as_before);
	RUN(a_flush_that_ends_late_brings_its_age_along);
	RUN(no_more_pages_are_added_than_the_cap);
	RUN(a_full_pool_waits_for_the_end_of_a_transit);
	RUN(a_wait_for_room_ends_with_the_flush);
	RUN(an_overdue_transit_is_not_waited_for);
	RUN(nothing_waits_where_nothing_may);
	RUN(a_flush_pays_from_the_batch_on);
	RUN(one_task_reclaims_no_more_than_its_share);
	RUN(for_a_large_block_as_many_pages_pay);
	RUN(kswapd_releases_what_the_allocator_lacks);
	RUN(it_is_urgent_where_memory_is_nearly_gone);
	return tap_end();
}
