// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of lazy unmap flush: a third CPU acts while an unmap is in progress. */
#ifndef STALE_LUF_RACE_H
#define STALE_LUF_RACE_H

#include "stale_luf_change.h"
#include "stale_luf_pool.h"

/* Reclaims one page while the child acts. */
static char *luf_reclaim_beside_helper(void)
{
	char *region = luf_map(AREA, PAGE);

	touch(region, PAGE, READ);
	helper_order();
	advise(region, PAGE, MADV_PAGEOUT);
	helper_await(&helper->obeyed, turn + 1);
	return region;
}

static void luf_drain(void)
{
	if (!set(LUF_DRAIN, "1"))
		fail(LUF_DRAIN);
}

static void luf_in_flight_prepare(void)
{
	helper_on_third_cpu(luf_drain);
	luf_file_prepare();
}

/* The flush of the batch must wait for the unmap that is in progress. */
static void luf_in_flight_round(void)
{
	char *region = luf_reclaim_beside_helper();

	luf_drain();
	renew_and_finish(region, PAGE);
}

/* Opens the file during the unmap, and writes after it: else the page is dirty, and its reclaim fails. */
static void luf_change_first_page(void)
{
	int fd = luf_open(O_WRONLY);

	usleep(80000);
	luf_write_file(fd, 1, CHANGED);
	close(fd);
}

static void luf_late_writer_prepare(void)
{
	luf_file_pages_prepare(PAGES);
	helper_on_third_cpu(luf_change_first_page);
	luf_expect(LUF_DEFERRED);
}

static void luf_late_writer_round(void)
{
	char *region;

	luf_restore();
	/* Reclaim finds no page that is still in a list of the other CPU. */
	luf_drop_cache();
	region = luf_reclaim_beside_helper();
	read_all(region, PAGE);
	touch(region, PAGE, READ);
	finish(region, PAGE);
}

/* --- threads of one process: the store of one has made an entry writable --- */

static char *luf_new_page;

/*
 * Writes to the page without a fault of its own, as soon as there is an entry, and lets the toucher read it. A CPU that
 * runs another task meanwhile has flushed when it comes back.
 */
static void *luf_second_writer(void *unused)
{
	pin(2);
	for (unsigned int order = 1;; order++) {
		helper_await(&helper->order, order);
		while (!(pagemap_word(luf_new_page) >> PRESENT & 1))
			;
		*(volatile unsigned char *)luf_new_page = CHANGED;
		touch(luf_new_page, PAGE, READ);
		atomic_store(&helper->obeyed, order);
	}
	return unused;
}

static void luf_late_flush_prepare(void)
{
	pthread_t id;

	need_third_cpu();
	luf_swap_prepare();
	helper_new();
	errno = pthread_create(&id, NULL, luf_second_writer, NULL);
	if (errno)
		fail("pthread_create");
}

/* A store swaps the page in; while its fault ends, another thread uses the entry. */
static void luf_late_flush_round(void)
{
	char *region = luf_clean();

	luf_protect_by_fork(region);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_new_page = region;
	helper_order();
	*(volatile unsigned char *)(region + 1) = CHANGED;
	helper_await(&helper->obeyed, turn + 1);
	finish(region, LENGTH);
}

#endif
