// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of scarce blocks: regions that a profile describes, and that were not touched
 * yet, keep blocks from regions with less benefit.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

/* A mapping that only reserves addresses, the first of its length class. */
#define VAST		(2048 * MIB)
#define VAST_ROW	"mmap 0 31 3 0 %#lx " RICH FIRST "0 0x800000 " FILLED
/* More regions wait than there are free blocks, by this number. */
#define TOO_MANY	64

static char *map_vast(void)
{
	char *at = mmap(NULL, VAST, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* The huge zero page takes no block. */
static void read_regions(const char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += REGION)
		__atomic_load_n(&memory[at], __ATOMIC_RELAXED);
}

static int touch_beside_vast(void)
{
	return map_vast() ? touch_8() : 200;
}

static int touch_after_reading(void)
{
	char *vast = map_vast();

	if (!vast)
		return 200;
	read_regions(vast, VAST);
	return touch_8();
}

static int touch_after_one_often(void)
{
	char *vast = map_vast();

	if (!vast)
		return 200;
	for (int i = 0; i < 2 * TOO_MANY; i++) {
		touch(vast + REGION, 1);
		if (madvise(vast + REGION, REGION, MADV_DONTNEED))
			return 201;
	}
	return touch_8();
}

static int touch_in_child_after_reading(void)
{
	char *vast = map_vast();
	int status;
	pid_t pid;

	if (!vast)
		return 200;
	read_regions(vast, VAST);
	pid = fork();
	if (!pid)
		_exit(touch_8());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

/* Run a part with a profile of more regions than there are free blocks. */
static int run_with_many(const char *part)
{
	long blocks = memory_of("MemFree:") / 2;
	char rows[256];

	snprintf(rows, sizeof(rows), VAST_ROW, (blocks + TOO_MANY) * REGION);
	return run(rows, part);
}

static void a_block_is_kept_for_more_benefit(void)
{
	CHECK(memory_of("MemFree:") + TOO_MANY * 2 <= (long)(VAST / MIB));
	CHECK(run_with_many("touch_beside_vast") == 0);
	/* With a block for each of them. */
	CHECK(run("mmap 0 31 3 0 0x800000 " RICH FIRST "0 0x800000 " FILLED,
		  "touch_beside_vast") == 8);
}

static void what_was_read_waits_for_no_block(void)
{
	CHECK(run_with_many("touch_after_reading") == 8);
}

static void a_region_waits_once(void)
{
	CHECK(run_with_many("touch_after_one_often") == 0);
}

static void a_child_does_not_wait_for_what_its_parent_touched(void)
{
	CHECK(run_with_many("touch_in_child_after_reading") == 8);
}

const struct test econ_scarce_tests[] = {
	TEST(a_block_is_kept_for_more_benefit),
	TEST(what_was_read_waits_for_no_block),
	TEST(a_region_waits_once),
	TEST(a_child_does_not_wait_for_what_its_parent_touched),
	{}
};

const struct part econ_scarce_parts[] = {
	PART(touch_beside_vast),
	PART(touch_after_reading),
	PART(touch_after_one_often),
	PART(touch_in_child_after_reading),
	{}
};
