/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs tests, and prints one result for each. A test checks conditions, or sets lacks and
 * returns. Only harness.c prints results: the counters of kselftest.h belong to one file.
 */
#ifndef TOLLFREE_HARNESS_H
#define TOLLFREE_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

struct test {
	const char *name;
	void (*run)(void);
};

/* An entry of a list of tests, which ends with an empty one. */
#define TEST(name) { #name, name }

/* Whether the current test has failed, and why it could not run. */
extern bool failed;
extern const char *lacks;

bool check(bool is_true, const char *text, const char *file, int line);

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)

/* Print the number of tests, then the result of each, and end the program. */
void plan_tests(unsigned int nr);
void end_test(const char *name);
void finish_tests(void);

/*
 * Run the tests of some lists: those that are named, all if none is named. After each one
 * call @clean_up, which may check as well.
 */
void run_tests(const struct test *const *lists, size_t nr, char **named,
	       void (*clean_up)(void));

#endif
