// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * First touches, each timed: threads fill two mappings of the same size, a plain one and one with MADV_HUGEPAGE.
 *
 *     touch THREADS BYTES [NOTES]
 *
 * BYTES is the size of both. Each thread runs on a CPU of its own, from the last one of the machine on, and fills its part
 * of them: 2 MiB of the plain one, then 2 MiB of the other, and so on; each page is written once, in order. The time of a
 * touch is that between two reads of the time-stamp counter.
 * NOTES is a file for the results, a name and a number a line, in nanoseconds of the guest's clock:
 *
 *     touch_ns_max, touch_ns_tail      the longest touch, and the k-th longest; k is 10^-4 of the touches
 *     touches_over_100us, ..._100ms    touches that took longer
 *     huge_pages                       huge pages at the end
 *     touch_elapsed_ns, touch_cpu_ns   time until all threads ended, and CPU time of the process in it
 *     touches_KIND_LOW                 a histogram, for the kinds plain and advised: touches of LOW ns and more, up to an
 *                                      eighth of a power of two more
 *
 * touch_ns_*_KIND and touches_over_*_KIND are those of a kind.
 */
#include "util.h"

#include <x86intrin.h>

enum { KINDS = 2, ADVISED = 1, SHIFT = 3, BUCKETS = (65 - SHIFT) << SHIFT };
enum { TAIL = 10000 };

static const char *const kinds[KINDS] = { "plain", "advised" };

enum { LIMITS = 4 };

static const struct {
	const char *name;
	uint64_t ns;
} limits[LIMITS] = { { "100us", 100000 }, { "1ms", 1000000 }, { "10ms", 10000000 }, { "100ms", 100000000 } };

struct touches {
	uint64_t buckets[BUCKETS], over[LIMITS];
	uint64_t count, longest;
};

static size_t threads, regions;
static char *memory[KINDS];
static double ns_per_tick;
static struct touches touches[MAX_THREADS][KINDS];

static unsigned int bucket_of(uint64_t value)
{
	unsigned int shift;

	if (value < 1 << SHIFT)
		return value;
	shift = 63 - __builtin_clzll(value) - SHIFT;
	return (shift << SHIFT) + (value >> shift);
}

static uint64_t low_of(unsigned int bucket)
{
	if (bucket < 1 << SHIFT)
		return bucket;
	return (uint64_t)((1 << SHIFT) + bucket % (1 << SHIFT)) << ((bucket >> SHIFT) - 1);
}

/* A touch should wait for memory, and not for a CPU: the scenario leaves the last ones to these threads. */
static void use_cpu_from_last(size_t thread)
{
	size_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus - 1 - thread % cpus, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void touch_region(struct touches *to, volatile char *region)
{
	for (size_t at = 0; at < REGION; at += PAGE) {
		unsigned int processor;
		uint64_t begin = __rdtscp(&processor), ns;

		region[at] = 1;
		ns = (__rdtscp(&processor) - begin) * ns_per_tick;
		to->buckets[bucket_of(ns)]++;
		to->count++;
		for (int i = 0; i < LIMITS && ns > limits[i].ns; i++)
			to->over[i]++;
		if (ns > to->longest)
			to->longest = ns;
	}
}

static void *fill(void *argument)
{
	size_t thread = (uintptr_t)argument;

	use_cpu_from_last(thread);
	for (size_t region = thread * regions / threads; region < (thread + 1) * regions / threads; region++)
		for (int kind = 0; kind < KINDS; kind++)
			touch_region(&touches[thread][kind], memory[kind] + region * REGION);
	return NULL;
}

/* Both clocks count while this thread does not run. */
static void measure_ticks(void)
{
	unsigned int processor;
	int64_t begin = clock_ns(), end;
	uint64_t ticks = __rdtscp(&processor);

	do {
		end = clock_ns();
	} while (end < begin + 10000000);
	ns_per_tick = (double)(end - begin) / (__rdtscp(&processor) - ticks);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void add(struct touches *to, const struct touches *from)
{
	for (int i = 0; i < BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	for (int i = 0; i < LIMITS; i++)
		to->over[i] += from->over[i];
	to->count += from->count;
	if (from->longest > to->longest)
		to->longest = from->longest;
}

static uint64_t tail_of(const struct touches *it)
{
	uint64_t left = (it->count + TAIL - 1) / TAIL;

	for (unsigned int i = BUCKETS; i-- > 0;) {
		if (it->buckets[i] >= left)
			return low_of(i);
		left -= it->buckets[i];
	}
	return 0;
}

/* `kind` is "" or begins with an underscore. */
static void write_results(FILE *file, const char *kind, const struct touches *it)
{
	fprintf(file, "touch_ns_max%s %lu\ntouch_ns_tail%s %lu\n", kind, it->longest, kind, tail_of(it));
	for (int i = 0; i < LIMITS; i++)
		fprintf(file, "touches_over_%s%s %lu\n", limits[i].name, kind, it->over[i]);
}

static unsigned long huge_pages(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kib = 0;
	char line[128];

	if (!file)
		fail("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	fclose(file);
	return kib / (REGION >> 10);
}

static void write_notes(const char *path, int64_t elapsed, int64_t ran)
{
	struct touches all = {}, of[KINDS] = {};
	FILE *file = fopen(path, "we");

	if (!file)
		fail(path);
	for (int kind = 0; kind < KINDS; kind++) {
		char name[32];

		for (size_t thread = 0; thread < threads; thread++)
			add(&of[kind], &touches[thread][kind]);
		add(&all, &of[kind]);
		snprintf(name, sizeof(name), "_%s", kinds[kind]);
		write_results(file, name, &of[kind]);
		for (unsigned int i = 0; i < BUCKETS; i++)
			if (of[kind].buckets[i])
				fprintf(file, "touches_%s_%lu %lu\n", kinds[kind], low_of(i), of[kind].buckets[i]);
	}
	write_results(file, "", &all);
	fprintf(file, "huge_pages %lu\ntouch_elapsed_ns %ld\ntouch_cpu_ns %ld\n", huge_pages(), elapsed, ran);
	if (fclose(file))
		fail(path);
}

int main(int argc, char **argv)
{
	int64_t begin, ran;

	if (argc != 3 && argc != 4)
		usage("touch THREADS BYTES [NOTES]");
	threads = number(argv[1]);
	regions = number(argv[2]) / KINDS / REGION;
	if (threads > MAX_THREADS || !regions) {
		fprintf(stderr, "touch: at most 64 threads, and 4 MiB or more\n");
		return 2;
	}
	measure_ticks();
	for (int kind = 0; kind < KINDS; kind++)
		memory[kind] = reserve(regions * REGION);
	if (madvise(memory[ADVISED], regions * REGION, MADV_HUGEPAGE) && errno != EINVAL)
		fail("madvise");
	begin = clock_ns();
	ran = cpu_ns();
	in_threads(threads, fill);
	if (argc == 4)
		write_notes(argv[3], clock_ns() - begin, cpu_ns() - ran);
	return 0;
}
