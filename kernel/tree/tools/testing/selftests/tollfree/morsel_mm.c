// SPDX-License-Identifier: GPL-2.0-only
/* Tests of other parts of Linux that change memory: they leave morsels alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "morsel.h"

static bool is_watched(char *memory, size_t size, uint64_t mode)
{
	__u64 features = 0;
	int fd = userfaultfd(&features);
	struct uffdio_register range = {
		.range = { .start = (unsigned long)memory, .len = size },
		.mode = mode,
	};
	bool done = features && !ioctl(fd, UFFDIO_REGISTER, &range);

	CHECK(features && (done || errno == EINVAL));
	close(fd);
	return done;
}

#define KSM	"/sys/kernel/mm/ksm/"

/* Everything else that could change entries. */
static void nobody_merges_or_watches_it(void)
{
	static const uint64_t modes[] = { UFFDIO_REGISTER_MODE_MISSING, UFFDIO_REGISTER_MODE_WP };
	size_t size = 4 * MIB;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE), *other;
	long scans, faults;

	CHECK(memory != MAP_FAILED);
	/* All pages have the same content. */
	memset(memory, 1, size);
	faults = count("stats/faults");
	CHECK(write_text("/proc/self/clear_refs", "4"));
	memset(memory, 2, size);
	CHECK(count("stats/faults") == faults);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		CHECK(!is_watched(memory, size, modes[i]));
	CHECK(!mlock(memory, size) && !munlock(memory, size));
	madvise(memory, size, MADV_MERGEABLE);
	/* ksmd scans only processes with mergeable memory. */
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(other != MAP_FAILED);
	store(other, 1);
	CHECK(!madvise(other, PAGE, MADV_MERGEABLE));
	scans = number(KSM "full_scans");
	CHECK(write_text(KSM "sleep_millisecs", "1") && write_text(KSM "run", "1"));
	for (int i = 0; i < 500 && number(KSM "full_scans") < scans + 2; i++)
		usleep(10000);
	CHECK(number(KSM "full_scans") >= scans + 2);
	CHECK(!number(KSM "pages_shared"));
	CHECK(write_text(KSM "run", "2") && write_text(KSM "run", "0"));
	CHECK(load(memory + PAGE) == 0x0202020202020202);
	munmap(other, PAGE);
	munmap(memory, size);
	close(fd);
}

static bool has_two_nodes(void)
{
	if (!access("/sys/devices/system/node/node1", F_OK))
		return true;
	lacks = "one node";
	return false;
}

/* Return: node of an existing page. */
static int node_of(char *at)
{
	int node = -1;

	CHECK(!syscall(SYS_get_mempolicy, &node, NULL, 0, at, MPOL_F_NODE | MPOL_F_ADDR));
	return node;
}

static bool all_are_on(char *memory, size_t size, int node)
{
	for (size_t at = 0; at < size; at += PAGE) {
		if (node_of(memory + at) != node)
			return false;
	}
	return true;
}

/* The policy of the mapping decides the node of a page, where it stays. */
static void policies_place_it(void)
{
	size_t size = 4 * MIB + 3 * PAGE;

	if (!has_two_nodes())
		return;
	for (int node = 0; node < 2; node++) {
		unsigned long here = 1UL << node, there = 1UL << !node;
		int fd = make(size), to = !node, status;
		char *memory = map(fd, size, PROT_READ | PROT_WRITE);
		void *page = memory;

		CHECK(memory != MAP_FAILED);
		CHECK(!syscall(SYS_mbind, memory, size, MPOL_BIND, &here, 64, 0));
		write_words(memory, size, PAGE);
		CHECK(all_are_on(memory, size, node));
		syscall(SYS_mbind, memory, size, MPOL_BIND, &there, 64, MPOL_MF_MOVE);
		status = to;
		syscall(SYS_move_pages, 0, 1, &page, &to, &status, MPOL_MF_MOVE);
		CHECK(status != to);
		syscall(SYS_migrate_pages, 0, 64, &here, &there);
		CHECK(all_are_on(memory, size, node));
		CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
		munmap(memory, size);
		close(fd);
	}
}

#define BALANCING	"/sys/kernel/debug/sched/numa_balancing/"

static void write_for_a_while(char *memory)
{
	struct timespec used;

	do {
		for (size_t at = 0; at < 4 * MIB; at += PAGE)
			store(memory + at, word_of(at));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec < 3);
}

/* NUMA balancing removes access rights from entries, to observe faults. */
static void balancing_leaves_it(void)
{
	char delay[16];
	int status = 0;
	pid_t pid;

	if (!has_two_nodes())
		return;
	snprintf(delay, sizeof(delay), "%ld", number(BALANCING "scan_delay_ms"));
	CHECK(write_text(BALANCING "scan_delay_ms", "10"));
	pid = fork();
	if (!pid) {
		char *memory = map(make(4 * MIB), 4 * MIB, PROT_READ | PROT_WRITE);

		if (memory == MAP_FAILED)
			_exit(1);
		write_for_a_while(memory);
		_exit(has_words(memory, 0, 4 * MIB, PAGE) ? 0 : 1);
	}
	for (int i = 0; i < 3000 && !waitpid(pid, &status, WNOHANG); i++)
		usleep(10000);
	CHECK(kill(pid, SIGKILL) && errno == ESRCH && !status);
	CHECK(write_text(BALANCING "scan_delay_ms", delay));
}

/* The first swap device. */
static bool find_swap(char *device, size_t length)
{
	FILE *swaps = fopen("/proc/swaps", "r");
	char line[256], name[128];
	bool found;

	found = swaps && fgets(line, sizeof(line), swaps) &&
		fgets(line, sizeof(line), swaps) && sscanf(line, "%127s", name) == 1;
	if (swaps)
		fclose(swaps);
	if (found)
		snprintf(device, length, "%s", name);
	return found;
}

static long swapped_to(const char *device)
{
	FILE *swaps = fopen("/proc/swaps", "r");
	char line[256], name[128];
	long used = 0, kib;

	while (swaps && fgets(line, sizeof(line), swaps))
		if (sscanf(line, "%127s %*s %*s %ld", name, &kib) == 2 &&
		    !strcmp(name, device))
			used = kib;
	if (swaps)
		fclose(swaps);
	return used;
}

/* swapoff walks all mappings of all processes that have swapped memory. */
static void swapoff_leaves_it(void)
{
	size_t size = 4 * MIB + 3 * PAGE;
	char *memory, *copy, *other, device[128];
	int fd;

	if (!find_swap(device, sizeof(device))) {
		lacks = "no swap";
		return;
	}
	fd = make_filled(size, PAGE);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED && copy != MAP_FAILED && other != MAP_FAILED);
	write_words(memory, size, PAGE);
	memset(copy, 1, size);
	memset(other, 2, size);
	for (int i = 0; i < 100 && swapped_to(device) < (long)(size >> 10); i++) {
		madvise(copy, size, MADV_PAGEOUT);
		madvise(other, size, MADV_PAGEOUT);
	}
	CHECK(swapped_to(device) >= (long)(size >> 10));
	CHECK(!swapoff(device));
	CHECK(!swapped_to(device) && !swapon(device, 0));
	CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
	for (size_t at = 0; at < size; at += PAGE)
		CHECK(copy[at] == 1 && other[at] == 2);
	munmap(memory, size);
	munmap(copy, size);
	munmap(other, size);
	close(fd);
}

#define DAMON	"/sys/kernel/mm/damon/admin/kdamonds/"
#define CONTEXT	DAMON "0/contexts/0/"

/* DAMON's files fail with EBUSY while its thread has their lock. */
static bool write_damon(const char *path, const char *text)
{
	for (int i = 0; i < 500; i++) {
		if (write_text(path, text))
			return true;
		if (errno != EBUSY)
			return false;
		usleep(10000);
	}
	return false;
}

/* DAMON monitors accesses, and pages out idle memory. */
static void damon_leaves_it(void)
{
	static const char *const begin[][2] = {
		{ DAMON "nr_kdamonds", "1" },
		{ DAMON "0/contexts/nr_contexts", "1" },
		{ CONTEXT "operations", "vaddr" },
		{ CONTEXT "monitoring_attrs/intervals/sample_us", "1000" },
		{ CONTEXT "monitoring_attrs/intervals/aggr_us", "20000" },
		{ CONTEXT "targets/nr_targets", "1" },
		{ CONTEXT "schemes/nr_schemes", "1" },
		{ CONTEXT "schemes/0/action", "pageout" },
		{ CONTEXT "schemes/0/access_pattern/sz/max", "18446744073709551615" },
		{ CONTEXT "schemes/0/access_pattern/nr_accesses/max", "4294967295" },
		{ CONTEXT "schemes/0/access_pattern/age/max", "4294967295" },
	};
	size_t size = 8 * MIB;
	char *memory, self[16];
	int fd, tried = 0;

	if (access(DAMON, F_OK)) {
		lacks = "no DAMON";
		return;
	}
	fd = make_filled(size, PAGE);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(begin); i++)
		CHECK(write_text(begin[i][0], begin[i][1]));
	snprintf(self, sizeof(self), "%d", getpid());
	CHECK(write_text(CONTEXT "targets/0/pid_target", self));
	CHECK(write_damon(DAMON "0/state", "on"));
	for (int i = 0; i < 500 && tried < 3; i++) {
		CHECK(has_words(memory, 0, size, PAGE));
		usleep(10000);
		CHECK(write_damon(DAMON "0/state", "update_schemes_stats"));
		tried = number(CONTEXT "schemes/0/stats/nr_tried");
	}
	CHECK(tried >= 3);
	CHECK(write_damon(DAMON "0/state", "off"));
	CHECK(write_damon(DAMON "nr_kdamonds", "0"));
	CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
	munmap(memory, size);
	close(fd);
}

static long kib_in_meminfo(const char *line)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char text[128];
	long kib = -1;

	while (file && fgets(text, sizeof(text), file))
		if (!strncmp(text, line, strlen(line)))
			kib = atol(text + strlen(line));
	if (file)
		fclose(file);
	return kib;
}

static void meminfo_has_it(void)
{
	long before = kib_in_meminfo("Morsels:");
	int fd = make(4 * MIB);

	CHECK(before >= 0 && before == count("pages") << 2);
	CHECK(!fallocate(fd, 0, 0, 4 * MIB));
	CHECK(kib_in_meminfo("Morsels:") == before + (4 << 10));
	close(fd);
}

const struct test morsel_mm_tests[] = {
	TEST(nobody_merges_or_watches_it),
	TEST(policies_place_it),
	TEST(balancing_leaves_it),
	TEST(swapoff_leaves_it),
	TEST(damon_leaves_it),
	TEST(meminfo_has_it),
	{}
};
