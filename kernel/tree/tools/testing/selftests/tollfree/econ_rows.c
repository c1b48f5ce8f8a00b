// SPDX-License-Identifier: GPL-2.0-only
/* Tests of rows of a profile: which memory they are for, and whether it becomes huge. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

int touch_8(void)
{
	char *memory = map(8 * MIB);

	if (!memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

static int touch_second(void)
{
	return map(8 * MIB) ? touch_8() : 200;
}

/* Another mapping without a profile replaces it. */
static int touch_anew(void)
{
	char *memory = map(8 * MIB);

	if (!memory || munmap(memory, 8 * MIB) ||
	    mmap(memory, 8 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

static int touch_moved(void)
{
	char *memory = map(8 * MIB), *between = map(64 * MIB), *to;

	if (!memory || !between)
		return 200;
	to = region_from(between);
	if (mremap(memory, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return 201;
	touch(to, 16 * MIB);
	return huge_in(to);
}

/* Longer than a short profiled run. */
#define OLD_MS	(SHORT_RUN_NS / 1000000 + 200)

void outlive_short_run(void)
{
	struct timespec it = {};

	while (it.tv_sec * 1000UL + it.tv_nsec / 1000000 < OLD_MS)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &it);
}

static int touch_after_sleep(void)
{
	usleep(OLD_MS * 1000);
	return touch_8();
}

static int touch_after_work(void)
{
	outlive_short_run();
	return touch_8();
}

static int touch_as_child(void)
{
	char *memory = map(8 * MIB);
	int status;
	pid_t pid;

	if (!memory)
		return 200;
	pid = fork();
	if (!pid) {
		touch(memory, 8 * MIB);
		_exit(huge_in(memory));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

static int touch_heap(void)
{
	char *begin = sbrk(0), *end = begin + 8 * MIB;

	if (sbrk(8 * MIB) == (void *)-1)
		return 200;
	touch(begin, end - begin);
	return huge_in(begin);
}

static char zeros[12 * MIB];

static int touch_bss(void)
{
	touch(zeros, sizeof(zeros));
	return huge_in(zeros + REGION);
}

/* Read before the first write. */
static int read_8(void)
{
	char *memory = map(8 * MIB);

	if (!memory)
		return 200;
	for (size_t at = 0; at < 8 * MIB; at += REGION)
		get(memory[at]);
	return huge_in(memory);
}

/* A request of the user needs no decision. */
static int touch_advised(void)
{
	char *memory = map(8 * MIB);

	if (!memory || madvise(memory, 8 * MIB, MADV_HUGEPAGE))
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* The requested size is the current one. */
static int mremap_in_place(void)
{
	char *memory = map(8 * MIB);

	if (!memory || mremap(memory, PAGE, PAGE, 0) != memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* Move the second region. Return: MiB in huge pages there, times 10, plus in the rest. */
static int mremap_a_part(void)
{
	char *memory = map(8 * MIB), *between, *to;

	/* A gap around each, so that they do not merge. */
	between = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!memory || between == MAP_FAILED)
		return 200;
	to = region_from(between + REGION);
	if (mremap(memory + REGION, REGION, REGION, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return 201;
	touch(memory, REGION);
	touch(memory + 2 * REGION, 2 * REGION);
	touch(to, REGION);
	return 10 * huge_in(to) + huge_in(memory) + huge_in(memory + 2 * REGION);
}

static void without_a_profile_all_is_stock(void)
{
	long asked = stat_of("huge", "asked");

	CHECK(run(NULL, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
}

static void what_pays_is_huge(void)
{
	long asked = stat_of("huge", "asked"), approved = stat_of("huge", "approved");

	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") >= asked + 4);
	CHECK(stat_of("huge", "approved") == approved + 4);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0x200000 0x400000 " RICH FIRST "0x400000 0x800000 " POOR, "touch_8") == 2);
}

/* Such a mapping is treated as without a profile. */
static void unprofiled_mapping_uses_stock_policy(void)
{
	long asked = stat_of("huge", "asked");

	CHECK(run("mmap 7 23 3 0 0x800000 " POOR, "touch_8") == 8);
	CHECK(run("mmap 0 23 1 0 0x800000 " POOR, "touch_8") == 8);
	CHECK(run("mmap 0 22 3 0 0x400000 " POOR, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
}

/* Extrapolation starts at a quarter. */
static void a_part_speaks_for_its_region(void)
{
	CHECK(run(FIRST "0 0x80000 400000 0 100\n", "touch_8") == 2);
	CHECK(run(FIRST "0 0x40000 400000 0 100\n", "touch_8") == 0);
}

static void confidence_and_touched_pages_count(void)
{
	CHECK(run(FIRST "0 0x800000 50000000 1 0\n", "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 50000000 1 50\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 51 100\n", "touch_8") == 0);
}

/* Without the huge zero page a read takes a block; with it the zero page pays or not. */
static void what_is_read_is_asked_about_too(void)
{
	struct kept kept[] = { { .path = THP "use_zero_page" } };
	long asked, approved;

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "0"));
	CHECK(run(NULL, "read_8") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH, "read_8") == 8);
	CHECK(run(FIRST "0 0x800000 " POOR, "read_8") == 0);
	CHECK(write_text(kept[0].path, "1"));
	asked = stat_of("huge", "asked");
	approved = stat_of("huge", "approved");
	CHECK(run(FIRST "0 0x800000 0 1 100\n", "read_8") == 0);
	CHECK(stat_of("huge", "asked") >= asked + 4 && stat_of("huge", "approved") == approved);
	CHECK(run(FIRST "0 0x800000 " RICH, "read_8") == 0);
	CHECK(stat_of("huge", "approved") >= approved + 4);
	put_back(kept, ARRAY_SIZE(kept));
}

static void mappings_are_told_apart_by_their_order(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR "mmap 1 23 3 0 0x800000 " RICH, "touch_second") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH "mmap 1 23 3 0 0x800000 " POOR, "touch_second") == 0);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_anew") == 8);
}

static void rows_move_and_grow_with_a_mapping(void)
{
	CHECK(run(FIRST "0 0x1000000 " RICH, "touch_moved") == 16);
	CHECK(run(FIRST "0 0x400000 " RICH, "touch_moved") == 4);
}

static void mremap_of_a_part_keeps_the_rest(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR, "mremap_in_place") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "mremap_in_place") == 8);
	CHECK(run(FIRST "0 0x200000 " POOR FIRST "0x200000 0x400000 " RICH
		  FIRST "0x400000 0x800000 " POOR, "mremap_a_part") == 20);
	CHECK(run(FIRST "0 0x200000 " RICH FIRST "0x200000 0x400000 " POOR
		  FIRST "0x400000 0x800000 " RICH, "mremap_a_part") == 6);
}

static void heap_and_bss_have_rows(void)
{
	/* Mappings need not begin at a multiple of 2 MiB. */
	CHECK(run("heap 0 0x4000000 " RICH, "touch_heap") >= 6);
	CHECK(run("heap 0 0x4000000 " POOR, "touch_heap") == 0);
	CHECK(run("bss 0 0x4000000 " RICH, "touch_bss") >= 10);
	CHECK(run("bss 0 0x4000000 " POOR, "touch_bss") == 0);
}

static void children_inherit(void)
{
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_as_child") == 8);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_as_child") == 0);
}

static int touch_as_child_after_work(void)
{
	outlive_short_run();
	return touch_as_child();
}

/*
 * The benefit that is left falls with the CPU time of the program. It pays at first, and
 * an eighth of it does not.
 */
static void benefit_falls_with_cpu_time(void)
{
	static const char rows[] = FIRST "0 0x800000 2000000 0 100\n";
	unsigned long before = profiled_run_ns;

	CHECK(write_text(SYSFS "costs/clear_huge", "700000"));
	profiled_run_ns = SHORT_RUN_NS;
	CHECK(run(rows, "touch_8") == 8);
	CHECK(run(rows, "touch_after_sleep") == 8);
	CHECK(run(rows, "touch_after_work") == 0);
	CHECK(run(rows, "touch_as_child_after_work") == 0);
	profiled_run_ns = before;
}

static void madvise_is_the_users_own_decision(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_advised") == 8);
}

const struct test econ_rows_tests[] = {
	TEST(without_a_profile_all_is_stock),
	TEST(what_pays_is_huge),
	TEST(unprofiled_mapping_uses_stock_policy),
	TEST(a_part_speaks_for_its_region),
	TEST(confidence_and_touched_pages_count),
	TEST(what_is_read_is_asked_about_too),
	TEST(mappings_are_told_apart_by_their_order),
	TEST(rows_move_and_grow_with_a_mapping),
	TEST(mremap_of_a_part_keeps_the_rest),
	TEST(heap_and_bss_have_rows),
	TEST(children_inherit),
	TEST(benefit_falls_with_cpu_time),
	TEST(madvise_is_the_users_own_decision),
	{}
};

const struct part econ_rows_parts[] = {
	PART(touch_8),
	PART(touch_second),
	PART(read_8),
	PART(touch_anew),
	PART(touch_moved),
	PART(touch_as_child),
	PART(touch_after_sleep),
	PART(touch_after_work),
	PART(touch_as_child_after_work),
	PART(touch_heap),
	PART(touch_bss),
	PART(touch_advised),
	PART(mremap_in_place),
	PART(mremap_a_part),
	{}
};
