// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of costs that are too high: some refused actions are done nevertheless, so that
 * their costs are measured. Only programs with a profile run.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "econ.h"

/* Written to a cost: more than any action is worth, and less than a ledger may hold. */
#define TOO_HIGH	"900000000"
#define TOO_HIGH_NS	900000000L
/*
 * Nothing for the program's own variables: without a row the first of them that is written
 * clears a huge page as without econ, if one fits there, and is measured.
 */
#define OWN		"bss 0 0x8000000 " POOR
#define HEAP		"heap 0 0x8000000 " RICH OWN
/* Number of regions: more than refused decisions for each one that is explored. */
#define REGIONS		1024
#define VAST		(REGIONS * REGION)
#define VAST_ROW	"mmap 0 31 3 0 0x80000000 " RICH OWN

/* Decide about three regions each time, more often than one decision is explored. */
static int touch_heap_often(void)
{
	for (int i = 0; i < 500; i++)
		if (!touch_heap_again(0))
			return 200;
	return 0;
}

static void a_huge_page_is_cleared_nevertheless(void)
{
	long explored = stat_of("huge", "explored"), approved;

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/clear_huge", TOO_HIGH));
	CHECK(run(HEAP, "touch_heap_often") == 0);
	/* Costs are frozen. */
	CHECK(stat_of("huge", "explored") == explored);
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	approved = stat_of("huge", "approved");
	CHECK(run(HEAP, "touch_heap_often") == 0);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	CHECK(stat_of("huge", "explored") > explored);
	CHECK(number(SYSFS "costs/clear_huge") < TOO_HIGH_NS / 10);
	CHECK(stat_of("huge", "approved") > approved);
}

static void nothing_is_explored_if_decisions_are_observed(void)
{
	long explored = stat_of("huge", "explored");

	CHECK(write_text(SYSFS "mode", "observe"));
	CHECK(write_text(SYSFS "costs/clear_huge", TOO_HIGH));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	CHECK(run(HEAP, "touch_heap_often") == 0);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	CHECK(write_text(SYSFS "mode", "on"));
	CHECK(stat_of("huge", "explored") == explored);
}

/* khugepaged decides about each region. Return: 0 if it explored. */
static int wait_for_collapse(void)
{
	long explored = stat_of("promote", "explored");
	char *vast = mmap(NULL, VAST, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (vast == MAP_FAILED)
		return 200;
	for (size_t at = 0; at < VAST; at += REGION)
		touch(vast + at, 1);
	write_text(SYSFS "costs/clear_huge", "200000");
	write_text(SYSFS "costs/frozen", "0");
	for (int i = 0; i < 6000; i++) {
		if (stat_of("promote", "explored") > explored &&
		    number(SYSFS "costs/collapse") < TOO_HIGH_NS / 2)
			return 0;
		usleep(10000);
	}
	return stat_of("promote", "explored") > explored ? 1 : 2;
}

/* Otherwise khugepaged collapses this program's own variables, and measures that. */
static void keep_own_pages(void)
{
	uintptr_t from = ((uintptr_t)__bss_start + PAGE - 1) & ~(PAGE - 1);

	CHECK(!madvise((void *)from, (uintptr_t)_end - from, MADV_NOHUGEPAGE));
}

static void a_region_is_collapsed_nevertheless(void)
{
	struct kept kept[] = {
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
		{ .path = THP "khugepaged/max_ptes_none" },
	};
	int found;

	keep(kept, ARRAY_SIZE(kept));
	keep_own_pages();
	CHECK(write_text(kept[0].path, "10"));
	CHECK(write_text(kept[1].path, "100000"));
	CHECK(write_text(kept[2].path, "511"));
	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/collapse", TOO_HIGH));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	found = run(VAST_ROW, "wait_for_collapse");
	if (!CHECK(!found))
		ksft_print_msg("the program says %d\n", found);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	put_back(kept, ARRAY_SIZE(kept));
}

static void kcompactd_is_asked_nevertheless(void)
{
	long explored = stat_of("compact", "explored");
	time_t begin;

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(let_blocks_cost("9000000000000", "9000000000000"));
	if (CHECK(hold_memory())) {
		CHECK(write_text(SYSFS "costs/frozen", "0"));
		begin = now();
		do {
			hold_more();
			CHECK(run(HEAP, "touch_heap_often") == 0);
		} while (stat_of("compact", "explored") == explored &&
			 now() < begin + PATIENCE);
		CHECK(write_text(SYSFS "costs/frozen", "1"));
	}
	CHECK(stat_of("compact", "explored") > explored);
	CHECK(let_go());
}

const struct test econ_explore_tests[] = {
	TEST(a_huge_page_is_cleared_nevertheless),
	TEST(nothing_is_explored_if_decisions_are_observed),
	TEST(a_region_is_collapsed_nevertheless),
	TEST(kcompactd_is_asked_nevertheless),
	{}
};

const struct part econ_explore_parts[] = {
	PART(touch_heap_often),
	PART(wait_for_collapse),
	{}
};
