/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A dependent chase over one block: huge pages gain. chase MIB STEPS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	size_t n = (argc > 1 ? strtoull(argv[1], 0, 10) : 256) << 20;
	size_t steps = argc > 2 ? strtoull(argv[2], 0, 10) : 1000000;
	size_t slots = n / 64;
	uint64_t *block = malloc(n);

	if (!block)
		return 1;
	/* One value per cache line, not a cycle: the address depends on the last load. */
	for (size_t i = 0; i < slots; i++)
		block[i * 8] = i * 0x9e3779b97f4a7c15ull;
	uint64_t at = 1;
	for (size_t i = 0; i < steps; i++)
		at = (at * 6364136223846793005ull + block[(at >> 20) % slots * 8]) | 1;
	printf("%llu\n", (unsigned long long)at);
	return 0;
}
