// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Allocates memory and repeatedly writes all of it, page by page.
 *
 *     hog BYTES ROUNDS
 */
#include "util.h"

int main(int argc, char **argv)
{
	size_t length, rounds;
	char *memory;

	if (argc != 3)
		usage("hog BYTES ROUNDS");
	length = number(argv[1]);
	rounds = number(argv[2]);
	memory = anonymous(length);
	for (size_t round = 0; round < rounds; round++)
		for (size_t at = 0; at < length; at += PAGE)
			memory[at]++;
	return 0;
}
