// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * New pages at old addresses: repeatedly maps, writes each page and unmaps at one address. Every write is a miss if
 * unmapping invalidates the translations.
 *
 *     renew SECTION PAGES TURNS
 */
#include "section.h"

int main(int argc, char **argv)
{
	size_t length, turns;
	char *place;

	if (argc != 4)
		usage("renew SECTION PAGES TURNS");
	length = number(argv[2]) * PAGE;
	turns = number(argv[3]);
	place = reserve(length);
	toll_watch(place, length);
	section_begin(argv[1]);
	while (turns--) {
		if (mmap(place, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place)
			fail("mmap");
		if (madvise(place, length, MADV_NOHUGEPAGE))
			fail("MADV_NOHUGEPAGE");
		for (size_t at = 0; at < length; at += PAGE)
			((volatile char *)place)[at] = 1;
		if (munmap(place, length))
			fail("munmap");
	}
	section_end();
	return 0;
}
