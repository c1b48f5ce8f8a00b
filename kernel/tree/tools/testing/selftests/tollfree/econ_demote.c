// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the split of huge pages that are mostly empty. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

static bool shrink(void)
{
	return write_text("/proc/sys/vm/drop_caches", "2");
}

/* Most of each region stays zeros. */
static char *touch_a_page_of_each(void)
{
	char *memory = map(8 * MIB);

	for (size_t at = 0; memory && at < 8 * MIB; at += REGION)
		touch(memory + at, PAGE);
	return memory;
}

static int shrink_mostly_empty(void)
{
	char *memory = touch_a_page_of_each();

	if (!memory || huge_in(memory) != 8)
		return 200;
	return shrink() ? huge_in(memory) : 201;
}

/* After the profiled run an eighth of the benefit is left. */
static int shrink_again_when_old(void)
{
	char *memory = touch_a_page_of_each();

	if (!memory || !shrink() || huge_in(memory) != 8)
		return 200;
	outlive_short_run();
	return shrink() ? huge_in(memory) : 201;
}

/* Independent of its profile. */
static int shrink_as_stock(void)
{
	write_text(LEDGER, "off");
	return shrink_mostly_empty();
}

/* A child inherits it, and exits as soon as the pipe has no writer. */
static int shrink_shared(void)
{
	char *memory = touch_a_page_of_each(), c;
	int ends[2], status;
	bool done;
	pid_t pid;

	if (!memory || huge_in(memory) != 8 || pipe(ends))
		return 200;
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &c, 1) != 0);
	}
	done = pid > 0 && shrink();
	close(ends[1]);
	if (!done || waitpid(pid, &status, 0) != pid || status)
		return 201;
	return huge_in(memory);
}

/*
 * Wait until none of it is huge, or for @sought. The shrinker checks a page once, and
 * skips one that is locked.
 */
static bool comes_to(long sought, const char *rows, const char *part)
{
	time_t begin = now();
	int found;

	do {
		found = run(rows, part);
	} while (found != sought && now() < begin + PATIENCE);
	return found == sought;
}

static struct kept kept[] = {
	{ .path = THP "shrink_underused" },
	{ .path = THP "khugepaged/max_ptes_none" },
	{ .path = SYSFS "costs/split" },
	{ .path = SYSFS "costs/reclaim_page" },
};

/* Split what has more than 400 empty pages, with costs that do not depend on the host. */
static void begin_to_split(void)
{
	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "1"));
	CHECK(write_text(kept[1].path, "400"));
	CHECK(write_text(kept[2].path, "60000"));
	CHECK(write_text(kept[3].path, "3000"));
}

static void what_is_mostly_empty_is_split_if_that_pays(void)
{
	long asked, approved;

	begin_to_split();
	approved = stat_of("demote", "approved");
	CHECK(comes_to(0, FIRST "0 0x800000 " FILLED, "shrink_mostly_empty"));
	CHECK(stat_of("demote", "approved") >= approved + 4);
	/* The page walks cost more than the empty pages are worth. */
	approved = stat_of("demote", "approved");
	asked = stat_of("demote", "asked");
	CHECK(run(FIRST "0 0x800000 " RICH, "shrink_mostly_empty") == 8);
	CHECK(stat_of("demote", "asked") >= asked + 4);
	CHECK(stat_of("demote", "approved") == approved);
	/* It pays if reclaim is expensive. */
	CHECK(write_text(kept[3].path, "300000"));
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_mostly_empty"));
	CHECK(write_text(kept[3].path, "3000"));
	/* A page of two processes needs no decision. */
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_shared"));
	CHECK(write_text(SYSFS "mode", "observe"));
	asked = stat_of("demote", "asked");
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_mostly_empty"));
	CHECK(stat_of("demote", "asked") >= asked + 4);
	CHECK(write_text(SYSFS "mode", "on"));
	put_back(kept, ARRAY_SIZE(kept));
}

/* More than the empty pages are worth, and an eighth of it is less. */
#define SOME	"6000000 512 100\n"

static void a_page_that_stays_is_decided_on_again(void)
{
	unsigned long before = profiled_run_ns;

	begin_to_split();
	profiled_run_ns = SHORT_RUN_NS;
	CHECK(comes_to(0, FIRST "0 0x800000 " SOME, "shrink_again_when_old"));
	profiled_run_ns = before;
	put_back(kept, ARRAY_SIZE(kept));
}

const struct test econ_demote_tests[] = {
	TEST(what_is_mostly_empty_is_split_if_that_pays),
	TEST(a_page_that_stays_is_decided_on_again),
	{}
};

const struct part econ_demote_parts[] = {
	PART(shrink_mostly_empty),
	PART(shrink_again_when_old),
	PART(shrink_as_stock),
	PART(shrink_shared),
	{}
};
