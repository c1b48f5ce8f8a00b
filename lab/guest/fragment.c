// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fragments free memory: fills it with pipes of 64 KiB, then reads back all but one page of each. The remaining pages are
 * unmovable, and in every block. With `movable` they are memory of a process that returned all but one page of each
 * 64 KiB, and compaction can move them. With `spread` they are one page of each 2 MiB of such memory: hardly any block is
 * free, and each could be freed by moving one page. PERCENT of these pages are pinned by a pipe, and cannot be moved.
 *
 *     fragment [movable|spread[:PERCENT]] LEAVE-BYTES [WHOLE-BYTES]
 *
 * The pipes leave LEAVE-BYTES of memory; the kernel's own reserve (min_free_kbytes) is small meanwhile.
 * WHOLE-BYTES more are excluded, and are free in whole blocks at the end.
 * Ends when memory is fragmented, and prints the free memory in blocks above order 3; processes in the background hold
 * the pipes, and the blocks that stayed whole as memory of their own. Fails if more than 2 % of free memory is still in
 * such blocks, or any in one of 2 MiB: then it is not fragmented. With `spread`, blocks below 2 MiB do not matter.
 */
#include "util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

enum { PIPE_SIZE = 64 << 10, MAX_PIPES = 1 << 18, PIPES_PER_HOLDER = 30000, MAX_ROUNDS = 8 };
enum { RESERVE_MEANWHILE = 2048 };  /* KiB */

static size_t free_memory(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		fail("sysinfo");
	return info.freeram * info.mem_unit;
}

/* Fills pipes until memory is short; the ends that can be written are kept as well, or data would go. */
static int fill(int (*pipes)[2], int most, size_t leave)
{
	static char data[PIPE_SIZE];
	int count;

	for (count = 0; count < most && free_memory() > leave; count++) {
		if (pipe2(pipes[count], O_NONBLOCK))
			fail("pipe");
		if (write(pipes[count][1], data, PIPE_SIZE) < (ssize_t)PAGE)
			break;
	}
	return count;
}

static void thin_out(int (*pipes)[2], int count)
{
	static char data[PIPE_SIZE];

	for (int i = 0; i < count; i++)
		if (read(pipes[i][0], data, PIPE_SIZE - PAGE) < 0)
			fail("read");
}

/* Memory that nothing is done to, in blocks as large as they are now; until it is let go. */
static pid_t keep_whole(const struct gate *gate, size_t length)
{
	pid_t child = new_child();
	char *memory;

	if (child) {
		gate_gather(gate, 1);
		return child;
	}
	memory = reserve(length);
	if (madvise(memory, length, MADV_HUGEPAGE) && errno != EINVAL)
		fail("madvise");
	for (size_t at = 0; at < length; at += PAGE)
		memory[at] = 1;
	gate_wait(gate);
	for (;;)
		pause();
}

static void let_go(pid_t child)
{
	if (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
		fail("kill");
}

/* Pins @percent of the last pages of all regions, evenly spread. */
static void pin_pages(char *memory, size_t length, size_t percent)
{
	size_t regions = length / REGION;
	int ends[2];

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, (regions * percent / 100 + 1) * PAGE) < 0)
		fail("pipe");
	for (size_t i = 1; i <= regions; i++) {
		struct iovec page = { memory + i * REGION - PAGE, PAGE };

		if (i * percent / 100 != (i - 1) * percent / 100 && vmsplice(ends[1], &page, 1, 0) != PAGE)
			fail("vmsplice");
	}
}

/* Takes all free memory but @leave in 4 KiB pages, then returns all but one of each @piece; @percent of those are pinned. */
static void hold_movable(const struct gate *gate, size_t leave, size_t piece, size_t percent)
{
	size_t length = free_memory() > leave ? (free_memory() - leave) & ~(REGION - 1) : 0;
	char *memory = length ? reserve(length) : NULL;

	if (length && madvise(memory, length, MADV_NOHUGEPAGE) && errno != EINVAL)
		fail("madvise");
	for (size_t at = 0; at < length; at += PAGE)
		memory[at] = 1;
	gate_wait(gate);
	for (size_t at = 0; at < length; at += piece)
		if (madvise(memory + at, piece - PAGE, MADV_DONTNEED))
			fail("madvise");
	if (percent)
		pin_pages(memory, length, percent);
	gate_wait(gate);
	for (;;)
		pause();
}

/* One process can hold PIPES_PER_HOLDER pipes: the number of descriptors is limited. */
static void hold(const struct gate *gate, size_t leave)
{
	static int pipes[PIPES_PER_HOLDER][2];
	int count = fill(pipes, PIPES_PER_HOLDER, leave);

	gate_wait(gate);
	thin_out(pipes, count);
	gate_wait(gate);
	for (;;)
		pause();
}

/* Free memory in blocks above order 3, and all of it, in pages, and blocks of 2 MiB and more; without the first 16 MiB
 * (zone DMA), which are kept back from programs. */
static void survey(size_t *large, size_t *all, size_t *huge)
{
	FILE *file = fopen("/proc/buddyinfo", "re");
	char line[512];

	*large = *all = *huge = 0;
	if (!file)
		fail("/proc/buddyinfo");
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "zone");
		int order = 0;

		/* "zone", its name, and a count for each order. */
		strtok(at, " ");
		if (!strcmp(strtok(NULL, " "), "DMA"))
			continue;
		for (; (at = strtok(NULL, " \n")); order++) {
			*all += strtoul(at, NULL, 10) << order;
			*large += order > 3 ? strtoul(at, NULL, 10) << order : 0;
			*huge += order > 8 ? strtoul(at, NULL, 10) : 0;
		}
	}
	fclose(file);
}

#define RESERVE "/proc/sys/vm/min_free_kbytes"

static unsigned long reserve_of_kernel(void)
{
	FILE *file = fopen(RESERVE, "re");
	unsigned long kib;

	if (!file || fscanf(file, "%lu", &kib) != 1)
		fail(RESERVE);
	fclose(file);
	return kib;
}

static void set_reserve_of_kernel(unsigned long kib)
{
	FILE *file = fopen(RESERVE, "we");

	if (!file || fprintf(file, "%lu\n", kib) < 0 || fclose(file))
		fail(RESERVE);
}

/* By type as well: what is kept back for atomic allocations cannot be soaked up. */
static void show_blocks(void)
{
	FILE *file = fopen("/proc/pagetypeinfo", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stderr);
}

#define THP "/sys/kernel/mm/transparent_hugepage/"

/* A kernel may be without a size; what is left is judged anyway. */
static void set_thp(const char *what, const char *mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), THP "%s", what);
	file = fopen(path, "we");
	if (file) {
		fputs(mode, file);
		fclose(file);
	}
}

/* The word that is chosen of those that the file has. */
static void get_thp(const char *what, char *mode, size_t size)
{
	char path[128], line[128] = "";
	char *begin, *end;
	FILE *file;

	snprintf(path, sizeof(path), THP "%s", what);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		fail(path);
	fclose(file);
	begin = strchr(line, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end)
		fail(path);
	snprintf(mode, size, "%.*s", (int)(end - begin - 1), begin + 1);
}

static unsigned long huge_faults(void)
{
	FILE *file = fopen("/proc/vmstat", "re");
	unsigned long count = 0;
	char line[128];

	if (!file)
		fail("/proc/vmstat");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "thp_fault_alloc %lu", &count) == 1)
			break;
	fclose(file);
	return count;
}

/*
 * Takes blocks of 2 MiB for as long as there are any; those too that a CPU keeps for itself, which no survey sees.
 * None is put together for that.
 */
static void take_huge(void)
{
	char defrag[32];

	get_thp("defrag", defrag, sizeof(defrag));
	set_thp("defrag", "never");
	set_thp("hugepages-2048kB/enabled", "always");
	for (;;) {
		unsigned long before = huge_faults();
		char *memory = reserve(REGION);

		*memory = 1;
		if (huge_faults() == before) {
			if (munmap(memory, REGION))
				fail("munmap");
			break;
		}
		if (mlock(memory, REGION))
			fail("mlock");
	}
	set_thp("hugepages-2048kB/enabled", "inherit");
	set_thp("defrag", defrag);
}

/*
 * Takes what is still in blocks above order 3, as memory of a process in pieces of 64 KiB. It is locked: where
 * vm.compact_unevictable_allowed is 0, compaction leaves it where it is.
 */
static void soak_up(const struct gate *gate, size_t pages)
{
	pid_t child = new_child();
	char *memory;

	if (child) {
		gate_gather(gate, 1);
		return;
	}
	take_huge();
	set_thp("hugepages-64kB/enabled", "always");
	memory = reserve(pages * PAGE);
	for (size_t at = 0; at < pages * PAGE; at += PAGE)
		memory[at] = 1;
	set_thp("hugepages-64kB/enabled", "never");
	if (pages && mlock(memory, pages * PAGE))
		fail("mlock");
	gate_wait(gate);
	for (;;)
		pause();
}

#define USAGE "fragment [movable|spread[:PERCENT]] LEAVE-BYTES [WHOLE-BYTES]"

/* Whether the first argument is `spread`, and the percentage that follows it. */
static int reads_spread(int argc, char **argv, size_t *percent)
{
	const size_t length = strlen("spread");

	*percent = 0;
	if (argc < 2 || strncmp(argv[1], "spread", length))
		return 0;
	if (argv[1][length] == ':')
		*percent = number(argv[1] + length + 1);
	else if (argv[1][length])
		usage(USAGE);
	if (*percent > 100)
		usage(USAGE);
	return 1;
}

int main(int argc, char **argv)
{
	const unsigned long reserve_before = reserve_of_kernel();
	struct rlimit files = { 2 * PIPES_PER_HOLDER + 64, 2 * PIPES_PER_HOLDER + 64 };
	size_t percent;
	int is_spread = reads_spread(argc, argv, &percent);
	const char *what = is_spread ? "of 2 MiB" : "above order 3";
	int holders = 0, is_movable = is_spread || (argc > 1 && !strcmp(argv[1], "movable"));
	size_t leave, large, all, huge;
	struct gate gate = gate_new(), apart = gate_new();
	pid_t whole = 0;

	argc -= is_movable;
	argv += is_movable;
	if (argc != 2 && argc != 3)
		usage(USAGE);
	leave = number(argv[1]);
	if (argc == 3)
		whole = keep_whole(&apart, number(argv[2]));
	if (setrlimit(RLIMIT_NOFILE, &files))
		fail("setrlimit");
	set_reserve_of_kernel(RESERVE_MEANWHILE);
	do {
		pid_t child = new_child();

		if (child == 0 && is_movable)
			hold_movable(&gate, leave, is_spread ? REGION : PIPE_SIZE, percent);
		if (child == 0)
			hold(&gate, leave);
		gate_gather(&gate, 1);
		holders++;
	} while (!is_movable && free_memory() > leave);
	gate_open(&gate, holders);
	gate_gather(&gate, holders);
	survey(&large, &all, &huge);
	/* More than once: what the kernel frees meanwhile may grow together again. */
	for (int round = 0; round < MAX_ROUNDS; round++) {
		set_reserve_of_kernel(RESERVE_MEANWHILE);
		soak_up(&gate, is_spread ? 0 : large);
		set_reserve_of_kernel(reserve_before);
		survey(&large, &all, &huge);
		if (is_spread)
			large = huge * (REGION / PAGE);
		if (large * 50 <= all && !huge)
			break;
	}
	printf("%zu of %zu free pages are in blocks %s\n", large, all, what);
	if (whole)
		let_go(whole);
	if (large * 50 > all || huge) {
		show_blocks();
		fprintf(stderr, "fragment: %zu of %zu free pages are still in blocks %s\n", large, all, what);
		return 1;
	}
	return 0;
}
