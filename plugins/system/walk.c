/* SPDX-License-Identifier: GPL-2.0-only */
/* A walk of page tables: see walk.h. */
#include "walk.h"

#include <string.h>

#define ADDRESS 0x000ffffffffff000ull
#define PRESENT (1ull << 0)
#define WRITABLE (1ull << 1)
#define USER (1ull << 2)
#define LARGE (1ull << 7)
#define GLOBAL (1ull << 8)

/* An entry of the second or third level from the top may map a page itself. */
static bool is_leaf(uint64_t entry, int level)
{
	return level == TLB_4K || (level <= TLB_1G && entry & LARGE);
}

void walker_init(struct walker *walker, read_entry read, void *context)
{
	memset(walker, 0, sizeof(*walker));
	walker->read = read;
	walker->context = context;
	walker->age = 1;
}

/*
 * The range that a table of a level maps and that contains the address: the size of a
 * page of the next level.
 */
static uint64_t region_of(uint64_t address, int level)
{
	return address >> tlb_shift(level + 1);
}

/* Slot for the table of a level that maps the address. */
static struct table *place(struct walker *walker, uint64_t address, int level)
{
	return &walker->tables[level][region_of(address, level) % TABLES];
}

static bool is_known(const struct walker *walker, const struct table *table, uint64_t root,
		     uint64_t address, int level)
{
	return table->age == walker->age && table->root == root &&
	       table->region == region_of(address, level);
}

/* Returns the lowest known table of the address, and its level. */
static struct table lowest(struct walker *walker, uint64_t root, uint64_t address, int *level)
{
	for (*level = 0; *level < TABLE_LEVELS; ++*level) {
		const struct table *table = place(walker, address, *level);

		if (is_known(walker, table, root, address, *level))
			return *table;
	}
	*level = 3;
	return (struct table){ .root = root, .at = root, .all = WRITABLE | USER };
}

static void remember(struct walker *walker, struct table table, uint64_t address, int level)
{
	if (level >= TABLE_LEVELS)
		return;
	table.region = region_of(address, level);
	table.age = walker->age;
	*place(walker, address, level) = table;
}

bool walk(struct walker *walker, uint64_t cr3, uint64_t address, struct leaf *leaf)
{
	int level;
	struct table table = lowest(walker, cr3 & ADDRESS, address, &level);

	for (; level >= 0; level--) {
		unsigned int shift = 12 + 9 * level;
		uint64_t entry;

		if (!walker->read(walker->context, table.at + (address >> shift & 511) * 8,
				  &entry) ||
		    !(entry & PRESENT))
			return false;
		table.all &= entry;
		table.at = entry & ADDRESS;
		if (is_leaf(entry, level)) {
			*leaf = (struct leaf){
				.size = level,
				.frame = table.at & ~((1ull << shift) - 1),
				.writable = table.all & WRITABLE,
				.user = table.all & USER,
				.global = entry & GLOBAL,
			};
			return true;
		}
		remember(walker, table, address, level - 1);
	}
	return false;
}
