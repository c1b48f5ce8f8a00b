// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Uses one page in each 2 MiB, like a large table with few entries.
 *
 *     sparse BYTES ROUNDS [read]
 *
 * In each round all words of each of those pages are changed, in order; before the first one it is written, or read.
 */
#include "util.h"

static void change(uint64_t *page, uint64_t by)
{
	for (size_t word = 0; word < PAGE / sizeof(*page); word++)
		page[word] += by;
}

int main(int argc, char **argv)
{
	int is_read = argc == 4 && !strcmp(argv[3], "read");
	size_t length, rounds;
	char *table;

	if (argc != 3 && !is_read)
		usage("sparse BYTES ROUNDS [read]");
	length = number(argv[1]);
	rounds = number(argv[2]);
	table = anonymous(length);
	for (size_t at = 0; at < length; at += REGION)
		if (is_read)
			(void)*(volatile char *)(table + at);
		else
			table[at] = 1;
	for (size_t round = 0; round < rounds; round++)
		for (size_t at = 0; at < length; at += REGION)
			change((uint64_t *)(table + at), round);
	return 0;
}
