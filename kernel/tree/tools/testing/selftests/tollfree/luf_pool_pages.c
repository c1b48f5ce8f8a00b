// SPDX-License-Identifier: GPL-2.0-only
/* The mapped file, its pages, and their state in the kernel. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "luf_pool.h"

const uint32_t *at;
int file;

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

long waiting(void)
{
	return number(LUF "pool_pages");
}

void set_number(const char *path, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	must(write_text(path, text), path);
}

/* Whether all pages of a range have the expected content. */
bool touch(int from, int to)
{
	bool right = true;

	for (int i = from; i < to; i++)
		right &= get(at[i * WORDS]) == (uint32_t)i;
	return right;
}

/* Read and reclaim pages, a few at a time; most of them go to a pool. */
bool defer(int from, int to)
{
	bool right = true;

	for (int i = from; i < to; i += CHUNK) {
		right &= touch(i, i + CHUNK);
		madvise((void *)(at + i * WORDS), CHUNK * PAGE, MADV_PAGEOUT);
	}
	return right;
}

/* Put the given number of pages into a pool. Return: false if not possible. */
bool defer_some(long pages)
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
bool becomes_empty(double seconds)
{
	double end = now() + seconds;

	while (waiting()) {
		if (now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

/* Sum of the values of a name, in pages or KiB. */
long sum_of(const char *path, const char *name)
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

uint64_t frame_of(const void *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	must(pread(fd, &entry, sizeof(entry), (uintptr_t)page / PAGE * sizeof(entry)) ==
	     sizeof(entry), "pagemap");
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

bool has_flag(uint64_t frame, int bit)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags = 0;

	must(pread(fd, &flags, sizeof(flags), frame * sizeof(flags)) == sizeof(flags),
	     "kpageflags");
	close(fd);
	return flags >> bit & 1;
}
