/* SPDX-License-Identifier: GPL-2.0-only */
/* A walk of page tables: see walk.h. */
#include "walk.h"

#define ADDRESS 0x000ffffffffff000ull
#define PRESENT (1ull << 0)
#define WRITABLE (1ull << 1)
#define USER (1ull << 2)
#define LARGE (1ull << 7)
#define GLOBAL (1ull << 8)

/* An entry of the second or third level from above may be a page itself. */
static bool is_leaf(uint64_t entry, int level)
{
	return level == TLB_4K || (level <= TLB_1G && entry & LARGE);
}

bool walk(read_entry read, void *context, uint64_t cr3, uint64_t address, struct leaf *leaf)
{
	uint64_t table = cr3 & ADDRESS, all = WRITABLE | USER;

	for (int level = 3; level >= 0; level--) {
		unsigned int shift = 12 + 9 * level;
		uint64_t entry;

		if (!read(context, table + (address >> shift & 511) * 8, &entry) ||
		    !(entry & PRESENT))
			return false;
		all &= entry;
		table = entry & ADDRESS;
		if (is_leaf(entry, level)) {
			*leaf = (struct leaf){
				.size = level,
				.frame = table & ~((1ull << shift) - 1),
				.writable = all & WRITABLE,
				.user = all & USER,
				.global = entry & GLOBAL,
			};
			return true;
		}
	}
	return false;
}
