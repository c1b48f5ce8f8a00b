// SPDX-License-Identifier: GPL-2.0-only
/* Tests of blocks that are made by moving the few pages that are in their way. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "econ.h"

/* One page of each is in use: 8 of a block; the others are free, in pieces of 32 and less. */
#define PIECE		(64 * PAGE)
/* Largest number of pages in the way of a block: other tasks use some, too. */
#define MOST_IN_WAY	128
/* Made of pages that other tasks use, in memory of several hundred blocks. */
#define FEW_BLOCKS	32
#define CHEAP		"2"
#define COSTLY		"9000000000000"
#define COST		SYSFS "costs/move_page"
#define MAKE		SYSFS "make_in_faults"

/* Return: MiB of huge pages that a program gets where no block is free. */
static int huge_of(const char *rows)
{
	return hold_more() ? run(rows, "touch_8") : -1;
}

/* Each region of the program gets a block; other tasks may have freed some of them. */
static void check_that_faults_make_blocks(void)
{
	long before = faults_of("huge_compacted"), made;
	time_t begin = now();
	int huge;

	CHECK(write_text(COST, CHEAP));
	do {
		huge = huge_of(FIRST "0 0x800000 " RICH);
		made = faults_of("huge_compacted") - before;
	} while ((huge != 8 || made < 3) && now() < begin + PATIENCE);
	CHECK(huge == 8 && made >= 3);
}

/* Other tasks may have freed a block. */
static void check_that_there_are_none(const char *rows)
{
	time_t begin = now();
	int huge;

	do {
		huge = huge_of(rows);
	} while (huge && now() < begin + PATIENCE);
	CHECK(!huge);
}

static void check_that_others_make_none(void)
{
	long made = faults_of("huge_compacted");

	hold_more();
	touch_unprofiled(false);
	CHECK(faults_of("huge_compacted") == made);
}

/* Leave free pages of many blocks in the lists of all CPUs. */
static void fill_lists_of_cpus(void)
{
	cpu_set_t all;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	for (int cpu = 0; cpu < get_nprocs(); cpu++) {
		char *memory = map(REGION);

		stay_on(cpu);
		if (CHECK(memory && !madvise(memory, REGION, MADV_NOHUGEPAGE)))
			touch(memory, REGION);
		munmap(memory, REGION);
	}
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
}

/* In the background, where faults do not. */
static void check_that_kcompactd_makes_blocks(void)
{
	long moved = ledgers("pages_moved "), blocks = ledgers("blocks_made ");
	long failed = ledgers("blocks_failed "), waited = faults_of("huge_compacted");

	CHECK(write_text(MAKE, "0"));
	CHECK(write_text(COST, CHEAP));
	hold_more();
	fill_lists_of_cpus();
	check_that_blocks_come();
	moved = ledgers("pages_moved ") - moved;
	blocks = ledgers("blocks_made ") - blocks;
	failed = ledgers("blocks_failed ") - failed;
	ksft_print_msg("%ld pages were in the way of %ld blocks, and of %ld that were not made\n",
		       moved, blocks, failed);
	CHECK(blocks > 0 && moved >= blocks && moved <= (blocks + failed) * MOST_IN_WAY);
	CHECK(faults_of("huge_compacted") == waited);
	CHECK(write_text(MAKE, "1"));
}

static struct kept kept[] = {
	{ .path = COST },
	{ .path = "/proc/sys/vm/compact_unevictable_allowed" },
	{ .path = SYSFS "costs/compact_block" },
};

/*
 * Hold memory in pieces. Only blocks with known pages in their way pay. Faults are counted
 * by what they did.
 */
static bool begin_to_hold(void)
{
	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[2].path, COSTLY));
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	CHECK(write_text(THP "defrag", "madvise"));
	return CHECK(hold_memory_in(PIECE));
}

static void end_to_hold(void)
{
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	CHECK(let_go());
	put_back(kept, ARRAY_SIZE(kept));
}

static void blocks_are_made_by_moving_few_pages(void)
{
	if (begin_to_hold()) {
		check_that_faults_make_blocks();
		CHECK(write_text(MAKE, "0"));
		CHECK(write_text(COST, COSTLY));
		check_that_there_are_none(FIRST "0 0x800000 " RICH);
		CHECK(write_text(MAKE, "1"));
		check_that_there_are_none(FIRST "0 0x800000 " RICH);
		CHECK(write_text(COST, CHEAP));
		check_that_there_are_none(FIRST "0 0x800000 " POOR);
		check_that_others_make_none();
		check_that_kcompactd_makes_blocks();
	}
	end_to_hold();
}

/* By the blocks that faults make, as the time of a page. The other costs stay. */
static void moved_pages_have_a_measured_cost(void)
{
	time_t begin = now();

	if (begin_to_hold()) {
		CHECK(write_text(COST, "1"));
		CHECK(write_text(SYSFS "costs/samples", "0"));
		freeze_all_but("move_page");
		while (!is_measured("move_page") && now() < begin + PATIENCE)
			huge_of(FIRST "0 0x800000 " RICH);
		CHECK(write_text(SYSFS "costs/frozen", "1"));
		check_that_it_is_measured("move_page");
	}
	end_to_hold();
}

/* Not even if the pieces of these blocks were freed last. */
static void blocks_with_pinned_pages_are_not_chosen(void)
{
	if (begin_to_hold() && hold_pinned()) {
		check_that_faults_make_blocks();
		check_that_kcompactd_makes_blocks();
	}
	end_to_hold();
}

/* As compaction, which the administrator can keep from them. */
static void locked_pages_are_not_moved(void)
{
	long made;

	if (begin_to_hold() && hold_locked()) {
		CHECK(write_text(COST, CHEAP));
		CHECK(write_text(kept[1].path, "0"));
		made = faults_of("huge_compacted");
		check_that_there_are_none(FIRST "0 0x800000 " RICH);
		made = faults_of("huge_compacted") - made;
		ksft_print_msg("%ld blocks had no locked page\n", made);
		CHECK(made <= FEW_BLOCKS);
	}
	end_to_hold();
}

const struct test econ_block_tests[] = {
	TEST(blocks_are_made_by_moving_few_pages),
	TEST(moved_pages_have_a_measured_cost),
	TEST(blocks_with_pinned_pages_are_not_chosen),
	TEST(locked_pages_are_not_moved),
	{}
};
