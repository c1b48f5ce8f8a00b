/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A mapping and a block that grow step by step, with a pattern that must be preserved; prints
 * whether it was, and whether each mremap succeeded.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static void fill(uint64_t *p, size_t from, size_t to)
{
	size_t i;

	for (i = from / 8; i < to / 8; i += 64)
		p[i] = i * 7 + 1;
}

static int check(uint64_t *p, size_t to)
{
	size_t i;

	for (i = 0; i < to / 8; i += 64)
		if (p[i] != i * 7 + 1)
			return 0;
	return 1;
}

int main(void)
{
	size_t length = 16 * MIB, step;
	uint64_t *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *q = malloc(3 * MIB);
	void *fixed;

	fill(p, 0, length);
	for (step = 0; step < 4; step++) {
		uint64_t *wall = mmap(p + length / 8, 4096, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		p = mremap(p, length, length + 16 * MIB, MREMAP_MAYMOVE);
		if (p == MAP_FAILED)
			return 1;
		if (wall != MAP_FAILED)
			munmap(wall, 4096);
		fill(p, length, length + 16 * MIB);
		length += 16 * MIB;
		printf("%d ", check(p, length));
	}
	fixed = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = mremap(p, length, length + MIB, MREMAP_MAYMOVE | MREMAP_FIXED, fixed);
	printf("%d %d ", p == fixed, check(p, length));
	p = mremap(p, length + MIB, 8 * MIB, 0);
	printf("%d\n", check(p, 8 * MIB));
	munmap(p, 8 * MIB);

	fill(q, 0, 3 * MIB);
	for (step = 3; step < 100; step += step / 2) {
		q = realloc(q, (step + step / 2) * MIB);
		fill(q, step * MIB, (step + step / 2) * MIB);
		printf("%d ", check(q, (step + step / 2) * MIB));
	}
	q = realloc(q, 1000);
	printf("%d\n", check(q, 1000));
	free(q);
	return 0;
}
