// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush: tests of the pools. Number and age of waiting pages, drains that
 * wait for flushes in progress, and pages that are poisoned while they wait.
 *
 * Arguments: the tests to run, all if there are none. Has the requirements of the litmus
 * tests (luf.c), except swap.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "luf_pool.h"

#define NAME	"luf-pool"

/* A thread of the process runs on another CPU, so that unmaps may be lazy. */
static bool stop;

static void reset(void)
{
	must(write_text(LUF "enabled", "1"), LUF "enabled");
	set_number(LUF "pool_max_pages", 0);
	set_number(LUF "max_age_ms", 30000);
	must(write_text(LUF "drain", "1"), LUF "drain");
}

static void *be_around(void *unused)
{
	stay_on(1);
	while (!get(stop))
		usleep(500);
	return unused;
}

static struct {
	long most;
	bool stop;
} watch;

static void *watch_pools(void *unused)
{
	while (!get(watch.stop)) {
		long pages = waiting();

		if (pages > get(watch.most))
			set(watch.most, pages);
		usleep(200);
	}
	return unused;
}

static void pools_keep_to_their_size(void)
{
	long before = deferred(), size;
	pthread_t watcher;

	set_number(LUF "pool_max_pages", 128);
	size = number(LUF "pool_size_pages");
	set(watch.stop, false);
	must(!pthread_create(&watcher, NULL, watch_pools, NULL), "thread");
	for (int i = 0; i < 40 && deferred() - before < 6 * size; i++) {
		touch(0, PAGES / 2);
		write_text(GROUP "/test/memory.reclaim", "8M");
		defer(0, PAGES / 4);
	}
	set(watch.stop, true);
	pthread_join(watcher, NULL);
	ksft_print_msg("%ld pages unmapped lazily, at most %ld waited, of %ld\n",
		       deferred() - before, watch.most, size);
	CHECK(deferred() > before && watch.most <= size);
}

/*
 * At any time at most the pages that were unmapped in the last ten times the age wait:
 * others would be too old. Twice the age would suffice if workers were never late.
 */
static void pages_leave_in_time(void)
{
	enum { AGE_MS = 100, SAMPLES = 400 };
	static struct {
		double time;
		long deferred;
	} samples[SAMPLES];
	double begin = now(), window = 10 * AGE_MS / 1e3;
	int first = 0, last = 0;
	bool right = true;

	set_number(LUF "pool_max_pages", 128);
	set_number(LUF "max_age_ms", AGE_MS);
	for (int i = 0; last < SAMPLES && now() < begin + 2.5 * window; i++) {
		long pages;

		samples[last].time = now();
		samples[last++].deferred = deferred();
		defer(i * CHUNK % PAGES, i * CHUNK % PAGES + CHUNK);
		pages = waiting();
		while (samples[first + 1].time && samples[first + 1].time < now() - window)
			first++;
		if (pages > deferred() - samples[first].deferred &&
		    samples[first].time < now() - window) {
			if (right)
				ksft_print_msg("%ld pages wait, %ld came in %.1f s\n", pages,
					       deferred() - samples[first].deferred, window);
			right = false;
		}
		usleep(10000);
	}
	ksft_print_msg("%ld pages unmapped lazily\n", deferred() - samples[0].deferred);
	CHECK(right && deferred() > samples[0].deferred && becomes_empty(20));
}

static void a_new_age_holds_at_once(void)
{
	bool right;

	/* The timer of the older age expires first. */
	set_number(LUF "max_age_ms", 10);
	defer(0, CHUNK);
	becomes_empty(60);
	set_number(LUF "max_age_ms", 2147483647);
	right = defer_some(CHUNK) && waiting();
	set_number(LUF "max_age_ms", 10);
	CHECK(right && becomes_empty(5));
}

/* Includes per-CPU lists, which Linux does not count. */
static long available_kib(void)
{
	return sum_of("/proc/meminfo", "MemAvailable") +
	       sum_of("/proc/zoneinfo", "count") * (long)PAGE / 1024;
}

/*
 * A boost of the watermarks, which fragmented memory causes, makes less page cache and
 * slab available, and kswapd ends it at any time.
 */
static void forbid_boosts(void)
{
	set_number("/proc/sys/vm/watermark_boost_factor", 0);
	for (int i = 0; i < 500 && sum_of("/proc/zoneinfo", "boost"); i++)
		usleep(10000);
}

/*
 * Return: whether the boosts stayed the same. Then a drain has changed the available
 * memory by @change KiB.
 */
static bool count_pages(long *pages_kib, long *change)
{
	long boost, pages, vmstat, zones, available, after;

	CHECK(defer_some(1024));
	boost = sum_of("/proc/zoneinfo", "boost");
	pages = waiting();
	must(write_text("/proc/sys/vm/stat_refresh", "1"), "stat_refresh");
	vmstat = sum_of("/proc/vmstat", "nr_luf_pages");
	zones = sum_of("/proc/zoneinfo", "nr_luf_pages");
	available = available_kib();
	CHECK(pages > 0 && waiting() == pages && vmstat == pages && zones == pages);
	must(write_text(LUF "drain", "1"), LUF "drain");
	must(write_text("/proc/sys/vm/stat_refresh", "1"), "stat_refresh");
	after = available_kib();
	CHECK(!sum_of("/proc/vmstat", "nr_luf_pages"));
	if (sum_of("/proc/zoneinfo", "boost") != boost)
		return false;
	ksft_print_msg("%ld pages wait, %ld in vmstat, %ld in zoneinfo\n", pages, vmstat, zones);
	ksft_print_msg("%ld KiB available, %ld after a drain\n", available, after);
	*pages_kib = pages * (long)PAGE / 1024;
	*change = after - available;
	return true;
}

static void pages_are_counted(void)
{
	long factor = number("/proc/sys/vm/watermark_boost_factor");
	long pages_kib, change;
	bool right = false;
	int wrong = 0;

	forbid_boosts();
	/* Other activity of the guest may change as much, but hardly twice. */
	for (int tries = 0; tries < 10 && !right && wrong < 2; tries++) {
		if (!count_pages(&pages_kib, &change))
			continue;
		right = labs(change) < pages_kib / 2;
		wrong += !right;
	}
	CHECK(right);
	set_number("/proc/sys/vm/watermark_boost_factor", factor);
}

static const struct test luf_pool_tests[] = {
	TEST(pools_keep_to_their_size),
	TEST(pages_leave_in_time),
	TEST(a_new_age_holds_at_once),
	TEST(pages_are_counted),
	{}
};

static const struct test *const lists[] = {
	luf_pool_tests, luf_pool_wait_tests, luf_pool_frames_tests,
};

static void make_file(void)
{
	uint32_t words[WORDS] = {};
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (uint32_t i = 0; i < PAGES; i++) {
		words[0] = i;
		must(write(fd, words, PAGE) == (ssize_t)PAGE, NAME);
	}
	must(!fsync(fd), NAME);
	close(fd);
	file = open(NAME, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
	must(at != MAP_FAILED, "mmap");
}

static double began;

static void end_with_time(void)
{
	ksft_print_msg("%.1f s\n", now() - began);
	reset();
	began = now();
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	ksft_print_header();
	begin_luf_test();
	make_file();
	stay_on(0);
	must(!pthread_create(&thread, NULL, be_around, NULL), "thread");
	reset();
	began = now();
	run_tests(lists, ARRAY_SIZE(lists), argv + 1, end_with_time);
	set(stop, true);
	pthread_join(thread, NULL);
	unlink(NAME);
	finish_tests();
}
