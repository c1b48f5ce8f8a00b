// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Writes deterministic input data for compressors and databases.
 *
 *     gen text|random BYTES FILE
 *
 * Text is words of a vocabulary of 50,000, the n-th of them with a frequency of about 1/n, as in natural language
 * (Zipf).
 */
#include "util.h"

#include <math.h>

enum { WORDS = 50000, LONGEST = 12 };

static char words[WORDS][LONGEST + 2];

static void make_words(uint64_t *state)
{
	for (int i = 0; i < WORDS; i++) {
		int length = 2 + next_random(state) % (LONGEST - 1);

		for (int at = 0; at < length; at++)
			words[i][at] = 'a' + next_random(state) % 26;
		words[i][length] = next_random(state) % 12 ? ' ' : '\n';
	}
}

int main(int argc, char **argv)
{
	uint64_t state = 0x9e3779b97f4a7c15ull;
	size_t left;
	FILE *file;

	if (argc != 4 || (strcmp(argv[1], "text") && strcmp(argv[1], "random")))
		usage("gen text|random BYTES FILE");
	left = number(argv[2]);
	file = fopen(argv[3], "w");
	if (!file)
		fail(argv[3]);
	make_words(&state);
	while (left) {
		uint64_t random = next_random(&state);
		/* Between 1 and WORDS, with a density of 1/n. */
		const char *word = words[(int)exp((random >> 11) * 0x1p-53 * log(WORDS)) - 1];
		size_t length = argv[1][0] == 't' ? strlen(word) : sizeof(random);

		if (length > left)
			length = left;
		if (fwrite(argv[1][0] == 't' ? word : (char *)&random, 1, length, file) != length)
			fail(argv[3]);
		left -= length;
	}
	if (fclose(file))
		fail(argv[3]);
	return 0;
}
