/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures the time of malloc + free for one block size (argv[1], bytes), in ns: the best of many
 * short rounds. All blocks come from the heap, without system calls.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	size_t length = argc > 1 ? strtoul(argv[1], NULL, 0) : 64;
	double best = 1e9;
	int round, i;

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	free(malloc(2 * length));
	for (round = 0; round < 200; round++) {
		double start = now(), each;

		for (i = 0; i < 1000; i++)
			free(malloc(length));
		each = (now() - start) / 1000;
		if (each < best)
			best = each;
	}
	printf("%.3f\n", best);
	return 0;
}
