// SPDX-License-Identifier: GPL-2.0-only
/* Tests of rows that are out of date: huge pages that are not used say so. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "econ.h"

#define OBSERVE		SYSFS "observe_use"
#define SIZE		(32 * MIB)
/* More than a huge page costs after one observation that it is not used, and less after two. */
#define ROW		"mmap 0 25 3 0 0x2000000 340000 0 100\n"
#define RUN_NS		8000000000UL
/* A little longer than an interval, a 32nd of the run. */
#define INTERVAL_MS	260
/* Enough for two observations, by the third and the fifth. */
#define TOUCHED		5

static long cpu_ms(void)
{
	struct timespec it;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &it);
	return it.tv_sec * 1000 + it.tv_nsec / 1000000;
}

static void run_for_an_interval(void)
{
	long end = cpu_ms() + INTERVAL_MS;

	while (cpu_ms() < end)
		;
}

/* The result of the row: numbers of regions that were observed, and that were used. */
static bool read_observed(unsigned int *observed, unsigned int *used)
{
	char text[1024], *at;

	read_from(PROFILE, text, sizeof(text));
	at = strstr(text, " observed ");
	return at && sscanf(at, " observed %u used %u", observed, used) == 2;
}

/* Touch a region after each interval, and before it all earlier ones if they are @used. */
static int touch_by_intervals(bool is_used)
{
	unsigned int observed, used;
	char *memory = map(SIZE);

	if (!memory)
		return 200;
	for (int i = 0; i < TOUCHED; i++) {
		for (int j = 0; j < i && is_used; j++)
			touch(memory + j * REGION, PAGE);
		touch(memory + i * REGION, PAGE);
		if (i < TOUCHED - 1)
			run_for_an_interval();
	}
	if (!read_observed(&observed, &used))
		return 201;
	if (number(OBSERVE) ? observed != 2 || used != 2 * is_used : observed != 0)
		return 202;
	return huge_in(memory);
}

static int touch_and_use(void)
{
	return touch_by_intervals(true);
}

static int touch_and_leave(void)
{
	return touch_by_intervals(false);
}

static long observed_by_all(const char *what)
{
	return stat_of("observed", what);
}

static void a_row_that_is_not_used_is_worth_less(void)
{
	unsigned long before = profiled_run_ns;
	long regions = observed_by_all("regions"), used = observed_by_all("used");

	CHECK(!write_text(OBSERVE, "perhaps") && errno == EINVAL);
	CHECK(write_text(SYSFS "costs/clear_huge", "216000"));
	profiled_run_ns = RUN_NS;
	CHECK(run(ROW, "touch_and_use") == 2 * TOUCHED);
	CHECK(observed_by_all("regions") == regions + 2);
	CHECK(observed_by_all("used") == used + 2);
	/* After the second observation the last region is not worth its clearing. */
	CHECK(run(ROW, "touch_and_leave") == 2 * (TOUCHED - 1));
	CHECK(observed_by_all("used") == used + 2);
	CHECK(write_text(OBSERVE, "0"));
	CHECK(run(ROW, "touch_and_leave") == 2 * TOUCHED);
	CHECK(observed_by_all("regions") == regions + 4);
	CHECK(write_text(OBSERVE, "1"));
	profiled_run_ns = before;
}

const struct test econ_use_tests[] = {
	TEST(a_row_that_is_not_used_is_worth_less),
	{}
};

const struct part econ_use_parts[] = {
	PART(touch_and_use),
	PART(touch_and_leave),
	{}
};
