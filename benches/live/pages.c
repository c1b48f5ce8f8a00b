// SPDX-License-Identifier: MIT OR Apache-2.0
/* The time of an access at random in 256 MiB, by the kind of its pages: of a new program, collapsed, and split again.
 *
 *	cc -O2 benches/live/pages.c -o pages && ./pages
 *
 * `tune --pid` compares collapsed with split pages. They differ from those of a new program: split pages are contiguous.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 4096, HUGE = 2 << 20, LENGTH = 256 << 20, PAGES = LENGTH / PAGE, ACCESSES = 10000000 };

static uint64_t next(uint64_t state)
{
	return state * 6364136223846793005u + 1442695040888963407u;
}

/* Nanoseconds of an access with an address that depends on the one before. */
static double access_time(const volatile char *block)
{
	struct timespec begun, ended;
	uint64_t state = 1;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (int i = 0; i < ACCESSES; i++)
		state = next(state) + block[(state >> 33) % LENGTH];
	clock_gettime(CLOCK_MONOTONIC, &ended);
	return ((ended.tv_sec - begun.tv_sec) * 1e9 + ended.tv_nsec - begun.tv_nsec) / ACCESSES;
}

/* The share of pages with the frame behind that of the page before; below 0 if frames are hidden. */
static double contiguous(const char *block)
{
	static uint64_t entries[PAGES];
	const uint64_t frame = ((uint64_t)1 << 55) - 1;
	int file = open("/proc/self/pagemap", O_RDONLY), pairs = 0;
	ssize_t got = pread(file, entries, sizeof(entries), (uintptr_t)block / PAGE * sizeof(*entries));

	close(file);
	if (got != sizeof(entries) || !(entries[0] & frame))
		return -1;
	for (int i = 1; i < PAGES; i++)
		pairs += (entries[i] & frame) == (entries[i - 1] & frame) + 1;
	return pairs / (PAGES - 1.0);
}

static void show(const char *kind, const char *block)
{
	double share = contiguous(block);

	access_time(block);
	printf("%-32s %6.1f ns, ", kind, access_time(block));
	if (share < 0)
		printf("frames are hidden (run it as root)\n");
	else
		printf("%3.0f %% of pages contiguous\n", share * 100);
}

static int advise_each(char *block, size_t length, int advice)
{
	for (size_t at = 0; at < LENGTH; at += HUGE)
		if (madvise(block + at, length, advice)) {
			perror("madvise");
			return 1;
		}
	return 0;
}

static int compare(const char *kind, int at_random, int content)
{
	char *room = mmap(NULL, LENGTH + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *block = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	uint64_t state = 7;

	if (room == MAP_FAILED)
		return 1;
	for (int i = 0; at_random && i < 8 * PAGES; i++) {
		state = next(state);
		block[(state >> 33) % PAGES * PAGE] = content;
	}
	memset(block, content, LENGTH);
	show(kind, block);
	if (advise_each(block, HUGE, MADV_COLLAPSE))
		return 1;
	show("  collapsed", block);
	if (advise_each(block, PAGE, MADV_COLD))
		return 1;
	show("  split", block);
	return munmap(room, LENGTH + HUGE);
}

int main(void)
{
	return compare("touched in order", 0, 1) || compare("touched at random", 1, 1) || compare("full of zeros", 0, 0);
}
