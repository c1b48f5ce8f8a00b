/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A walk of x86-64 page tables of four levels, as the processor does it: Intel
 * SDM volume 3, 4.5 "4-Level Paging". Nothing of QEMU here.
 *
 * To read a word of the guest costs more than all else of a walk, so a walker
 * remembers where the lower tables are, as paging-structure caches do and by
 * the same rule (4.10.3): only until an instruction invalidates anything. What
 * it saves is time; how many entries a walk would have read in hardware is
 * counted by the model of the TLB.
 */
#ifndef TOLL_WALK_H
#define TOLL_WALK_H

#include "../tlb-model/tlb.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads a table entry at a physical address; false if it cannot be read. */
typedef bool (*read_entry)(void *context, uint64_t physical, uint64_t *entry);

/* What maps an address. */
struct leaf {
	enum tlb_size size;
	uint64_t frame; /* physical address of the page */
	bool writable;	/* in all levels */
	bool user;	/* in all levels */
	bool global;
};

/* Tables that map 2 MiB, and those that map 1 GiB. */
enum { TABLE_LEVELS = 2, TABLES = 1 << 11 };

/* A table that a walk came by. */
struct table {
	uint64_t root;
	uint64_t region; /* what it maps, by its size */
	uint64_t age;	 /* of the walker, when it came by; 0: never */
	uint64_t at;	 /* physical address */
	uint64_t all;	 /* permissions that all entries above give */
};

struct walker {
	read_entry read;
	void *context;
	uint64_t age;
	struct table tables[TABLE_LEVELS][TABLES];
};

void walker_init(struct walker *walker, read_entry read, void *context);

/* Walks from the table that CR3 names; false if nothing is mapped there. */
bool walk(struct walker *walker, uint64_t cr3, uint64_t address, struct leaf *leaf);

/* Something was invalidated: tables may be elsewhere now. */
static inline void walker_forget(struct walker *walker)
{
	walker->age++;
}

#endif
