/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Works on a few pages only: huge pages gain nothing. small ROUNDS STATUS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoull(argv[1], 0, 10) : 100000000;
	int status = argc > 2 ? atoi(argv[2]) : 0;
	static volatile uint64_t block[512];

	for (size_t i = 0; i < rounds; i++)
		block[i % 512] += i;
	printf("%llu\n", (unsigned long long)block[7]);
	return status;
}
