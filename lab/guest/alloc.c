// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Allocates pages in the kernel (toll_lab_alloc in debugfs), which counts the instructions of each allocation.
 *
 *     alloc SECTION paced ORDER kernel|huge|atomic|nowait COUNT KEEP MICROSECONDS
 *     alloc SECTION storm ORDER kernel|huge|atomic|nowait COUNT BURST
 *     alloc wait
 *
 * Paced: COUNT allocations, the last KEEP of them held, with a pause after each. Each CPU makes its share, so that the
 * content of a CPU's list of free pages does not depend on where the scheduler puts one task. Storm: COUNT allocations in
 * bursts. A burst is held as a whole and then freed; the next one begins when other programs have taken the freed pages
 * and the kernel reclaims again. Another program has to use memory meanwhile. A failed allocation is counted and is no
 * error; the number of failures is printed at the end. Wait: ends when the kernel reclaims.
 */
#include "section.h"

#include <sys/mman.h>

#define ASK "/sys/kernel/debug/toll_lab_alloc"

/* With this many more pages reclaimed, reclaim has started again: a smaller number may be the end of an earlier one. */
enum { RECLAIMS_AGAIN = 1000, POLL_US = 5000, MAX_POLLS = 20000 };

static void ask(int fd, const char *order, const char *how, size_t count, size_t keep, size_t pause)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %s %zu %zu %zu", order, how, count, keep, pause);

	if (write(fd, line, length) != length)
		fail(line);
}

struct totals {
	unsigned long allocs, failures;
};

static struct totals totals_of(int fd)
{
	struct totals totals;
	char text[128] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "allocs %lu failures %lu", &totals.allocs, &totals.failures) != 2)
		fail(ASK);
	return totals;
}

static int open_ask(void)
{
	int fd = open(ASK, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail(ASK);
	return fd;
}

static long long reclaimed(void)
{
	static char text[SECTION_STAT_SIZE];

	section_read_stat(text);
	return section_stat(text, "pgsteal_kswapd", 14) + section_stat(text, "pgsteal_direct", 14);
}

static void wait_for_reclaim(void)
{
	long long before = reclaimed();

	for (int polls = 0; reclaimed() < before + RECLAIMS_AGAIN; polls++) {
		if (polls == MAX_POLLS) {
			fprintf(stderr, "alloc: nothing is reclaimed: memory is not short\n");
			exit(1);
		}
		usleep(POLL_US);
	}
}

static struct totals storm(char **how, size_t count, size_t burst)
{
	int fd = open_ask();

	while (count) {
		size_t now = count < burst ? count : burst;

		wait_for_reclaim();
		ask(fd, how[0], how[1], now, burst, 0);
		count -= now;
	}
	return totals_of(fd);
}

/* The share of one CPU of several. */
static size_t share(size_t whole, int cpu, int cpus)
{
	return whole * (cpu + 1) / cpus - whole * cpu / cpus;
}

static void pace_on(int cpu, int cpus, char **how, size_t count, size_t keep, size_t pause, struct totals *totals)
{
	int fd = open_ask();

	pin(cpu);
	if (share(count, cpu, cpus))
		ask(fd, how[0], how[1], share(count, cpu, cpus), share(keep, cpu, cpus), pause);
	*totals = totals_of(fd);
}

static struct totals pace(char **how, size_t count, size_t keep, size_t pause)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct totals all = { 0 }, *each = mmap(NULL, cpus * sizeof(*each), PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (each == MAP_FAILED)
		fail("mmap");
	for (int cpu = 0; cpu < cpus; cpu++) {
		pid_t pid = new_child();

		if (!pid) {
			pace_on(cpu, cpus, how, count, keep, pause, &each[cpu]);
			_exit(0);
		}
	}
	wait_for_children(cpus);
	for (int cpu = 0; cpu < cpus; cpu++) {
		all.allocs += each[cpu].allocs;
		all.failures += each[cpu].failures;
	}
	return all;
}

int main(int argc, char **argv)
{
	int is_storm = argc == 7 && !strcmp(argv[2], "storm");
	struct totals totals;
	size_t count, held;

	if (argc == 2 && !strcmp(argv[1], "wait")) {
		wait_for_reclaim();
		return 0;
	}
	if (!is_storm && (argc != 8 || strcmp(argv[2], "paced")))
		usage("alloc SECTION paced|storm ORDER kernel|huge|atomic|nowait COUNT KEEP|BURST [MICROSECONDS]");
	count = number(argv[5]);
	held = number(argv[6]);
	section_begin(argv[1]);
	totals = is_storm ? storm(argv + 3, count, held) : pace(argv + 3, count, held, number(argv[7]));
	section_end();
	printf("allocs %lu\nfailures %lu\n", totals.allocs, totals.failures);
	return 0;
}
