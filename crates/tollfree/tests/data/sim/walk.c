// SPDX-License-Identifier: MIT OR Apache-2.0
/* walk chase|gather|skew MIB COUNT: dependent loads, independent loads, or loads
 * mostly in a few regions; always the same sequence, in memory at 1 TiB. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t state = 88172645463325252ull;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* One pointer per page, in one random cycle. */
static uint64_t chase(char *at, size_t pages, long count)
{
	uint32_t *order = malloc(pages * sizeof(*order));
	void **p = (void **)at;

	for (size_t i = 0; i < pages; i++)
		order[i] = i;
	for (size_t i = pages - 1; i > 0; i--) {
		size_t j = next() % (i + 1);
		uint32_t swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
	for (size_t i = 0; i < pages; i++)
		*(void **)(at + (size_t)order[i] * 4096) =
			at + (size_t)order[(i + 1) % pages] * 4096;
	free(order);
	while (count--)
		p = *p;
	return (uint64_t)p;
}

static uint64_t gather(char *at, size_t pages, long count)
{
	static uint32_t index[65536];
	uint64_t sum = 0;

	for (int i = 0; i < 65536; i++)
		index[i] = next() % pages;
	for (long i = 0; i < count; i++)
		sum += *(volatile uint64_t *)(at + (size_t)index[i % 65536] * 4096);
	return sum;
}

/* The first regions get most loads: their share falls with the square root of the number. */
static uint64_t skew(char *at, size_t pages, long count)
{
	size_t regions = pages / 512;
	uint64_t sum = 0;

	while (count--) {
		uint64_t r = next();
		uint64_t part = r >> 8 & 0xffff;
		size_t region = (part * part * regions) >> 32;

		sum += *(volatile uint64_t *)(at + (region * 512 + (r >> 40) % 512) * 4096);
	}
	return sum;
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)atoi(argv[2]) << 20;
	long count = atol(argv[3]);
	char *at = mmap((void *)(1l << 40), bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	uint64_t result;

	(void)argc;
	for (size_t i = 0; i < bytes; i += 4096)
		at[i] = 1;
	if (!strcmp(argv[1], "chase"))
		result = chase(at, bytes / 4096, count);
	else if (!strcmp(argv[1], "gather"))
		result = gather(at, bytes / 4096, count);
	else
		result = skew(at, bytes / 4096, count);
	return result == 1;
}
