// SPDX-License-Identifier: GPL-2.0-only
/*
 * econ: tests of profiles. A program with a profile of an earlier run has huge pages
 * where its profile says that they pay, and nowhere else.
 *
 * Needs root, and a node with some free huge pages. Arguments name the tests to run, all
 * if there are none; "-" and a name execute a part of a test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "econ.h"

static const struct test *const lists[] = {
	econ_rows_tests, econ_rights_tests, econ_control_tests, econ_costs_tests,
	econ_promote_tests, econ_demote_tests, econ_compact_tests, econ_zero_tests,
	econ_zero_use_tests, econ_scarce_tests, econ_explore_tests, econ_stalls_tests,
	econ_short_tests, econ_use_tests, econ_nodes_tests, econ_weight_tests,
	/* They leave memory in small pieces: the others need free blocks. */
	econ_block_tests,
};

static const struct part *const parts[] = {
	econ_rows_parts, econ_rights_parts, econ_control_parts, econ_promote_parts,
	econ_demote_parts, econ_compact_parts, econ_zero_parts, econ_zero_use_parts,
	econ_scarce_parts, econ_explore_parts, econ_stalls_parts,
	econ_short_parts, econ_use_parts, econ_nodes_parts, econ_weight_parts,
};

static int run_part(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (const struct part *part = parts[i]; part->name; part++)
			if (!strcmp(part->name, name))
				return part->run();
	return 220;
}

static void restore_costs(void)
{
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	put_back_costs();
}

int main(int argc, char **argv)
{
	ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);

	if (argc == 3 && !strcmp(argv[1], "-"))
		return run_part(argv[2]);
	ksft_print_header();
	if (length < 0 || access(SYSFS "mode", W_OK))
		ksft_exit_skip("no econ: %s\n", strerror(errno));
	mkdir("/tmp", 01777);
	/* Costs are those that the tests write, and no block is free by chance. */
	if (!write_text(SYSFS "costs/frozen", "1") || !write_text(SYSFS "mode", "on") ||
	    !write_text(THP "enabled", "always") ||
	    !write_text(SYSFS "zeroed_blocks/limit", "0"))
		ksft_exit_fail_msg("it cannot be switched on: %s\n", strerror(errno));
	keep_costs();
	run_tests(lists, ARRAY_SIZE(lists), argv + 1, restore_costs);
	write_text(SYSFS "mode", "off");
	write_text(SYSFS "costs/frozen", "0");
	write_text(THP "enabled", "madvise");
	finish_tests();
}
