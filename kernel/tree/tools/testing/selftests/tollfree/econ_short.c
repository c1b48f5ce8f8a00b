// SPDX-License-Identifier: GPL-2.0-only
/* Tests of memory that is short: pages that a program does not touch have a cost. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "econ.h"

#define GROUP		"/tmp/econ-short-cgroup"
/* A tenth is touched: worth a huge page only as long as the rest costs nothing. */
#define SPARSE		FIRST "0 0x800000 1000000 51 100\n"
/* The same for a collapse, which costs more. */
#define SPARSE_RICH	FIRST "0 0x800000 1500000 51 100\n"
#define FULL		FIRST "0 0x800000 " FILLED

static int touch_each_in_short_group(void)
{
	return write_text(GROUP "/small/cgroup.procs", "0") ? touch_each_of_8() : 202;
}

static void check_group(const char *limit, long huge)
{
	long approved = stat_of("huge", "approved"), asked = stat_of("huge", "asked");

	CHECK(write_text(GROUP "/small/memory.max", limit));
	CHECK(run(SPARSE, "touch_each_in_short_group") == huge);
	CHECK(stat_of("huge", "asked") >= asked + 4);
	CHECK(stat_of("huge", "approved") == approved + huge / 2);
}

static void memory_costs_in_a_full_group(void)
{
	mount_groups(GROUP);
	mkdir(GROUP "/small", 0755);
	if (!access(GROUP "/small/memory.max", W_OK)) {
		check_group("64M", 8);
		check_group("1M", 0);
	} else {
		lacks = "no groups";
	}
	rmdir(GROUP "/small");
	unmount_groups(GROUP);
}

/* Return: a field of node 0, in MiB; -1 if there is none. */
static long node_memory(const char *name)
{
	char text[4096], *at;

	read_from("/sys/devices/system/node/node0/meminfo", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) >> 10 : -1;
}

/*
 * Watermarks of 34 and 64 % of a zone, and free memory between them, so that kswapd does
 * not run, also when 128 MiB of 1 GiB are used.
 */
#define SCALE		"3000"
#define PERCENT_FREE	55

/* Return: memory that is used so that node 0 has so much free, or NULL. */
static char *use_memory_of_node(size_t *size)
{
	char *memory;

	*size = node_memory("MemTotal:") * MIB;
	memory = map_on(*size, 0);
	if (!memory || madvise(memory, *size, MADV_NOHUGEPAGE))
		return NULL;
	for (size_t at = 0; at < *size &&
	     node_memory("MemFree:") * 100 > node_memory("MemTotal:") * PERCENT_FREE; at += MIB)
		touch(memory + at, MIB);
	return memory;
}

static void check_faults_of_short_memory(void)
{
	CHECK(run(SPARSE, "touch_each_of_8") == 0);
	CHECK(run(FULL, "touch_8") == 8);
	CHECK(run(SPARSE_RICH, "wait_in_vain") == 0);
}

static void check_faults_of_spare_memory(void)
{
	CHECK(run(SPARSE, "touch_each_of_8") == 8);
	CHECK(run(SPARSE_RICH, "wait_for_promotion") == 8);
}

/* Call a function when memory is used, and another one when node 0 is short of it. */
static void when_short(void (*before)(void), void (*then)(void))
{
	struct kept kept[] = {
		{ .path = "/proc/sys/vm/watermark_scale_factor" },
		{ .path = "/proc/sys/vm/lowmem_reserve_ratio" },
	};
	char *memory;
	size_t size;

	if (node_memory("MemTotal:") < 0) {
		lacks = "nothing tells the memory of a node";
		return;
	}
	keep(kept, ARRAY_SIZE(kept));
	/* All of the lowest zone, which is small and always free, is reserved. */
	CHECK(write_text(kept[1].path, "1"));
	memory = use_memory_of_node(&size);
	before();
	if (CHECK(memory)) {
		CHECK(write_text(kept[0].path, SCALE));
		then();
		CHECK(!munmap(memory, size));
	}
	put_back(kept, ARRAY_SIZE(kept));
}

static void memory_costs_where_a_node_is_short(void)
{
	struct kept kept[] = {
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
	};

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "10"));
	CHECK(write_text(kept[1].path, "100000"));
	when_short(check_faults_of_spare_memory, check_faults_of_short_memory);
	put_back(kept, ARRAY_SIZE(kept));
}

/* 64 faults that could use a zeroed block, whatever memory costs. */
static void want_64(void)
{
	CHECK(!run("mmap 0 27 3 0 0x8000000 " FILLED, "touch_each_of_128"));
}

static void check_that_none_is_kept(void)
{
	CHECK(write_text(SYSFS "costs/reclaim_page", "900000000"));
	CHECK(limit_to("8"));
	want_64();
	CHECK(!wait_for_blocks(1, 3));
}

/* 64 faults by 4 blocks save 3.4 ms for each, and their memory costs 1.5 ms. */
static void check_that_some_are_kept(void)
{
	check_that_none_is_kept();
	CHECK(write_text(SYSFS "costs/reclaim_page", "3000"));
	CHECK(write_text(SYSFS "costs/clear_huge", "216000"));
	want_64();
	CHECK(wait_for_blocks(4, PATIENCE) >= 4);
	all_are_accounted_for();
}

static void do_nothing(void)
{
}

static void blocks_pay_for_memory_that_is_short(void)
{
	when_short(do_nothing, check_that_some_are_kept);
}

const struct test econ_short_tests[] = {
	TEST(memory_costs_in_a_full_group),
	TEST(memory_costs_where_a_node_is_short),
	TEST(blocks_pay_for_memory_that_is_short),
	{}
};

const struct part econ_short_parts[] = {
	PART(touch_each_in_short_group),
	{}
};
