// SPDX-License-Identifier: GPL-2.0-only
/*
 * Morsels: tests of files of morselfs, and of the isolation of processes that have the
 * same tables attached: operations on one mapping must not affect the others.
 *
 * Each test creates a new morsel in its own mount. Most of them check the content last,
 * from another process. Arguments name the tests to run, all if there are none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "morsel.h"

static const struct test last[] = {
	TEST(nothing_is_left),
	{}
};

static const struct test *const lists[] = {
	morsel_file_tests, morsel_map_tests, morsel_seal_tests, morsel_process_tests,
	morsel_shared_tests, morsel_populate_tests, morsel_race_tests, morsel_mm_tests,
	morsel_limits_tests, morsel_fail_tests, morsel_block_tests, morsel_broken_tests,
	morsel_xattr_tests, last,
};

static cpu_set_t cpus;

/* The threads of the next test run concurrently again. */
static void use_all_cpus(void)
{
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(int argc, char **argv)
{
	(void)argc;
	ksft_print_header();
	sched_getaffinity(0, sizeof(cpus), &cpus);
	mkdir("/tmp", 01777);
	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "morselfs", 0, NULL))
		ksft_exit_skip("no morselfs: %s\n", strerror(errno));
	run_tests(lists, ARRAY_SIZE(lists), argv + 1, use_all_cpus);
	umount2(MOUNT, MNT_DETACH);
	finish_tests();
}
