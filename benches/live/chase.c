/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A dependent chase over one block, without an end: chase MIB LOG. LOG gets the process id when it
 * begins, and a line for each round. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 20000 };

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	size_t slots = ((size_t)strtoull(argv[1], 0, 10) << 20) / 64;
	uint64_t *block = malloc(slots * 64), at = 1;
	int log = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);

	if (!block || log < 0)
		return 1;
	for (size_t i = 0; i < slots; i++)
		block[i * 8] = i * 0x9e3779b97f4a7c15ull;
	dprintf(log, "%ld\n", (long)getpid());
	for (;;) {
		for (int i = 0; i < STEPS; i++)
			at = (at * 6364136223846793005ull + block[(at >> 20) % slots * 8]) | 1;
		if (dprintf(log, "%d\n", (int)(at >> 60)) < 0)
			return 1;
	}
}
