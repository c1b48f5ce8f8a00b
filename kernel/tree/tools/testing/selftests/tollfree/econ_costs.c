// SPDX-License-Identifier: GPL-2.0-only
/* Tests of costs and of counters of faults. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

/* Restored for each test. */
static struct kept prices[] = {
	{ .path = SYSFS "costs/fault" },
	{ .path = SYSFS "costs/huge_fault" },
	{ .path = SYSFS "costs/clear_page" },
	{ .path = SYSFS "costs/clear_huge" },
	{ .path = SYSFS "costs/compact_block" },
	{ .path = SYSFS "costs/move_page" },
	{ .path = SYSFS "costs/collapse" },
	{ .path = SYSFS "costs/split" },
	{ .path = SYSFS "costs/reclaim_page" },
	{ .path = SYSFS "costs/flush" },
	{ .path = SYSFS "costs/read_again" },
};

void keep_costs(void)
{
	keep(prices, ARRAY_SIZE(prices));
}

void put_back_costs(void)
{
	put_back(prices, ARRAY_SIZE(prices));
}

/* Only this cost is measured. */
void freeze_all_but(const char *cost)
{
	char names[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		const char *name = strrchr(prices[i].path, '/') + 1;

		if (strcmp(name, cost)) {
			strcat(names, name);
			strcat(names, " ");
		}
	}
	CHECK(write_text(SYSFS "costs/frozen", names));
}

static void prices_may_be_anything(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		const char *path = prices[i].path;

		CHECK(number(path) > 0);
		CHECK(write_text(path, "0"));
		CHECK(!write_text(path, "-1") && errno == EINVAL);
		CHECK(!write_text(path, "18446744073709551616") && errno == ERANGE);
		CHECK(!write_text(path, "cheap") && errno == EINVAL);
	}
	/* All costs are 0; only page walks have a benefit. */
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++)
		CHECK(write_text(prices[i].path, "9223372036854775808"));
	CHECK(run(FIRST "0 0x800000 50000000 0 100\n", "touch_8") == 0);
}

/* Number of samples of a cost, and their median. */
static long samples_of(const char *cost, long *half)
{
	char text[1024], *at, name[32];
	long tenths, seen = -1;

	read_from(SYSFS "costs/samples", text, sizeof(text));
	snprintf(name, sizeof(name), "%s ", cost);
	at = strstr(text, name);
	if (at)
		sscanf(at + strlen(name), "%ld %ld %ld", half, &tenths, &seen);
	return seen;
}

static void prices_are_measured(void)
{
	long half, before, huge, fault;
	char cost[32];

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(!samples_of("clear_huge", &half) && !samples_of("fault", &half));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(!samples_of("clear_huge", &half));
	CHECK(write_text(SYSFS "costs/clear_huge", "1"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	for (int i = 0; i < 16; i++)
		CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
	huge = samples_of("clear_huge", &half);
	fault = samples_of("fault", &before);
	/* One of 1018 faults that were not huge. */
	CHECK(fault > 8 && fault < 2048 && before > 100);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	read_from(SYSFS "costs/clear_huge", cost, sizeof(cost));
	/* Each clearing is a sample, whether it was interrupted or not. */
	CHECK(huge >= 4 && half > 1000 && atol(cost) > 1000);
	CHECK(!write_text(SYSFS "costs/samples", "1") && errno == EINVAL);
	CHECK(!write_text(SYSFS "costs/frozen", "cold") && errno == EINVAL);
}

/* The others are measured. */
static void some_prices_are_frozen(void)
{
	const char *names = "huge_fault clear_huge";
	char text[64];
	long half;

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/clear_huge", "1"));
	CHECK(write_text(SYSFS "costs/frozen", names));
	read_from(SYSFS "costs/frozen", text, sizeof(text));
	CHECK(!strcmp(text, "huge_fault clear_huge\n"));
	for (int i = 0; i < 16; i++) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
		CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
	}
	CHECK(samples_of("fault", &half) > 0);
	CHECK(!samples_of("clear_huge", &half) && !samples_of("huge_fault", &half));
	CHECK(number(SYSFS "costs/clear_huge") == 1);
	CHECK(!write_text(SYSFS "costs/frozen", "fault cold") && errno == EINVAL);
	CHECK(!write_text(SYSFS "costs/frozen", " ") && errno == EINVAL);
	read_from(SYSFS "costs/frozen", text, sizeof(text));
	CHECK(!strcmp(text, "huge_fault clear_huge\n"));
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	read_from(SYSFS "costs/frozen", text, sizeof(text));
	CHECK(!strcmp(text, "1\n"));
}

/* The counters saturate. */
static void statistics_saturate(void)
{
	struct kept kept[] = { { .path = SYSFS "costs/fault" } };

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "9223372036854775808"));
	for (int i = 0; i < 2; i++) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
		CHECK(stat_of("huge", "benefit_ns") == LONG_MAX);
	}
	put_back(kept, ARRAY_SIZE(kept));
}

/* The page is evicted and refaults before any other. */
static void what_is_read_again_is_counted(void)
{
	const char *dir = getenv("TOLLFREE_TEST_DIR");
	long again = number(SYSFS "stats/refaults"), half;
	char name[PATH_MAX], *at;
	int fd;

	snprintf(name, sizeof(name), "%s/read-again", dir ? dir : "/data");
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || access("/sys/kernel/mm/luf/enabled", F_OK)) {
		lacks = "no pools of pages that wait, or no directory for a file";
		close(fd);
		return;
	}
	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	for (int i = 0; i < 256; i++)
		CHECK(write(fd, name, PAGE) == PAGE);
	CHECK(!fsync(fd));
	at = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED && !madvise(at, MIB, MADV_RANDOM));
	for (int i = 0; i < 1000 && !failed; i++) {
		for (size_t page = 0; page < MIB; page += PAGE)
			get(at[page]);
		if (number(SYSFS "stats/refaults") > again &&
		    samples_of("read_again", &half) > 0)
			break;
		CHECK(!madvise(at, MIB, MADV_PAGEOUT));
	}
	CHECK(number(SYSFS "stats/refaults") > again);
	CHECK(samples_of("read_again", &half) > 0 && half > 0);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	munmap(at, MIB);
	close(fd);
	unlink(name);
}

/* Number of all faults of a kind. */
long faults_of(const char *kind)
{
	char path[128], text[4096], *line, *rest;
	long low, faults, sum = 0;

	snprintf(path, sizeof(path), SYSFS "fault_latency/%s", kind);
	read_from(path, text, sizeof(text));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (sscanf(line, "%ld %ld", &low, &faults) == 2)
			sum += faults;
	return sum;
}

static void faults_are_counted_by_kind(void)
{
	long huge = faults_of("huge_cleared"), base = faults_of("base"), file = faults_of("file");

	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(faults_of("huge_cleared") == huge);
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(faults_of("huge_cleared") >= huge + 4);
	CHECK(faults_of("file") > file);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(faults_of("base") >= base + 2048);
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	base = faults_of("base");
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(faults_of("base") == base);
}

static bool reclaim_file(void)
{
	static char data[MIB];
	int fd = open("/data/econ", O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool done = false;
	char *memory;

	if (fd < 0)
		return false;
	if (write(fd, data, MIB) == MIB && !fsync(fd)) {
		memory = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
		done = memory != MAP_FAILED;
		for (size_t at = 0; done && at < MIB; at += PAGE)
			(void)get(memory[at]);
		done = done && !madvise(memory, MIB, MADV_PAGEOUT);
		munmap(memory, MIB);
	}
	close(fd);
	unlink("/data/econ");
	return done;
}

/* Return: whether a cost was measured for longer than the clock can tell apart from nothing. */
bool is_measured(const char *cost)
{
	long half;

	return samples_of(cost, &half) > 0 && half > 100;
}

void check_that_it_is_measured(const char *cost)
{
	char path[128];

	snprintf(path, sizeof(path), SYSFS "costs/%s", cost);
	CHECK(is_measured(cost) && number(path) > 1);
}

static void all_prices_are_measured(void)
{
	struct kept kept[] = {
		{ .path = THP "shrink_underused" },
		{ .path = THP "khugepaged/max_ptes_none" },
	};
	bool has_files = true;
	time_t begin = now();

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(THP "shrink_underused", "1"));
	CHECK(write_text(THP "khugepaged/max_ptes_none", "400"));
	CHECK(write_text(SYSFS "costs/clear_page", "1"));
	CHECK(write_text(SYSFS "costs/split", "1"));
	CHECK(write_text(SYSFS "costs/reclaim_page", "1"));
	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	while (!(is_measured("clear_page") && is_measured("split") &&
		 is_measured("reclaim_page")) && now() < begin + PATIENCE) {
		/* No benefit, for any measured cost of a fault. */
		CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
		run(FIRST "0 0x800000 " POOR, "shrink_as_stock");
		has_files &= reclaim_file();
	}
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	check_that_it_is_measured("clear_page");
	check_that_it_is_measured("split");
	if (has_files)
		check_that_it_is_measured("reclaim_page");
	else
		lacks = "/data takes no file";
	put_back(kept, ARRAY_SIZE(kept));
}

const struct test econ_costs_tests[] = {
	TEST(prices_may_be_anything),
	TEST(statistics_saturate),
	TEST(prices_are_measured),
	TEST(some_prices_are_frozen),
	TEST(what_is_read_again_is_counted),
	TEST(faults_are_counted_by_kind),
	TEST(all_prices_are_measured),
	{}
};
