// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the weights of memory cgroups, which share work in the background. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "econ.h"

#define GROUP		"/tmp/econ-weight-cgroup"
#define UPPER		GROUP "/upper"
#define LOWER		UPPER "/lower"
#define ZEROED		SYSFS "zeroed_blocks/"
#define REGIONS		8
#define ROWS		"mmap 0 24 3 0 0x1000000 " RICH
/* More than a credit can hold: no block is zeroed, and none that is not zeroed pays. */
#define TOO_MUCH	"2000000000"

static cpu_set_t cpus;

/* Return: MiB of huge pages. */
static int touch_in_group(void)
{
	char *memory;

	if (!write_text(LOWER "/cgroup.procs", "0"))
		return 202;
	memory = map(REGIONS * REGION);
	if (!memory)
		return 200;
	for (int i = 0; i < REGIONS; i++)
		touch(memory + i * REGION, PAGE);
	return huge_in(memory);
}

/* The process of a test joins the lower one, and uses the memory of one node. */
static bool begin_groups(void)
{
	CHECK(!sched_getaffinity(0, sizeof(cpus), &cpus));
	stay_on(0);
	mount_groups(GROUP);
	mkdir(UPPER, 0755);
	write_text(UPPER "/cgroup.subtree_control", "+memory");
	mkdir(LOWER, 0755);
	if (!access(LOWER "/memory.max", W_OK))
		return true;
	lacks = "no groups";
	return false;
}

static void end_groups(void)
{
	rmdir(LOWER);
	rmdir(UPPER);
	unmount_groups(GROUP);
	CHECK(!sched_setaffinity(0, sizeof(cpus), &cpus));
}

static bool weigh(const char *upper, const char *lower)
{
	return CHECK(write_text(UPPER "/memory.econ.weight", upper) &&
		     write_text(LOWER "/memory.econ.weight", lower));
}

static void weights_are_checked(void)
{
	const char *path = LOWER "/memory.econ.weight";

	if (begin_groups()) {
		CHECK(number(path) == 100);
		CHECK(!write_text(path, "101") && errno == ERANGE);
		CHECK(!write_text(path, "-1") && errno == EINVAL);
		CHECK(!write_text(path, "much") && errno == EINVAL);
		CHECK(number(path) == 100);
		CHECK(write_text(path, "0") && number(path) == 0);
		CHECK(write_text(path, "100") && number(path) == 100);
		CHECK(access(GROUP "/memory.econ.weight", F_OK));
	}
	end_groups();
}

static struct kept clearing[] = {
	{ .path = SYSFS "costs/clear_huge" },
};

/* Other nodes may keep blocks that earlier tests wanted, and that nobody takes. */
static void fill_stock(void)
{
	long blocks;

	want_many();
	do {
		blocks = zeroed("blocks");
		sleep(1);
	} while (zeroed("blocks") != blocks);
}

/* Of as many zeroed blocks as regions. Memory pressure may have taken some of them. */
static bool takes_only(int blocks)
{
	for (int i = 0; i < 12; i++) {
		long taken, left;
		int huge;

		put_back(clearing, ARRAY_SIZE(clearing));
		fill_stock();
		CHECK(write_text(clearing[0].path, TOO_MUCH));
		taken = zeroed("taken");
		left = zeroed("left");
		huge = run(ROWS, "touch_in_group");
		if (huge == 2 * blocks && zeroed("taken") == taken + blocks &&
		    zeroed("left") == left + REGIONS - blocks)
			return true;
		ksft_print_msg("%d MiB huge, %ld taken, %ld left\n", huge,
			       zeroed("taken") - taken, zeroed("left") - left);
	}
	return false;
}

static void zeroed_blocks_are_left_to_higher_weights(void)
{
	if (begin_groups()) {
		keep(clearing, ARRAY_SIZE(clearing));
		limit_to("8");
		CHECK(weigh("100", "100") && takes_only(8));
		CHECK(weigh("100", "50") && takes_only(4));
		/* As one above it: it cannot give itself more. */
		CHECK(weigh("25", "100") && takes_only(2));
		CHECK(weigh("0", "100") && takes_only(0));
		put_back(clearing, ARRAY_SIZE(clearing));
		all_are_accounted_for();
	}
	end_groups();
}

/*
 * Losses that are added to an empty ledger, without those of regions that found a block. They
 * are halved in between at times. Nothing is paid.
 */
static bool adds(int weight)
{
	for (int i = 0; i < 12; i++) {
		long faults, lost_ns, credit_ns;

		hold_more();
		forget_ledgers();
		faults = ledgers("faults ");
		CHECK(run(ROWS, "touch_in_group") < 200);
		faults = ledgers("faults ") - faults;
		lost_ns = ledgers("refused_ns ");
		credit_ns = ledgers("credit_ns ");
		if (!CHECK(lost_ns <= REGIONS * MOST_NS * weight / 100))
			return false;
		if (faults && lost_ns >= faults * LEAST_NS * weight / 100 &&
		    !credit_ns == !weight)
			return true;
		ksft_print_msg("%ld faults, %ld ns lost, credit %ld ns\n", faults, lost_ns,
			       credit_ns);
	}
	return false;
}

static void losses_and_credit_are_weighed(void)
{
	if (begin_groups()) {
		keep(costs_of_blocks, NR_COSTS_OF_BLOCKS);
		CHECK(let_blocks_cost("9000000000000", "9000000000000"));
		CHECK(write_text(THP "defrag", "madvise"));
		if (CHECK(hold_memory())) {
			CHECK(weigh("100", "100") && adds(100));
			CHECK(weigh("50", "100") && adds(50));
			CHECK(weigh("100", "0") && adds(0));
		}
		CHECK(let_go());
		put_back(costs_of_blocks, NR_COSTS_OF_BLOCKS);
	}
	end_groups();
}

const struct test econ_weight_tests[] = {
	TEST(weights_are_checked),
	TEST(zeroed_blocks_are_left_to_higher_weights),
	TEST(losses_and_credit_are_weighed),
	{}
};

const struct part econ_weight_parts[] = {
	PART(touch_in_group),
	{}
};
