/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks from each allocating function, one per line; the argument is a factor for their sizes. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static void *keep[64];
static int kept;

static void hold(void *block, size_t length)
{
	memset(block, kept + 1, length);
	keep[kept++] = block;
}

int main(int argc, char **argv)
{
	size_t f = argc > 1 ? atoi(argv[1]) : 1;
	void *p;
	int i;

	hold(malloc(2 * MIB * f), 2 * MIB * f);
	hold(calloc(f, 3 * MIB), 3 * MIB * f);
	hold(realloc(malloc(100), 4 * MIB * f), 4 * MIB * f);
	hold(reallocarray(NULL, f, 5 * MIB), 5 * MIB * f);
	hold(memalign(1 << 16, 6 * MIB * f), 6 * MIB * f);
	hold(aligned_alloc(64, 7 * MIB * f), 7 * MIB * f);
	if (posix_memalign(&p, 4096, 8 * MIB * f))
		return 1;
	hold(p, 8 * MIB * f);
	hold(valloc(9 * MIB * f), 9 * MIB * f);
	hold(pvalloc(10 * MIB * f), 10 * MIB * f);
	hold(mmap(NULL, 11 * MIB * f, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 11 * MIB * f);
	for (i = 0; i < 3; i++)
		hold(malloc(12 * MIB * f), 12 * MIB * f);
	for (i = 0; i < kept; i++)
		printf("%d", ((char *)keep[i])[12345]);
	printf("\n");
	free(keep[0]);
	munmap(keep[9], 11 * MIB * f);
	return 0;
}
