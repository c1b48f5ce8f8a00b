// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A store that grows: 2 MiB at a time are written once, in order, and then anything in the store is updated at random.
 *
 *     grow BYTES UPDATES SEED
 *
 * UPDATES are done after each 2 MiB, so that the program runs as long as it grows.
 */
#include "util.h"

int main(int argc, char **argv)
{
	size_t bytes, updates;
	uint64_t state;
	char *memory;

	if (argc != 4)
		usage("grow BYTES UPDATES SEED");
	bytes = number(argv[1]) & ~(REGION - 1);
	updates = number(argv[2]);
	state = number(argv[3]);
	memory = anonymous(bytes);
	for (size_t used = 0; used < bytes;) {
		for (size_t end = used + REGION; used < end; used += PAGE)
			memory[used] = 1;
		for (size_t i = 0; i < updates; i++)
			memory[next_random(&state) % used]++;
	}
	return 0;
}
