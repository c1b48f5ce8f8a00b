// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush: litmus tests of coherence.
 *
 * A reader spins on one CPU and holds a translation. The page is reclaimed. The
 * translation is stale if the reader still reads the old value without a fault while
 * the page table has no entry. Then a task does an operation that must not leave the
 * old value readable, and after that the reader must not see it again.
 *
 * Needs root, cgroups, two CPUs, swap, and a directory on ext4, xfs or btrfs:
 * $TOLLFREE_TEST_DIR, /data if that is not set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "luf.h"

/* Number of pages that were added to a pool and not released. */
static long lost(void)
{
	static const char *const paths[] = {
		"kswapd", "direct", "demotion", "promotion", "compaction",
	};
	long pages = -count("released_flushed") - count("released_elided");

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char name[32];

		snprintf(name, sizeof(name), "deferred_%s", paths[i]);
		pages += count(name);
	}
	return pages;
}

enum { MANY = 512 };

/* Load while LUF is switched on and off. */
static struct {
	const int *at;
	long reads;
	long wrong;
	bool stop;
} *load;

static void *read_many(void *unused)
{
	stay_on(1);
	for (size_t i = 0; !get(load->stop); i = (i + 1) % MANY) {
		if (get(load->at[i * PAGE / sizeof(int)]) != (int)i)
			load->wrong++;
		load->reads++;
	}
	return unused;
}

/* One task reads a file all the time, another one with the same mm reclaims it. */
static void read_and_reclaim(void)
{
	pthread_t thread;

	load->at = mmap(NULL, MANY * PAGE, PROT_READ, MAP_SHARED, file, 0);
	must(load->at != MAP_FAILED && !pthread_create(&thread, NULL, read_many, NULL), "load");
	stay_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	while (!get(load->stop)) {
		write_text(GROUP "/test/memory.reclaim", "1M");
		usleep(1000);
	}
	pthread_join(thread, NULL);
	_exit(KSFT_PASS);
}

static void make_many(void)
{
	int *pages = calloc(MANY, PAGE);

	for (int i = 0; i < MANY; i++)
		pages[i * PAGE / sizeof(int)] = i;
	make_file(names[0], pages, MANY * PAGE);
	free(pages);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	load = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(load != MAP_FAILED, "mmap");
}

/* While LUF is off no page waits. */
static bool switch_often(int times, bool reclaims)
{
	bool right = true;

	for (int i = 0; i < times / 2 && right; i++) {
		right = write_text(LUF "enabled", "0") && !number(LUF "pool_pages") &&
			write_text(LUF "enabled", "1");
		if (reclaims && i % 16 == 0)
			reclaim_all();
	}
	return right;
}

static void test_switch(void)
{
	failed = !switch_often(2000, true);
	end_test("switched 2,000 times");
}

static void switch_under_load(void)
{
	long before = deferred();
	bool right;
	pid_t child;

	make_many();
	child = start(go_at_once, read_and_reclaim);
	right = switch_often(10000, false);
	set(load->stop, true);
	right &= !ended(child) && write_text(LUF "drain", "1");
	ksft_print_msg("%ld pages unmapped lazily, %ld lost; %ld reads, %ld wrong\n",
		       deferred() - before, lost(), load->reads, load->wrong);
	failed = !right || deferred() <= before || lost() || load->wrong ||
		 number(LUF "pool_pages");
	munmap(load, PAGE);
	close(file);
}

static void test_switch_under_load(void)
{
	if (code_is_fixed())
		lacks = FIXED;
	else
		switch_under_load();
	end_test("switched 10,000 times under load");
}

static void test_nonsense(void)
{
	static const struct {
		const char *file, *text;
	} wrong[] = {
		{ "enabled", "perhaps" }, { "enabled", "" },
		{ "pool_max_pages", "-1" }, { "pool_max_pages", "1x" },
		{ "pool_max_pages", "99999999999999" },
		{ "direct_batch_pages", "many" }, { "direct_batch_pages", "99999999999999" },
		{ "max_age_ms", "0" }, { "max_age_ms", "-5" },
		{ "drain", "0" }, { "drain", "soon" },
	};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int fd;

		snprintf(path, sizeof(path), LUF "%s", wrong[i].file);
		fd = open(path, O_WRONLY);
		errno = 0;
		if (*wrong[i].text &&
		    (write(fd, wrong[i].text, strlen(wrong[i].text)) >= 0 ||
		     (errno != EINVAL && errno != ERANGE))) {
			ksft_print_msg("%s takes \"%s\"\n", wrong[i].file, wrong[i].text);
			failed = true;
		}
		close(fd);
	}
	end_test("nonsense is refused");
}

static void test_drain(void)
{
	int *at = shared_file();
	long flushes;
	int value;

	start_reader(at);
	if (!make_stale(at)) {
		not_stale("drain");
	} else {
		flushes = count("flushes_drain");
		must(write_text(LUF "drain", "1"), "drain");
		/* A CPU without a translation has to fault. */
		value = read_now();
		failed = count("flushes_drain") <= flushes || value != OLD || !is_mapped(at);
	}
	clean_up(at);
	end_test("drain");
}

static bool has_swap(void)
{
	char text[512] = "";
	int fd = open("/proc/swaps", O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strchr(text, '\n')[1];
}

static unsigned int count_litmuses(const struct litmus *test)
{
	unsigned int nr = 0;

	while (test[nr].name)
		nr++;
	return nr;
}

/* Whether the tests can run here; otherwise the program ends. */
static void check_environment(void)
{
	struct statfs about;

	begin_luf_test();
	must(!statfs(".", &about), "statfs");
	if (about.f_type != EXT4_SUPER_MAGIC && about.f_type != XFS_SUPER_MAGIC &&
	    about.f_type != BTRFS_SUPER_MAGIC)
		ksft_exit_skip("the files are not on ext4, xfs or btrfs\n");
	if (!has_swap())
		ksft_exit_skip("no swap\n");
}

int main(int argc, char **argv)
{
	static const struct litmus *const lists[] = {
		luf_file_litmuses, luf_map_litmuses, luf_anon_litmuses,
	};
	struct sigaction action = { .sa_handler = on_no_access };
	unsigned int nr = count_refusals() + 6;

	if (argc > 1 && !strcmp(argv[1], "look"))
		return look_again();
	ksft_print_header();
	check_environment();
	lock_memory();
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	stay_on(0);
	must(write_text(LUF "enabled", "1"), LUF "enabled");
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		nr += count_litmuses(lists[i]);
	plan_tests(nr);

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		try_litmuses(lists[i]);
	try_exit_and_exec();
	try_refusals();
	test_drain();
	test_nonsense();
	test_switch();
	test_switch_under_load();

	finish_tests();
}
