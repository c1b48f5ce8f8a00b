/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_ECON_PROFILE_H
#define _MM_ECON_PROFILE_H

#include <linux/bits.h>
#include <linux/types.h>

#include "model.h"

/* A write of more is refused. */
#define ECON_PROFILE_BYTES	BIT(20)
/* A row takes no fewer bytes. */
#define ECON_SHORTEST_ROW	12
/* Of a program's name, as far as it is compared. */
#define ECON_NAME_BYTES		64
/*
 * A row is worth no more, and a larger number is taken for this one. The largest cost
 * that a model has of its own is ECON_NEVER_NS, and econ_left_ns() leaves at the least
 * an eighth of a benefit: up to ten times that cost, a larger benefit can still
 * decide something.
 */
#define ECON_MOST_ROW_NS	(10 * ECON_NEVER_NS)
/* No address of user space is beyond. */
#define ECON_LAST_BYTE		BIT_ULL(56)

/* What a row's memory is named by. */
enum econ_site {
	/* from where brk began */
	ECON_HEAP,
	/* the program's own variables that begin as zeros, from their first page */
	ECON_BSS,
	/* the nth private anonymous mapping of its length class and protection */
	ECON_MMAP,
};

/**
 * struct econ_site_key - names memory across runs and address randomisation
 * @site: kind of memory
 * @class: of a mapping: the power of two that its length is not below
 * @protection: of a mapping, as it was made: PROT_READ and others
 * @ordinal: of a mapping: how many of the same class and protection came before,
 *	since the program began
 */
struct econ_site_key {
	u8 site;
	u8 class;
	u8 protection;
	u32 ordinal;
};

/**
 * struct econ_row - what is known of some memory
 * @key: names it
 * @touched: pages of a region of 2 MiB that the program touches
 * @confidence: in percent: how sure it is that this run is like that one
 * @line: of the text
 * @begin: first byte, from where what @key names begins
 * @end: behind the last
 * @benefit_ns: what page walks cost in a region of 2 MiB over one run, if its
 *	pages are small from the first touch on
 */
struct econ_row {
	struct econ_site_key key;
	u16 touched;
	u8 confidence;
	u32 line;
	u64 begin;
	u64 end;
	u64 benefit_ns;
};

/* Some rows of a profile. */
struct econ_span {
	u32 first;
	u32 nr;
};

/**
 * struct econ_profile - what was observed of a program before
 * @run_ns: how long it ran
 * @name: of the program's file, without its folder
 * @nr_rows: how many
 * @rows: sorted by key and begin, without overlap
 * @spans: which of them the heap and the bss have: faults look for those
 */
struct econ_profile {
	u64 run_ns;
	char name[ECON_NAME_BYTES];
	u32 nr_rows;
	struct econ_row *rows;
	struct econ_span spans[ECON_MMAP];
};

/**
 * struct econ_parse_error - why a profile was refused
 * @line: from 1 on
 * @reason: in words
 */
struct econ_parse_error {
	unsigned int line;
	const char *reason;
};

bool econ_profile_parse(const char *text, size_t length,
			struct econ_profile *profile, u32 room,
			struct econ_parse_error *error);
int econ_compare_keys(const struct econ_site_key *one,
		      const struct econ_site_key *other);
const struct econ_row *econ_rows_of(const struct econ_profile *profile,
				    const struct econ_site_key *key,
				    u32 *nr_rows);
u32 econ_row_from(const struct econ_row *rows, u32 nr, u64 at);
u64 econ_left_ns(u64 benefit_ns, u64 run_ns, u64 age_ns);

/**
 * struct econ_region - what is known of 2 MiB
 * @walks_ns: what page walks cost in it over one run, with small pages
 * @touched: how many of its pages the program touches
 * @bytes: of how much of it that is known
 */
struct econ_region {
	u64 walks_ns;
	unsigned int touched;
	u64 bytes;
};

void econ_region_add(struct econ_region *region, const struct econ_row *row,
		     u64 bytes);
void econ_region_fill(struct econ_region *region);

/* Benefits are told apart by their powers of two. */
#define ECON_RANKS		65

unsigned int econ_rank(u64 benefit_ns);
void econ_count_ranks(const struct econ_profile *profile, u32 *regions);
u64 econ_block_cost(const u32 *waiting, unsigned int rank, unsigned long blocks);

#endif /* _MM_ECON_PROFILE_H */
