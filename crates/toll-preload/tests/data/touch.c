/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Three blocks of 32 MiB, written completely. Prints a checksum, and writes to the file named by
 * HUGE how much of each is huge.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "huge.h"

#define LENGTH ((size_t)32 << 20)

/* Separates adjacent mappings; too large for holes elsewhere. */
static void wall(void)
{
	mmap(NULL, 2 * LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void fill(char *p)
{
	size_t i;

	for (i = 0; i < LENGTH; i += 512)
		p[i] = (char)(i >> 9);
}

int main(void)
{
	char *a, *b, *c;
	const char *path = getenv("HUGE");
	unsigned long sum = 0;
	size_t i;

	wall();
	a = malloc(LENGTH);
	wall();
	b = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wall();
	c = calloc(LENGTH, 1);
	wall();
	fill(a);
	fill(b);
	fill(c);
	for (i = 0; i < LENGTH; i += 4096)
		sum = sum * 31 + a[i] + b[i + 512] + c[i + 1024];
	printf("%lu\n", sum);
	if (path) {
		FILE *out = fopen(path, "w");
		fprintf(out, "%ld %ld %ld %ld\n", huge_kib(a, LENGTH), huge_kib(b, LENGTH),
			huge_kib(c, LENGTH), mappings());
		fclose(out);
	}
	return 0;
}
