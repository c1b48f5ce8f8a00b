// SPDX-License-Identifier: GPL-2.0-only
/* Runs tests, and prints one result for each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../kselftest.h"
#include "harness.h"

bool failed;
const char *lacks;

bool check(bool is_true, const char *text, const char *file, int line)
{
	const char *name;

	if (is_true)
		return true;
	/* Report only the first failure: the others follow from it. */
	if (!failed) {
		name = strrchr(file, '/');
		ksft_print_msg("%s:%d: %s (%s)\n", name ? name + 1 : file, line, text,
			       strerror(errno));
	}
	failed = true;
	return false;
}

void plan_tests(unsigned int nr)
{
	ksft_set_plan(nr);
}

void end_test(const char *name)
{
	if (lacks && !failed)
		ksft_test_result_skip("%s: %s\n", name, lacks);
	else
		ksft_test_result(!failed, "%s\n", name);
	if (failed && getenv("TOLLFREE_STOP_AT_FAILURE"))
		ksft_exit_fail();
	failed = false;
	lacks = NULL;
}

static bool is_named(const char *name, char **named)
{
	if (!*named)
		return true;
	for (; *named; named++)
		if (!strcmp(*named, name))
			return true;
	return false;
}

static void run_list(const struct test *test, char **named, void (*clean_up)(void))
{
	for (; test->name; test++) {
		if (!is_named(test->name, named)) {
			ksft_test_result_skip("%s\n", test->name);
			continue;
		}
		test->run();
		clean_up();
		end_test(test->name);
	}
}

static unsigned int count_tests(const struct test *test)
{
	unsigned int nr = 0;

	while (test[nr].name)
		nr++;
	return nr;
}

void run_tests(const struct test *const *lists, size_t nr, char **named, void (*clean_up)(void))
{
	unsigned int all = 0;

	for (size_t i = 0; i < nr; i++)
		all += count_tests(lists[i]);
	plan_tests(all);
	for (size_t i = 0; i < nr; i++)
		run_list(lists[i], named, clean_up);
}

void finish_tests(void)
{
	ksft_finished();
}
