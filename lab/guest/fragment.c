// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Breaks free memory into small pieces and leaves it so: fills it with pipes of 64 KiB, then reads back all but one page
 * of each. What stays is unmovable, and in every block.
 *
 *     fragment LEAVE-BYTES
 *
 * So much memory is not touched by the pipes; what the kernel itself keeps free (min_free_kbytes) is small meanwhile.
 * Ends when memory is in pieces, with what is free in blocks above order 3 on stdout; processes in the background hold
 * the pipes, and as memory of their own what stayed whole. Fails if more than 2 % of free memory is still in such
 * blocks: then it is not fragmented.
 */
#include "util.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

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

/* One process has room for so many descriptors only. */
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

/* Free memory in blocks above order 3, and all of it, in pages; without the first 16 MiB (zone DMA), which are kept
 * back from programs. */
static void survey(size_t *large, size_t *all)
{
	FILE *file = fopen("/proc/buddyinfo", "re");
	char line[512];

	*large = *all = 0;
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

#define MIDDLE_SIZE "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"

static void set_middle_size(const char *mode)
{
	FILE *file = fopen(MIDDLE_SIZE, "we");

	/* A kernel may be without; what is left is judged anyway. */
	if (file) {
		fputs(mode, file);
		fclose(file);
	}
}

/* Takes what is still in blocks above order 3, as memory of a process in pieces of 64 KiB. */
static void soak_up(const struct gate *gate, size_t pages)
{
	pid_t child = fork();
	char *memory;

	if (child < 0)
		fail("fork");
	if (child) {
		gate_gather(gate, 1);
		return;
	}
	set_middle_size("always");
	memory = reserve(pages * PAGE);
	for (size_t at = 0; at < pages * PAGE; at += PAGE)
		memory[at] = 1;
	set_middle_size("never");
	gate_wait(gate);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const unsigned long reserve_before = reserve_of_kernel();
	struct rlimit files = { 2 * PIPES_PER_HOLDER + 64, 2 * PIPES_PER_HOLDER + 64 };
	int holders = 0;
	size_t leave, large, all;
	struct gate gate = gate_new();

	if (argc != 2)
		usage("fragment LEAVE-BYTES");
	leave = number(argv[1]);
	if (setrlimit(RLIMIT_NOFILE, &files))
		fail("setrlimit");
	set_reserve_of_kernel(RESERVE_MEANWHILE);
	while (free_memory() > leave) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0)
			hold(&gate, leave);
		gate_gather(&gate, 1);
		holders++;
	}
	gate_open(&gate, holders);
	gate_gather(&gate, holders);
	survey(&large, &all);
	/* More than once: what the kernel frees meanwhile may grow together again. */
	for (int round = 0; round < MAX_ROUNDS; round++) {
		set_reserve_of_kernel(RESERVE_MEANWHILE);
		soak_up(&gate, large);
		set_reserve_of_kernel(reserve_before);
		survey(&large, &all);
		if (large * 50 <= all)
			break;
	}
	printf("%zu of %zu free pages are in blocks above order 3\n", large, all);
	if (large * 50 > all) {
		show_blocks();
		fprintf(stderr, "fragment: %zu of %zu free pages are still in blocks above order 3\n", large, all);
		return 1;
	}
	return 0;
}
