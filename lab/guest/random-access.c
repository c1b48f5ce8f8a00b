// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Updates random words of one array; an update depends only on the generator (as in GUPS).
 *
 *     random-access BYTES UPDATES 4k|2m|default
 *
 * The pages are written once, in order, before the section "main".
 */
#include "section.h"

int main(int argc, char **argv)
{
	size_t length, updates, mask;
	uint64_t state = 88172645463325252ull;
	uint64_t *words;

	if (argc != 4)
		usage("random-access BYTES UPDATES 4k|2m|default");
	length = number(argv[1]);
	updates = number(argv[2]);
	if (length & (length - 1)) {
		fprintf(stderr, "%s: is no power of two\n", argv[1]);
		return 2;
	}
	words = (uint64_t *)reserve(length);
	if (!strcmp(argv[3], "2m") && madvise(words, length, MADV_HUGEPAGE))
		fail("MADV_HUGEPAGE");
	if (!strcmp(argv[3], "4k") && madvise(words, length, MADV_NOHUGEPAGE))
		fail("MADV_NOHUGEPAGE");
	for (size_t at = 0; at < length; at += PAGE)
		words[at / 8] = at;
	mask = length / 8 - 1;
	section_begin("main");
	for (size_t i = 0; i < updates; i++) {
		uint64_t random = next_random(&state);

		words[random & mask] ^= random;
	}
	section_note("updates", updates);
	section_end();
	return 0;
}
