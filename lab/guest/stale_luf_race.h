// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of lazy unmap flush: a third CPU acts while an unmap is in progress. */
#ifndef STALE_LUF_RACE_H
#define STALE_LUF_RACE_H

#include "stale_luf_pool.h"

static void luf_third_cpu(void (*act)(void))
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		not_possible("this needs CPU 2");
	luf_helper_start(2, act);
}

/* Reclaims one page while the child acts. */
static char *luf_reclaim_beside_helper(void)
{
	char *region = luf_map(AREA, PAGE);

	touch(region, PAGE, READ);
	luf_order();
	advise(region, PAGE, MADV_PAGEOUT);
	luf_await(&luf_helper->obeyed, turn + 1);
	return region;
}

static void luf_drain(void)
{
	if (!set(LUF_DRAIN, "1"))
		fail(LUF_DRAIN);
}

static void luf_in_flight_prepare(void)
{
	luf_third_cpu(luf_drain);
	luf_file_prepare();
}

/* The flush of the batch must wait for the unmap that is in progress. */
static void luf_in_flight_round(void)
{
	char *region = luf_reclaim_beside_helper();

	luf_drain();
	renew_and_finish(region, PAGE);
}

static void luf_change_first_page(void)
{
	int fd = luf_open(O_WRONLY);

	luf_write_file(fd, 1, CHANGED);
	close(fd);
}

static void luf_late_writer_prepare(void)
{
	luf_file_pages_prepare(PAGES);
	luf_third_cpu(luf_change_first_page);
	luf_expect(LUF_DEFERRED);
}

static void luf_late_writer_round(void)
{
	char *region;

	luf_restore();
	region = luf_reclaim_beside_helper();
	read_all(region, PAGE);
	touch(region, PAGE, READ);
	finish(region, PAGE);
}

#endif
