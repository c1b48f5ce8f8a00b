// SPDX-License-Identifier: GPL-2.0-only
/* Tests of blocks that are zeroed ahead: they contain only zeros when a process takes them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

#define ZEROED		SYSFS "zeroed_blocks/"

static bool is_done;

static int touch_each(size_t size)
{
	char *memory;

	memory = map(size);
	if (!memory)
		return 200;
	for (size_t at = PAGE; at < size; at += REGION)
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
	for (size_t at = 0; at < size; at++)
		if (memory[at] != (at % REGION == PAGE) && size == 8 * MIB)
			return 201;
	return huge_in(memory);
}

int touch_each_of_8(void)
{
	return touch_each(8 * MIB);
}

/* By then it has used CPU time that pays for zeroing. */
static int touch_each_of_128(void)
{
	struct timespec it = {};

	while (!it.tv_sec && it.tv_nsec < 20000000)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &it);
	return touch_each(128 * MIB) < 200 ? 0 : 200;
}

/* Use up zeroed blocks, and leave time to make more. */
static int use_up_zeroed(void)
{
	for (int i = 0; i < 80; i++)
		if (!touch_heap_again(20000))
			return 200;
	return 0;
}

/* Credit for background work, in milliseconds. */
static double zero_credit(void)
{
	char text[32];

	read_from(ZEROED "credit_ns", text, sizeof(text));
	return atol(text) / 1e6;
}

long zeroed(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), ZEROED "%s", what);
	return number(path);
}

long wait_for_blocks(long blocks, int seconds)
{
	for (int i = 0; i < 100 * seconds && zeroed("blocks") < blocks; i++)
		usleep(10000);
	return zeroed("blocks");
}

void want_many(void)
{
	CHECK(!run("mmap 0 27 3 0 0x8000000 " FAIR, "touch_each_of_128"));
}

/*
 * Make blocks of free memory. Pages in the lists of CPUs are in the way of many, as those of a
 * process that held a page of each piece: each refresh shortens the lists by an eighth.
 */
void free_more_blocks(void)
{
	for (int i = 0; i < 32; i++)
		write_text("/proc/sys/vm/stat_refresh", "1");
	write_text("/proc/sys/vm/compact_memory", "1");
}

/* Why there are too few blocks. */
void print_stock(void)
{
	ksft_print_msg("%ld blocks, credit %.1f ms, a block costs %.1f ms, %ld of %ld approved\n",
		       zeroed("blocks"), zero_credit(),
		       number(SYSFS "costs/clear_huge") / 1e6, stat_of("zero", "approved"),
		       stat_of("zero", "asked"));
	print_file("/proc/buddyinfo");
}

/*
 * Want more than the limit, until the limit is reached. The thread takes only free blocks,
 * and earlier tests may have left too few.
 */
bool stock_up(long blocks)
{
	for (int i = 0; i < 12; i++) {
		if (wait_for_blocks(blocks, i ? 5 : 1) >= blocks)
			return true;
		if (i)
			free_more_blocks();
		want_many();
	}
	print_stock();
	return CHECK(zeroed("blocks") >= blocks);
}

bool limit_to(const char *blocks)
{
	return CHECK(write_text(ZEROED "limit", blocks));
}

/* No block is lost. */
void all_are_accounted_for(void)
{
	CHECK(write_text(ZEROED "limit", "0"));
	CHECK(!zeroed("blocks"));
	CHECK(zeroed("made") + zeroed("put_back") == zeroed("taken") + zeroed("given_back"));
}

/* Make free memory non-zero. */
static void fill_and_free(size_t size)
{
	char *memory = map(size);

	CHECK(memory);
	madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 0xa5, size);
	munmap(memory, size);
}

/* All blocks of the program are kept ones. Other tasks may have taken some before. */
bool takes_all(const char *rows, const char *part)
{
	for (int i = 0; i < 12; i++) {
		long taken;

		if (!stock_up(4))
			return false;
		taken = zeroed("taken");
		if (run(rows, part) == 8 && zeroed("taken") == taken + 4)
			return true;
	}
	return false;
}

static void blocks_are_zeroed_ahead(void)
{
	long missed = zeroed("missed"), faults, taken;

	/* Clearing costs more than the benefit. */
	CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_of_8") == 0);
	CHECK(zeroed("missed") == missed + 4);
	fill_and_free(128 * MIB);
	limit_to("8");
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	faults = faults_of("huge_zeroed");
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_of_8"));
	CHECK(faults_of("huge_zeroed") >= faults + 4);
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	CHECK(takes_all(FIRST "0 0x800000 " RICH, "touch_each_of_8"));
	/* There were no decisions about others. */
	CHECK(stock_up(4));
	taken = zeroed("taken");
	CHECK(run(NULL, "touch_each_of_8") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_advised") == 8);
	CHECK(zeroed("taken") == taken);
	all_are_accounted_for();
}

/*
 * A process that hardly runs uses up blocks faster than it could clear them. Zeroing for
 * it takes no more time than it has run.
 */
static void zeroing_is_paid_with_the_callers_time(void)
{
	double credit, ran;
	long blocks;

	CHECK(write_text(SYSFS "costs/clear_huge", "20000000"));
	/* The credit of other programs is used up. */
	forget_ledgers();
	limit_to("8");
	credit = zero_credit();
	blocks = zeroed("made") + zeroed("abandoned");
	ran = -children_ran();
	CHECK(!run("heap 0 0x8000000 " FAIR, "use_up_zeroed"));
	ran += children_ran();
	blocks = zeroed("made") + zeroed("abandoned") - blocks;
	ksft_print_msg("ran %.1f ms, credit %.1f ms, %ld blocks of 20 ms each\n", ran, credit,
		       blocks);
	/* A block in work is not paid yet. */
	CHECK(20 * (blocks - 1) <= credit + ran);
	all_are_accounted_for();
}

static void a_limit_holds(void)
{
	limit_to("3");
	CHECK(stock_up(3));
	usleep(100000);
	CHECK(zeroed("blocks") == 3);
	limit_to("2");
	CHECK(zeroed("blocks") == 2);
	limit_to("0");
	CHECK(!zeroed("blocks"));
	CHECK(!write_text(ZEROED "limit", "-1") && errno == EINVAL);
	CHECK(!write_text(ZEROED "limit", "many") && errno == EINVAL);
	CHECK(!write_text(ZEROED "limit", "4000000000") && errno == EINVAL);
	CHECK(!zeroed("limit"));
	all_are_accounted_for();
}

/* An abandoned block is not paid either. */
static void a_limit_of_0_leaves_nothing(void)
{
	long abandoned = zeroed("abandoned"), given_up, before;

	want_many();
	before = memory_of("MemFree:");
	for (int i = 0; i < 2000 && zeroed("abandoned") < abandoned + 200; i++) {
		limit_to("8");
		usleep(i * 61 % 3000);
		limit_to("0");
		given_up = zeroed("abandoned");
		if (!CHECK(!zeroed("blocks")))
			return;
		usleep(1000);
		/* It was not abandoned only afterwards. */
		CHECK(zeroed("abandoned") == given_up);
		if (i % 100 == 99)
			want_many();
	}
	all_are_accounted_for();
	if (zeroed("abandoned") < abandoned + 200)
		lacks = "too few were in work";
	else
		CHECK(memory_of("MemFree:") > before - 200);
}

static void modes_empty(void)
{
	limit_to("8");
	CHECK(stock_up(4));
	CHECK(write_text(SYSFS "mode", "off"));
	CHECK(!zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	CHECK(stock_up(4));
	CHECK(write_text(SYSFS "mode", "observe"));
	CHECK(!zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
}

static void nothing_is_kept_for_an_observer(void)
{
	long made = zeroed("made"), taken = zeroed("taken"), hits = zeroed("would_hit");
	long asked = stat_of("zero", "asked");

	CHECK(write_text(SYSFS "mode", "observe"));
	limit_to("8");
	for (int i = 0; i < 60 && zeroed("would_hit") < hits + 4; i++) {
		run(FIRST "0 0x800000 " RICH, "touch_each_of_8");
		sleep(1);
	}
	CHECK(zeroed("would_hit") >= hits + 4);
	CHECK(zeroed("would_make") >= 4);
	CHECK(zeroed("would_save_ns") >= 4 * number(SYSFS "costs/clear_huge"));
	CHECK(stat_of("zero", "asked") > asked);
	CHECK(zeroed("made") == made && zeroed("taken") == taken && !zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
}

static void *switch_limits(void *unused)
{
	static const char *const limits[] = { "8", "0", "8", "1" };

	for (int i = 0; !get(is_done); i++) {
		write_text(ZEROED "limit", limits[i % 4]);
		write_text(SYSFS "mode", i % 16 ? "on" : i % 32 ? "off" : "observe");
		if (i % 8 == 0)
			write_text("/proc/sys/vm/drop_caches", "2");
		usleep(i * 61 % 5000);
	}
	return unused;
}

static void blocks_come_and_go_under_load(void)
{
	pthread_t thread;

	fill_and_free(128 * MIB);
	set(is_done, false);
	CHECK(!pthread_create(&thread, NULL, switch_limits, NULL));
	for (int i = 0; i < 20; i++)
		CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_of_8") <= 8);
	set(is_done, true);
	pthread_join(thread, NULL);
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
}

const struct test econ_zero_tests[] = {
	TEST(blocks_are_zeroed_ahead),
	TEST(zeroing_is_paid_with_the_callers_time),
	TEST(a_limit_holds),
	TEST(a_limit_of_0_leaves_nothing),
	TEST(modes_empty),
	TEST(nothing_is_kept_for_an_observer),
	TEST(blocks_come_and_go_under_load),
	{}
};

const struct part econ_zero_parts[] = {
	PART(touch_each_of_8),
	PART(touch_each_of_128),
	PART(use_up_zeroed),
	{}
};
