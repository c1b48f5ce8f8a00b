// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One access to each of N pages in turn, over and over: how often that misses can be worked out by hand.
 *
 *     stride SECTION PAGES 4k|2m read|write ROUNDS
 */
#include "toll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Memory of pages of one size, all touched; aligned to 2 MiB. */
static volatile char *pages_of(size_t count, size_t size, int advice)
{
	const size_t region = 2ul << 20;
	size_t length = count * size;
	char *raw = mmap(NULL, length + region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start = (char *)(((unsigned long)raw + region - 1) & ~(region - 1));

	if (raw == MAP_FAILED)
		fail("mmap");
	if (madvise(start, length, advice))
		fail("madvise");
	memset(start, 1, length);
	return start;
}

static void read_all(volatile char *start, size_t count, size_t size)
{
	for (size_t page = 0; page < count; page++)
		(void)start[page * size];
}

static void write_all(volatile char *start, size_t count, size_t size)
{
	for (size_t page = 0; page < count; page++)
		start[page * size] = 2;
}

int main(int argc, char **argv)
{
	size_t count, size, rounds;
	volatile char *start;
	void (*sweep)(volatile char *, size_t, size_t);

	if (argc != 6) {
		fprintf(stderr, "usage: stride SECTION PAGES 4k|2m read|write ROUNDS\n");
		return 2;
	}
	count = strtoul(argv[2], NULL, 10);
	size = strcmp(argv[3], "2m") ? 4096 : 2ul << 20;
	sweep = strcmp(argv[4], "write") ? read_all : write_all;
	rounds = strtoul(argv[5], NULL, 10);
	start = pages_of(count, size, size == 4096 ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	sweep(start, count, size);
	toll_begin(argv[1]);
	for (size_t round = 0; round < rounds; round++)
		sweep(start, count, size);
	toll_end();
	return 0;
}
