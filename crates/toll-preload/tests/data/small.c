/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ten million small blocks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	static void *ring[1024];
	uint64_t state = 1, sum = 0;
	long i;

	for (i = 0; i < 10 * 1000 * 1000; i++) {
		size_t length;
		state = state * 6364136223846793005u + 1442695040888963407u;
		length = 1 + (state >> 33) % 500;
		free(ring[i % 1024]);
		ring[i % 1024] = malloc(length);
		*(char *)ring[i % 1024] = (char)i;
		sum += length;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
