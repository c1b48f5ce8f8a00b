// SPDX-License-Identifier: GPL-2.0-only
/* Tests of other operations that are decided on: blocks of 64 KiB, collapse, swap-in. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "econ.h"

/* No first touch maps a huge page. khugepaged may collapse before the last one. */
static char *map_small(void)
{
	char *memory = map(8 * MIB);

	write_text(SYSFS "costs/clear_huge", "9000000000000");
	if (memory)
		touch(memory, 8 * MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	return memory;
}

/* Wait for khugepaged. */
static int wait_for_promotion(void)
{
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return huge_in(memory);
}

static int wait_in_vain(void)
{
	long scans = number(THP "khugepaged/full_scans") + 3;
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && number(THP "khugepaged/full_scans") < scans; i++)
		usleep(10000);
	return huge_in(memory);
}

static bool wait_for_scans(long scans)
{
	scans += number(THP "khugepaged/full_scans");
	for (int i = 0; i < 6000 && number(THP "khugepaged/full_scans") < scans; i++)
		usleep(10000);
	return number(THP "khugepaged/full_scans") >= scans;
}

static int wait_after_promotion(void)
{
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return wait_for_scans(3) ? huge_in(memory) : 201;
}

/* Touch half of each region, which khugepaged may not fill up. */
static int wait_with_holes(void)
{
	char *memory = map(8 * MIB);

	write_text(SYSFS "costs/clear_huge", "9000000000000");
	for (size_t at = 0; memory && at < 8 * MIB; at += REGION)
		touch(memory + at, MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	return memory && wait_for_scans(3) ? huge_in(memory) : 200;
}

/* Return: MiB of a mapping that are in swap. */
static long swapped_in(const void *memory)
{
	return smaps_mib(memory, "Swap: %lu");
}

/* Return: 0 if swap-in asks the model of swap-in, 1 if it asks that of clearing. */
static int swap_out_and_in(void)
{
	char *memory = map(8 * MIB);
	long large, swap;

	if (!memory)
		return 200;
	touch(memory, 8 * MIB);
	for (int i = 0; i < 100 && swapped_in(memory) < 4; i++)
		if (madvise(memory, 8 * MIB, MADV_PAGEOUT))
			return 201;
	if (swapped_in(memory) < 4)
		return 202;
	large = stat_of("large", "asked");
	swap = stat_of("swap", "asked");
	touch(memory, 8 * MIB);
	if (stat_of("large", "asked") > large + 8)
		return 1;
	return stat_of("swap", "asked") > swap + 8 ? 0 : 2;
}

static void no_fault_waits_for_a_block(void)
{
	long asked = stat_of("direct", "asked"), approved = stat_of("direct", "approved");

	CHECK(write_text(THP "defrag", "always"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("direct", "asked") >= asked + 4);
	CHECK(stat_of("direct", "approved") == approved);
	CHECK(write_text(THP "defrag", "madvise"));
}

static void smaller_blocks_are_priced_too(void)
{
	long asked = stat_of("large", "asked"), approved = stat_of("large", "approved");

	if (access(THP "hugepages-64kB/enabled", W_OK)) {
		lacks = "no blocks between 4 KiB and 2 MiB";
		return;
	}
	CHECK(write_text(THP "hugepages-64kB/enabled", "always"));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 0);
	/* One for each 64 KiB, and those of the stack. */
	CHECK(stat_of("large", "approved") >= approved + 128);
	approved = stat_of("large", "approved");
	asked = stat_of("large", "asked");
	CHECK(run(FIRST "0 0x800000 0 8 100\n", "touch_8") == 0);
	CHECK(stat_of("large", "asked") >= asked + 128);
	CHECK(stat_of("large", "approved") == approved);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(THP "hugepages-64kB/enabled", "never"));
}

static void khugepaged_copies_what_pays(void)
{
	char sleep[32], pages[32];
	long asked, approved;

	read_from(THP "khugepaged/scan_sleep_millisecs", sleep, sizeof(sleep));
	read_from(THP "khugepaged/pages_to_scan", pages, sizeof(pages));
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", "10"));
	CHECK(write_text(THP "khugepaged/pages_to_scan", "100000"));
	approved = stat_of("huge", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_for_promotion") == 8);
	CHECK(stat_of("huge", "approved") == approved);
	/* The faults have happened already: they have no benefit. */
	asked = stat_of("promote", "asked");
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "wait_in_vain") == 0);
	CHECK(stat_of("promote", "asked") > asked);
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", sleep));
	CHECK(write_text(THP "khugepaged/pages_to_scan", pages));
}

/* Approvals are counted when the collapse is done: not per scan, and not on failure. */
static void promotion_is_booked_once(void)
{
	struct kept kept[] = {
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
		{ .path = THP "khugepaged/max_ptes_none" },
	};
	long approved;

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "10"));
	CHECK(write_text(kept[1].path, "100000"));
	approved = stat_of("promote", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_after_promotion") == 8);
	CHECK(stat_of("promote", "approved") == approved + 4);
	CHECK(write_text(kept[2].path, "0"));
	approved = stat_of("promote", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_with_holes") == 0);
	CHECK(stat_of("promote", "approved") == approved);
	put_back(kept, ARRAY_SIZE(kept));
}

/* Swap in memory, which allows reading blocks of several pages. */
static bool swap_to_memory(void)
{
	static char page[PAGE];
	int fd = open("/dev/zram0", O_WRONLY);
	uint32_t head[] = { 1, 32 * MIB / PAGE - 1, 0 };
	bool done;

	if (fd < 0 || !write_text("/sys/block/zram0/disksize", "32M")) {
		close(fd);
		return false;
	}
	memcpy(page + 1024, head, sizeof(head));
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	done = pwrite(fd, page, PAGE, 0) == PAGE && !fsync(fd);
	close(fd);
	return done && !swapon("/dev/zram0", SWAP_FLAG_PREFER | 100);
}

static void swap_in_is_not_priced_as_a_clear(void)
{
	int found = 0;

	if (access(THP "hugepages-64kB/enabled", W_OK) || !swap_to_memory()) {
		lacks = "no blocks of 64 KiB, or no swap in memory";
		return;
	}
	CHECK(write_text(THP "hugepages-64kB/enabled", "always"));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	for (int i = 0; i < 10; i++) {
		found = run(FIRST "0 0x800000 " FILLED, "swap_out_and_in");
		/* Another task may have prevented the swap-out. */
		if (found != 202)
			break;
	}
	if (!CHECK(!found))
		ksft_print_msg("the program says %d\n", found);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(THP "hugepages-64kB/enabled", "never"));
	CHECK(!swapoff("/dev/zram0"));
	CHECK(write_text("/sys/block/zram0/reset", "1"));
}

const struct test econ_promote_tests[] = {
	TEST(no_fault_waits_for_a_block),
	TEST(smaller_blocks_are_priced_too),
	TEST(khugepaged_copies_what_pays),
	TEST(promotion_is_booked_once),
	TEST(swap_in_is_not_priced_as_a_clear),
	{}
};

const struct part econ_promote_parts[] = {
	PART(wait_for_promotion),
	PART(wait_in_vain),
	PART(wait_after_promotion),
	PART(wait_with_holes),
	PART(swap_out_and_in),
	{}
};
