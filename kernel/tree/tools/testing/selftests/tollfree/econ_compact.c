// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the ledger, which pays for compaction. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

/* Largest loss of one fault: a region that is worth more than a second tries anyway. */
#define HOSTILE		"heap 0 0x8000000 990000000 512 100\n"
/* Upper bound of the losses, and of the credit, in the ledger of a node. */
#define MOST_OF_A_POT	1000000000L
/* An eighth of the CPU time of a process is credit for compaction, all of it for zeroing. */
#define COMPACT_SHARE	8

/*
 * Touch a page of each region of the heap, and free it with its page tables, so that the
 * next touch is another decision; then do not run for a while.
 */
bool touch_heap_again(useconds_t pause)
{
	char *begin = sbrk(8 * MIB);

	if (begin == (void *)-1)
		return false;
	for (size_t at = 0; at < 8 * MIB; at += REGION)
		touch(begin + at, PAGE);
	if (sbrk(-8 * (long)MIB) == (void *)-1)
		return false;
	usleep(pause);
	return true;
}

/* Lack as many huge pages as possible with little CPU time. */
static int lose_often(void)
{
	for (int i = 0; i < 60; i++)
		if (!touch_heap_again(2000))
			return 200;
	return 0;
}

/* Sum of a field of the ledgers of all nodes. */
long ledgers(const char *number)
{
	char text[4096], *at = text;
	long sum = 0;

	read_from(SYSFS "stats/ledger", text, sizeof(text));
	while ((at = strstr(at, number))) {
		at += strlen(number);
		sum += atol(at);
	}
	return sum;
}

/* Regions that are counted, and those that may be touched before one of them is huge. */
#define REGIONS		12
#define MOST_BEFORE	36

/* Timeout for a block that nobody asks for, or that costs too much, in seconds. */
#define MOST_WAIT	8

static double seconds_of(clockid_t clock)
{
	struct timespec it = {};

	clock_gettime(clock, &it);
	return it.tv_sec + it.tv_nsec / 1e9;
}

/* Clocks of the CPU times of kcompactd, of all nodes. Return: their number. */
static int find_kcompactd(clockid_t *clocks)
{
	int nr;

	for (nr = 0; nr < MOST_NODES; nr++) {
		char name[16];
		pid_t pid;

		snprintf(name, sizeof(name), "kcompactd%d", nr);
		pid = thread_of(name);
		if (!pid || clock_getcpuclockid(pid, &clocks[nr]))
			break;
	}
	return nr;
}

/* CPU time of kcompactd, of all nodes, in seconds. */
static double kcompactd_ran(void)
{
	static clockid_t clocks[MOST_NODES];
	static int nr;
	double sum = 0;

	if (!nr)
		nr = find_kcompactd(clocks);
	for (int i = 0; i < nr; i++)
		sum += seconds_of(clocks[i]);
	return sum;
}

/*
 * Whether there is a free block, outside of the zone that is reserved. The numbers of a line
 * are those of the free pieces of orders 0 to 10.
 */
static bool has_free_block(void)
{
	char text[4096], *line = text;

	read_from("/proc/buddyinfo", text, sizeof(text));
	for (char *end; (end = strchr(line, '\n')); line = end + 1) {
		long order_9, order_10;
		char zone[16];

		*end = '\0';
		if (sscanf(line,
			   "Node %*d, zone %15s %*d %*d %*d %*d %*d %*d %*d %*d %*d %ld %ld",
			   zone, &order_9, &order_10) == 3 &&
		    strcmp(zone, "DMA") && order_9 + order_10)
			return true;
	}
	return false;
}

/*
 * Run for long enough to pay for the work of kcompactd since it had run for a time, and wait
 * for a block.
 */
static void pay_and_wait(double ran)
{
	time_t begin = now();

	while ((seconds_of(CLOCK_PROCESS_CPUTIME_ID) < COMPACT_SHARE * (kcompactd_ran() - ran) ||
		!has_free_block()) && now() < begin + MOST_WAIT)
		;
}

/*
 * Count from the first huge region on: before, kcompactd may be busy for others, or the ledger
 * in debt. Return: number of regions that were huge at once.
 */
static int touch_as_blocks_come(void)
{
	char *memory = map((MOST_BEFORE + REGIONS) * REGION + REGION);
	int huge = 0, before = 0, counted = 0;
	double ran = kcompactd_ran();

	if (!memory || !ran)
		return 200;
	memory = region_from(memory);
	while (before < MOST_BEFORE && counted < REGIONS) {
		long was = huge_in(memory);

		touch(memory + (before + counted) * REGION, PAGE);
		huge += huge_in(memory) > was;
		before += !huge;
		counted += !!huge;
		pay_and_wait(ran);
	}
	if (before > 1)
		ksft_print_msg("%d regions were not huge before\n", before);
	return huge;
}

/* Most regions of that program get a block. Earlier programs left no debt to the ledger. */
void check_that_blocks_come(void)
{
	int huge;

	forget_ledgers();
	huge = run("mmap 0 26 3 0 0x6200000 " RICHEST, "touch_as_blocks_come");
	ksft_print_msg("%d of %d regions were huge at once\n", huge, REGIONS);
	if (!CHECK(huge >= REGIONS * 3 / 4 && huge <= REGIONS))
		print_file(SYSFS "stats/ledger");
}

/* Cost of an attempt. */
#define ATTEMPT_NS	3300000L
/* Half-life of losses, in seconds. */
#define HALF_LIFE	17
/* How long the ledger may be in debt, in seconds. */
#define MOST_DEBT	20

struct ledger {
	long faults;
	long asked;
	long refused_ns;
	long made;
};

/* kcompactd pays before it counts its result: read the result first. */
static struct ledger ledger_now(void)
{
	struct ledger it;

	it.made = ledgers("blocks_made ");
	it.refused_ns = ledgers("refused_ns ");
	it.faults = ledgers("faults ");
	it.asked = stat_of("huge", "asked");
	return it;
}

/* A block with known pages in its way costs at least an attempt as well. */
#define LEAST_MOVE	"206250"

/* At least this number of attempts was paid. Each fault added once. */
static void check_that_it_is_paid(struct ledger before, long attempts)
{
	struct ledger after = ledger_now();

	if (!CHECK(attempts > 0))
		print_file(SYSFS "stats/ledger");
	CHECK(after.refused_ns <= before.refused_ns - attempts * ATTEMPT_NS +
				  (after.asked - before.asked) * MOST_NS);
}

/* The loss of a rich program is counted, but is less than the cost of a block. */
static void check_that_losses_are_counted(void)
{
	struct ledger before = ledger_now(), after;
	long asked = stat_of("compact", "asked"), least;
	time_t begin = now();

	CHECK(let_blocks_cost("9000000000000", "9000000000000"));
	do {
		lose();
		after = ledger_now();
	} while (after.faults < before.faults + 4 && now() < begin + PATIENCE);
	CHECK(after.faults >= before.faults + 4);
	least = before.refused_ns + (after.faults - before.faults) * LEAST_NS;
	if (least > MOST_OF_A_POT)
		least = MOST_OF_A_POT;
	CHECK(after.refused_ns >= least >> ((now() - begin) / HALF_LIFE + 1));
	CHECK(after.refused_ns <= before.refused_ns + (after.faults - before.faults) * MOST_NS);
	CHECK(stat_of("compact", "asked") == asked);
	CHECK(let_blocks_cost("3300000", LEAST_MOVE));
}

/*
 * Advised memory does not wait either. Its losses pay for compaction as well, and it requests
 * none beside them.
 */
static void check_that_advised_losses_are_counted(void)
{
	struct ledger before;
	time_t begin = now();
	long wakes;
	int huge;

	CHECK(let_blocks_cost("9000000000000", "9000000000000"));
	do {
		hold_more();
		before = ledger_now();
		wakes = vmstat_of("\ncompact_daemon_wake ");
		huge = run(FIRST "0 0x800000 " RICH, "touch_advised");
	} while (huge && now() < begin + PATIENCE);
	CHECK(!huge && ledger_now().faults >= before.faults + 3);
	CHECK(vmstat_of("\ncompact_daemon_wake ") == wakes);
	CHECK(let_blocks_cost("3300000", LEAST_MOVE));
}

/* Decisions are counted, and have no effect. */
static void check_that_it_is_observed(void)
{
	struct ledger before = ledger_now();
	long approved = stat_of("compact", "approved"), cost = stat_of("compact", "cost_ns");
	time_t begin = now();

	CHECK(write_text(SYSFS "mode", "observe"));
	do {
		lose();
	} while (stat_of("compact", "approved") == approved && now() < begin + PATIENCE);
	usleep(200000);
	approved = stat_of("compact", "approved") - approved;
	CHECK(stat_of("compact", "cost_ns") - cost == approved * ATTEMPT_NS);
	check_that_it_is_paid(before, approved);
	CHECK(ledger_now().made == before.made);
	CHECK(write_text(SYSFS "mode", "on"));
}

/* Although the ledger has enough. */
static void check_that_the_poor_wake_nobody(void)
{
	struct ledger before = ledger_now(), after;
	long asked = stat_of("compact", "asked");

	hold_more();
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	usleep(200000);
	after = ledger_now();
	/* It may be halved meanwhile. */
	CHECK(before.refused_ns >= ATTEMPT_NS && (after.refused_ns == before.refused_ns ||
						  after.refused_ns == before.refused_ns / 2));
	CHECK(after.faults == before.faults);
	CHECK(stat_of("compact", "asked") == asked);
}

/*
 * The block that kcompactd makes may be gone before a fault comes. Attempts that fail leave a
 * debt, which programs that hardly run repay slowly.
 */
static void check_that_the_rich_get_a_block(void)
{
	struct ledger before = ledger_now();
	long approved = stat_of("compact", "approved");
	time_t begin = now(), forgot = begin;

	do {
		if (now() >= forgot + MOST_DEBT) {
			print_file(SYSFS "stats/ledger");
			forget_ledgers();
			before = ledger_now();
			forgot = now();
		}
		lose();
		usleep(10000);
	} while (ledger_now().made == before.made && now() < begin + PATIENCE);
	check_that_it_is_paid(before, ledger_now().made - before.made);
	CHECK(stat_of("compact", "approved") > approved);
	begin = now();
	while (run(FIRST "0 0x800000 " RICH, "touch_8") < 2 && now() < begin + PATIENCE)
		usleep(10000);
	CHECK(now() < begin + PATIENCE);
}

/* The fault that takes a block asks for the next one. */
static void check_that_the_next_is_made_ahead(void)
{
	struct ledger before = ledger_now();

	CHECK(let_blocks_cost("1000", "2"));
	hold_more();
	check_that_blocks_come();
	ksft_print_msg("%ld blocks were made\n", ledger_now().made - before.made);
}

static void what_is_refused_pays_for_compaction(void)
{
	keep(costs_of_blocks, NR_COSTS_OF_BLOCKS);
	CHECK(let_blocks_cost("3300000", LEAST_MOVE));
	CHECK(write_text(THP "defrag", "madvise"));
	if (CHECK(hold_memory())) {
		check_that_losses_are_counted();
		check_that_advised_losses_are_counted();
		check_that_it_is_observed();
		check_that_the_poor_wake_nobody();
		check_that_the_rich_get_a_block();
		check_that_the_next_is_made_ahead();
	}
	CHECK(let_go());
	put_back(costs_of_blocks, NR_COSTS_OF_BLOCKS);
}

/* Attempts to compact a zone in which no page may be moved. */
static void fail_to_compact(int attempts)
{
	long failed = ledgers("blocks_failed ");
	time_t begin = now();

	do {
		/* The ledger owes nothing for the last one. */
		forget_ledgers();
		lose();
		usleep(10000);
	} while (ledgers("blocks_failed ") < failed + attempts && now() < begin + PATIENCE);
	CHECK(ledgers("blocks_failed ") >= failed + attempts);
}

/*
 * As many failures as stock code needs to skip a zone 63 times, and all its blocks are marked
 * to be skipped then. If its pages can be moved, blocks are made nevertheless.
 */
static void failures_do_not_stop_compaction(void)
{
	static struct kept unevictable[] = {
		{ .path = "/proc/sys/vm/compact_unevictable_allowed" },
	};

	keep(costs_of_blocks, NR_COSTS_OF_BLOCKS);
	keep(unevictable, ARRAY_SIZE(unevictable));
	CHECK(let_blocks_cost("1000", "2"));
	CHECK(write_text(THP "defrag", "madvise"));
	if (CHECK(hold_memory()) && hold_locked()) {
		CHECK(write_text(unevictable[0].path, "0"));
		fail_to_compact(8);
		CHECK(write_text(unevictable[0].path, "1"));
		hold_more();
		check_that_blocks_come();
	}
	CHECK(let_go());
	put_back(unevictable, ARRAY_SIZE(unevictable));
	put_back(costs_of_blocks, NR_COSTS_OF_BLOCKS);
}

/*
 * A program with a hostile profile: the loss that it can claim is bounded, and so is the
 * work of kcompactd for it, by the CPU time of the program.
 */
static void a_hostile_profile_buys_little_compaction(void)
{
	int nodes = memory_nodes();
	long attempts, faults, moved;
	double credit, ran;

	keep(costs_of_blocks, NR_COSTS_OF_BLOCKS);
	CHECK(let_blocks_cost("9000000000000", "9000000000000"));
	if (CHECK(hold_memory())) {
		faults = ledgers("faults ");
		for (int i = 0; i < 20 && ledgers("faults ") < faults + 40; i++) {
			hold_more();
			CHECK(!run(HOSTILE, "lose_often"));
		}
		CHECK(ledgers("faults ") >= faults + 40);
		if (!CHECK(ledgers("refused_ns ") <= nodes * MOST_OF_A_POT))
			ksft_print_msg("%ld ns were refused\n", ledgers("refused_ns "));
		/* Clear the credit of other programs. */
		CHECK(write_text(SYSFS "mode", "off"));
		CHECK(!ledgers("refused_ns ") && !ledgers("credit_ns "));
		CHECK(write_text(SYSFS "mode", "on"));
		CHECK(let_blocks_cost("5000000", "9765"));
		hold_more();
		credit = ledgers("credit_ns ") / 1e6;
		attempts = ledgers("blocks_made ") + ledgers("blocks_failed ");
		moved = ledgers("pages_moved ");
		ran = -children_ran();
		CHECK(!run(HOSTILE, "lose_often"));
		ran += children_ran();
		usleep(200000);
		attempts = ledgers("blocks_made ") + ledgers("blocks_failed ") - attempts;
		moved = ledgers("pages_moved ") - moved;
		ksft_print_msg("ran %.1f ms, credit %.1f ms, %ld attempts, %ld pages known\n",
			       ran, credit, attempts, moved);
		/* Known pages cost their part. The last attempt of a node may be a debt. */
		attempts -= attempts < moved ? attempts : moved;
		CHECK(5 * (attempts - nodes + moved / 512.0) <= credit + ran / COMPACT_SHARE);
	}
	CHECK(let_go());
	put_back(costs_of_blocks, NR_COSTS_OF_BLOCKS);
}

const struct test econ_compact_tests[] = {
	TEST(what_is_refused_pays_for_compaction),
	TEST(failures_do_not_stop_compaction),
	TEST(a_hostile_profile_buys_little_compaction),
	{}
};

const struct part econ_compact_parts[] = {
	PART(lose_often),
	PART(touch_as_blocks_come),
	{}
};
