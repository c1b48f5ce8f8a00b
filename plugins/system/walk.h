/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A walk of four-level x86-64 page tables as the processor does it: Intel SDM volume 3,
 * 4.5 "4-Level Paging". Independent of QEMU.
 *
 * Reading a word of the guest is the most expensive part of a walk, so a walker caches
 * the location of the lower tables, like paging-structure caches and under the same rule
 * (4.10.3): only until an instruction invalidates anything. This only saves time; the
 * number of entries that a walk reads in hardware is counted by the TLB model.
 */
#ifndef TOLL_WALK_H
#define TOLL_WALK_H

#include "../tlb-model/tlb.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads a table entry at a physical address; false if it cannot be read. */
typedef bool (*read_entry)(void *context, uint64_t physical, uint64_t *entry);

/* The mapping of an address. */
struct leaf {
	enum tlb_size size;
	uint64_t frame; /* physical address of the page */
	bool writable;	/* in all levels */
	bool user;	/* in all levels */
	bool global;
};

/* Tables that map 2 MiB, and those that map 1 GiB. */
enum { TABLE_LEVELS = 2, TABLES = 1 << 11 };

/* A table that a walk has used. */
struct table {
	uint64_t root;
	uint64_t region; /* mapped range, in units of its size */
	uint64_t age;	 /* of the walker at that time; 0: never */
	uint64_t at;	 /* physical address */
	uint64_t all;	 /* permissions common to all upper entries */
};

struct walker {
	read_entry read;
	void *context;
	uint64_t age;
	struct table tables[TABLE_LEVELS][TABLES];
};

void walker_init(struct walker *walker, read_entry read, void *context);

/* Walks from the table in CR3; false if nothing is mapped at the address. */
bool walk(struct walker *walker, uint64_t cr3, uint64_t address, struct leaf *leaf);

/* Called after an invalidation: tables may have moved. */
static inline void walker_forget(struct walker *walker)
{
	walker->age++;
}

#endif
