/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A walk of x86-64 page tables of four levels, as the processor does it: Intel
 * SDM volume 3, 4.5 "4-Level Paging". Nothing of QEMU here.
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

/* Walks from the table that CR3 names; false if nothing is mapped there. */
bool walk(read_entry read, void *context, uint64_t cr3, uint64_t address, struct leaf *leaf);

#endif
