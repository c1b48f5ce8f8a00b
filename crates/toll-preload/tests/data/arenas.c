/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * 33 mappings of 1 MiB, each below the previous one and written as soon as it is mapped, like
 * Python's arenas; then one in the middle is replaced. Prints a checksum, and writes to the file
 * named by HUGE how much was huge before and after the replacement.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "huge.h"

#define LENGTH ((size_t)1 << 20)
#define REGION ((uintptr_t)2 << 20)
#define COUNT 33

static char *map(char *at)
{
	char *p = mmap(at, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != at)
		exit(1);
	memset(p, 1, LENGTH);
	return p;
}

int main(void)
{
	const char *path = getenv("HUGE");
	size_t room = (COUNT + 5) * LENGTH, i;
	char *free_room = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The first fills the upper half of a region, the last one the upper half of its own. */
	char *top = (char *)(((uintptr_t)free_room + room - LENGTH) & ~(REGION - 1)) - LENGTH;
	char *arenas[COUNT];
	long before, sum = 0;

	munmap(free_room, room);
	for (i = 0; i < COUNT; i++)
		arenas[i] = map(top - i * LENGTH);
	before = huge_kib(arenas[COUNT - 1], COUNT * LENGTH);
	munmap(arenas[COUNT / 2], LENGTH);
	arenas[COUNT / 2] = map(arenas[COUNT / 2]);
	for (i = 0; i < COUNT; i++)
		sum += arenas[i][i * 4096];
	printf("%ld\n", sum);
	if (path) {
		FILE *out = fopen(path, "w");

		fprintf(out, "%ld %ld %ld 0\n", before, huge_kib(arenas[COUNT - 1], COUNT * LENGTH),
			mappings());
		fclose(out);
	}
	return 0;
}
