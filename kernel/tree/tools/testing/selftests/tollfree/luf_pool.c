// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush: tests of the pools. Number and age of waiting pages, drains that
 * wait for flushes in progress, and pages that are poisoned while they wait.
 *
 * Arguments: the tests to run, all if there are none. Has the requirements of the litmus
 * tests (luf.c), except swap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "luf_test.h"

#define NAME	"luf-pool"
#define DELAY	LUF "debug_flush_delay_ms"
#define MEMORY	"/sys/devices/system/memory"
#define HARD_OFFLINE	MEMORY "/hard_offline_page"
#define SOFT_OFFLINE	MEMORY "/soft_offline_page"
#define CMA	"/sys/kernel/debug/cma/reserved/"

enum { PAGES = 2048, CHUNK = 32, WORDS = PAGE / sizeof(uint32_t) };

/* The mapped file; the first word of each page identifies it. */
static const uint32_t *at;
static int file;

/* A thread of the process runs on another CPU, so that unmaps may be lazy. */
static bool stop;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static long waiting(void)
{
	return number(LUF "pool_pages");
}

static void set_number(const char *path, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	must(write_text(path, text), path);
}

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

/* Whether all pages of a range have the expected content. */
static bool touch(int from, int to)
{
	bool right = true;

	for (int i = from; i < to; i++)
		right &= get(at[i * WORDS]) == (uint32_t)i;
	return right;
}

/* Read and reclaim pages, a few at a time; most of them go to a pool. */
static bool defer(int from, int to)
{
	bool right = true;

	for (int i = from; i < to; i += CHUNK) {
		right &= touch(i, i + CHUNK);
		madvise((void *)(at + i * WORDS), CHUNK * PAGE, MADV_PAGEOUT);
	}
	return right;
}

/* Put the given number of pages into a pool. Return: false if not possible. */
static bool defer_some(long pages)
{
	long before = deferred();

	for (int tries = 0; tries < 20; tries++) {
		defer(0, PAGES);
		if (deferred() - before >= pages)
			return true;
	}
	ksft_print_msg("only %ld pages were unmapped lazily\n", deferred() - before);
	return false;
}

/* Wait until no page waits, with a timeout. */
static bool becomes_empty(double seconds)
{
	double end = now() + seconds;

	while (waiting()) {
		if (now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

/* Number and age of waiting pages */

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

static void pools_keep_to_their_size(const char *name)
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
	ksft_test_result(deferred() > before && watch.most <= size, "%s\n", name);
}

/*
 * At any time at most the pages that were unmapped in the last ten times the age wait:
 * others would be too old. Twice the age would suffice if workers were never late.
 */
static void pages_leave_in_time(const char *name)
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
	right &= deferred() > samples[0].deferred;
	ksft_test_result(right && becomes_empty(20), "%s\n", name);
}

static void a_new_age_holds_at_once(const char *name)
{
	bool right;

	/* The timer of the older age expires first. */
	set_number(LUF "max_age_ms", 10);
	defer(0, CHUNK);
	becomes_empty(60);
	set_number(LUF "max_age_ms", 2147483647);
	right = defer_some(CHUNK) && waiting();
	set_number(LUF "max_age_ms", 10);
	ksft_test_result(right && becomes_empty(5), "%s\n", name);
}

/* The counters */

/* Sum of the values of a name, in pages or KiB. */
static long sum_of(const char *path, const char *name)
{
	FILE *text = fopen(path, "re");
	char line[256], word[64];
	long value, sum = -1;

	while (text && fgets(line, sizeof(line), text))
		if (sscanf(line, " %63[^ :]%*[ :]%ld", word, &value) == 2 &&
		    !strcmp(word, name))
			sum = (sum < 0 ? 0 : sum) + value;
	if (text)
		fclose(text);
	return sum;
}

/* Includes per-CPU lists, which Linux does not count. */
static long available_kib(void)
{
	return sum_of("/proc/meminfo", "MemAvailable") +
	       sum_of("/proc/zoneinfo", "count") * (long)PAGE / 1024;
}

static void pages_are_counted(const char *name)
{
	long pages, vmstat, zones, available, after;
	bool right = defer_some(1024);

	pages = waiting();
	must(write_text("/proc/sys/vm/stat_refresh", "1"), "stat_refresh");
	vmstat = sum_of("/proc/vmstat", "nr_luf_pages");
	zones = sum_of("/proc/zoneinfo", "nr_luf_pages");
	available = available_kib();
	right &= pages > 0 && waiting() == pages && vmstat == pages && zones == pages;
	must(write_text(LUF "drain", "1"), LUF "drain");
	must(write_text("/proc/sys/vm/stat_refresh", "1"), "stat_refresh");
	after = available_kib();
	ksft_print_msg("%ld pages wait, %ld in vmstat, %ld in zoneinfo\n", pages, vmstat, zones);
	ksft_print_msg("%ld KiB available, %ld after a drain\n", available, after);
	/* Other activity of the guest is less than half of the waiting pages. */
	right &= !sum_of("/proc/vmstat", "nr_luf_pages");
	right &= labs(after - available) < pages * (long)PAGE / 1024 / 2;
	ksft_test_result(right, "%s\n", name);
}

/* Page frames */

static uint64_t frame_of(const void *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	must(pread(fd, &entry, sizeof(entry), (uintptr_t)page / PAGE * sizeof(entry)) ==
	     sizeof(entry), "pagemap");
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

static bool has_flag(uint64_t frame, int bit)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags = 0;

	must(pread(fd, &flags, sizeof(flags), frame * sizeof(flags)) == sizeof(flags),
	     "kpageflags");
	close(fd);
	return flags >> bit & 1;
}

/* Flushes in progress */

static pid_t start_slow_flush(int ms)
{
	pid_t child;

	if (!defer_some(CHUNK) || !waiting())
		return -1;
	set_number(DELAY, ms);
	child = fork();
	must(child >= 0, "fork");
	if (!child)
		_exit(write_text(LUF "drain", "1") ? KSFT_PASS : KSFT_FAIL);
	/* Any task may flush first. */
	for (int i = 0; i < 1000 && number(DELAY) > 0; i++)
		usleep(1000);
	return child;
}

/* Whether an action ends after the flush in progress. */
static void waits_for_flush(const char *name, bool (*act)(void))
{
	bool done, over;
	pid_t child;

	if (access(DELAY, F_OK)) {
		ksft_test_result_skip("%s: a kernel without CONFIG_LUF_DEBUG\n", name);
		return;
	}
	for (int tries = 0; tries < 5; tries++) {
		child = start_slow_flush(500);
		if (child < 0)
			break;
		/* A slow machine may be too late. */
		if (number(DELAY) < 0) {
			done = act();
			over = number(DELAY) >= 0;
			waitpid(child, NULL, 0);
			ksft_test_result(done && over, "%s\n", name);
			return;
		}
		waitpid(child, NULL, 0);
	}
	ksft_test_result_fail("%s: nothing was flushed slowly\n", name);
}

static bool act_drain(void)
{
	return write_text(LUF "drain", "1") && !waiting();
}

static bool act_disable(void)
{
	return write_text(LUF "enabled", "0") && !waiting();
}

static char block[128];	/* of memory, in the zone that the file was in */

/* Whether a memory block has no hole. */
static bool is_all_memory(uint64_t begin, uint64_t end)
{
	unsigned long long first, last;
	FILE *ranges = fopen("/proc/iomem", "re");
	bool found = false;
	char line[256];

	while (!found && ranges && fgets(line, sizeof(line), ranges))
		found = strstr(line, " : System RAM") &&
			sscanf(line, "%llx-%llx", &first, &last) == 2 &&
			first <= begin && last >= end - 1;
	if (ranges)
		fclose(ranges);
	return found;
}

/* The zone of a block, as text; empty for a block in more than one. */
static void zone_of(long number, char *zone, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), MEMORY "/memory%ld/valid_zones", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	memset(zone, 0, size);
	if (fd < 0)
		return;
	if (read(fd, zone, size - 1) < 0 || !strncmp(zone, "none", 4))
		*zone = 0;
	close(fd);
}

/*
 * The block nearest to the file's first page. One with a hole, or in two zones, is
 * refused before its zone is blocked, and tests nothing.
 */
static void find_block(void)
{
	long own, size = 0, nearest = LONG_MAX;
	char text[32] = "", zone[64];
	int fd = open(MEMORY "/block_size_bytes", O_RDONLY | O_CLOEXEC);

	*block = 0;
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		size = strtol(text, NULL, 16);
	if (fd >= 0)
		close(fd);
	if (!size)
		return;
	touch(0, 1);
	own = frame_of(at) * PAGE / size;
	for (long i = 0; i < 2 * own + 2; i++) {
		zone_of(i, zone, sizeof(zone));
		if (!*zone || labs(i - own) >= nearest ||
		    !is_all_memory(i * size, (i + 1) * size))
			continue;
		nearest = labs(i - own);
		snprintf(block, sizeof(block), MEMORY "/memory%ld/state", i);
	}
}

/* Success does not matter: the zone is blocked first. */
static bool act_offline(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(5);
		_exit(!write_text(block, "offline"));
	}
	waitpid(child, NULL, 0);
	return true;
}

/*
 * For a kernel page that cannot be offlined, everything that holds back pages is drained,
 * as before the OOM killer runs.
 */
static bool act_soft_offline(void)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)frame_of((void *)getauxval(AT_SYSINFO_EHDR)) * PAGE);
	return !write_text(SOFT_OFFLINE, text);
}

static void a_drain_waits_for_flushes(const char *name)
{
	waits_for_flush(name, act_drain);
}

static void switching_off_waits_for_flushes(const char *name)
{
	if (code_is_fixed())
		ksft_test_result_skip("%s: an emulator that may run old code for ever\n", name);
	else
		waits_for_flush(name, act_disable);
}

static void offlining_waits_for_flushes(const char *name)
{
	find_block();
	if (!*block) {
		ksft_test_result_skip("%s: no memory that can be taken away\n", name);
		return;
	}
	waits_for_flush(name, act_offline);
	/* Ignore the error if it is still online. */
	for (int i = 0; i < 1000 && !write_text(block, "online") && errno == EBUSY; i++)
		usleep(1000);
}

static bool act_allocate_contiguous(void)
{
	return write_text(CMA "alloc", "1");
}

static void contiguous_allocations_wait_for_flushes(const char *name)
{
	if (access(CMA "alloc", W_OK)) {
		ksft_test_result_skip("%s: a kernel without CONFIG_CMA_DEBUGFS\n", name);
		return;
	}
	waits_for_flush(name, act_allocate_contiguous);
	write_text(CMA "free", "1");
}

static void what_drains_all_waits_for_flushes(const char *name)
{
	if (access(SOFT_OFFLINE, F_OK))
		ksft_test_result_skip("%s: a kernel without CONFIG_MEMORY_FAILURE\n", name);
	else
		waits_for_flush(name, act_soft_offline);
}

/* Poison */

/* Return: PFN of a page in a pool; 0 if there is none. */
static uint64_t frame_in_pool(void)
{
	enum { KPF_LRU = 5, KPF_BUDDY = 10 };

	for (int tries = 0; tries < 40; tries++) {
		long before = deferred();
		uint64_t frame;

		must(write_text(LUF "drain", "1"), LUF "drain");
		touch(0, CHUNK);
		frame = frame_of(at);
		madvise((void *)at, CHUNK * PAGE, MADV_PAGEOUT);
		if (frame && deferred() - before == CHUNK && waiting() >= CHUNK &&
		    !frame_of(at) && !has_flag(frame, KPF_LRU) && !has_flag(frame, KPF_BUDDY))
			return frame;
	}
	return 0;
}

static bool poison(uint64_t frame)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)frame * PAGE);
	return write_text(HARD_OFFLINE, text);
}

static void a_poisoned_page_of_a_pool_is_handled(const char *name)
{
	enum { KPF_HWPOISON = 19 };
	long before, after, again;
	uint64_t frame;
	bool handled, right;

	if (access(HARD_OFFLINE, F_OK)) {
		ksft_test_result_skip("%s: a kernel without CONFIG_MEMORY_FAILURE\n", name);
		return;
	}
	frame = frame_in_pool();
	if (!frame) {
		ksft_test_result_fail("%s: no page came to a pool\n", name);
		return;
	}
	before = sum_of("/proc/meminfo", "HardwareCorrupted");
	handled = poison(frame);
	if (!handled)
		ksft_print_msg("hard_offline_page: %s\n", strerror(errno));
	after = sum_of("/proc/meminfo", "HardwareCorrupted");
	poison(frame);
	again = sum_of("/proc/meminfo", "HardwareCorrupted");
	ksft_print_msg("%ld KiB are poisoned, %ld after the first time, %ld after the second\n",
		       before, after, again);
	/* Its content exists elsewhere, and the page is never reused. */
	right = touch(0, CHUNK) && frame_of(at) && frame_of(at) != frame;
	must(write_text(LUF "drain", "1"), LUF "drain");
	right &= defer(0, PAGES) && has_flag(frame, KPF_HWPOISON);
	ksft_test_result(handled && right && after - before == 4 && again == after, "%s\n", name);
}

/* Short-lived references of readers */

static struct {
	bool stop;
	long reads;
	long wrong;
} hammer;

static void *read_often(void *cpu)
{
	uint32_t word;

	stay_on((intptr_t)cpu);
	for (uint32_t i = (intptr_t)cpu; !get(hammer.stop); i = (i * 5 + 1) % PAGES) {
		if (pread(file, &word, sizeof(word), i * PAGE) != sizeof(word) || word != i)
			__atomic_add_fetch(&hammer.wrong, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&hammer.reads, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static long lost(void)
{
	return all_deferred() - released();
}

static void nothing_is_lost_where_pages_are_held(const char *name)
{
	long before = count("deferred_compaction"), kept = count("flushes_kept");
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[2];
	double end = now() + 1;
	bool right = true;

	if (access("/proc/sys/vm/compact_memory", F_OK)) {
		ksft_test_result_skip("%s: a kernel without CONFIG_COMPACTION\n", name);
		return;
	}
	for (intptr_t i = 0; i < 2; i++)
		must(!pthread_create(&threads[i], NULL, read_often,
				     (void *)((i + 2) % cpus)), "thread");
	for (int i = 0; !i || (i < 50 && now() < end); i++) {
		right &= touch(0, PAGES);
		right &= write_text("/proc/sys/vm/compact_memory", "1");
	}
	set(hammer.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	must(write_text(LUF "drain", "1"), LUF "drain");
	ksft_print_msg("%ld reads, %ld wrong; %ld pages lost\n", hammer.reads, hammer.wrong,
		       lost());
	ksft_print_msg("%ld pages moved lazily, %ld flushes for what was kept\n",
		       count("deferred_compaction") - before, count("flushes_kept") - kept);
	ksft_test_result(right && hammer.reads && !hammer.wrong && !lost(), "%s\n", name);
}

static const struct {
	const char *name;
	void (*run)(const char *name);
} tests[] = {
#define TEST(name) { #name, name }
	TEST(pools_keep_to_their_size),
	TEST(pages_leave_in_time),
	TEST(a_new_age_holds_at_once),
	TEST(pages_are_counted),
	TEST(a_drain_waits_for_flushes),
	TEST(switching_off_waits_for_flushes),
	TEST(offlining_waits_for_flushes),
	TEST(contiguous_allocations_wait_for_flushes),
	TEST(what_drains_all_waits_for_flushes),
	TEST(a_poisoned_page_of_a_pool_is_handled),
	TEST(nothing_is_lost_where_pages_are_held),
};

static bool is_asked_for(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

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

int main(int argc, char **argv)
{
	unsigned int asked = 0;
	pthread_t thread;

	ksft_print_header();
	begin_luf_test();
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		asked += is_asked_for(tests[i].name, argc, argv);
	ksft_set_plan(asked);
	make_file();
	stay_on(0);
	must(!pthread_create(&thread, NULL, be_around, NULL), "thread");
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		double begin = now();

		if (!is_asked_for(tests[i].name, argc, argv))
			continue;
		reset();
		tests[i].run(tests[i].name);
		ksft_print_msg("%.1f s\n", now() - begin);
	}
	reset();
	set(stop, true);
	pthread_join(thread, NULL);
	unlink(NAME);
	ksft_finished();
}
