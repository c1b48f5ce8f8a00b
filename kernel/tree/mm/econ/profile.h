/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_ECON_PROFILE_H
#define _MM_ECON_PROFILE_H

#include <linux/bits.h>
#include <linux/types.h>

#include "model.h"

/* Bytes of a region, the range of one huge page. */
#define ECON_REGION_BYTES	(2ULL << 20)
/* Largest profile in bytes. */
#define ECON_PROFILE_BYTES	BIT(20)
/* Bytes of the shortest row. */
#define ECON_SHORTEST_ROW	12
/* Length up to which names of programs are compared. */
#define ECON_NAME_BYTES		64
/*
 * Upper bound of the benefit of a row; larger numbers are clamped. The largest
 * constant cost in a model is ECON_NEVER_NS, and econ_left_ns() leaves at least an
 * eighth of a benefit: up to ten times that cost, a larger benefit can still change a
 * decision.
 */
#define ECON_MOST_ROW_NS	(10 * ECON_NEVER_NS)
/* Upper bound of user-space addresses. */
#define ECON_LAST_BYTE		BIT_ULL(56)

/* Kind of site that the memory of a row belongs to. */
enum econ_site {
	/* heap, from its first byte on */
	ECON_HEAP,
	/* bss of the program, from its first page on */
	ECON_BSS,
	/* the nth private anonymous mapping of its length class and protection */
	ECON_MMAP,
};

/**
 * struct econ_site_key - identifies memory across runs and address randomisation
 * @site: kind of site
 * @class: for a mapping: binary logarithm of its length, rounded down
 * @protection: for a mapping: PROT_* flags of mmap()
 * @ordinal: for a mapping: number of earlier ones of the same class and protection
 *	since the program started
 */
struct econ_site_key {
	u8 site;
	u8 class;
	u8 protection;
	u32 ordinal;
};

/**
 * struct econ_row - profile of a range of memory
 * @key: site of the memory
 * @touched: pages of a region of 2 MiB that the program touches
 * @confidence: probability that runs are alike, in percent
 * @line: line in the text
 * @begin: first byte, relative to the site
 * @end: byte after the last one
 * @benefit_ns: cost of page walks in a region of 2 MiB over one run with 4 KiB pages
 *	from the first touch on
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

/* Consecutive rows of a profile. */
struct econ_span {
	u32 first;
	u32 nr;
};

/**
 * struct econ_profile - profile of an earlier run of a program
 * @run_ns: duration of the run
 * @name: file name of the program, without its directory
 * @nr_rows: number of rows
 * @rows: rows, sorted by key and begin, without overlap
 * @spans: rows of the heap and of the bss, which faults look up
 */
struct econ_profile {
	u64 run_ns;
	char name[ECON_NAME_BYTES];
	u32 nr_rows;
	struct econ_row *rows;
	struct econ_span spans[ECON_MMAP];
};

/**
 * struct econ_parse_error - reason why a profile was refused
 * @line: number of the line, from 1 on
 * @reason: description
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
void econ_index_rows(struct econ_profile *profile);
const struct econ_row *econ_rows_of(const struct econ_profile *profile,
				    const struct econ_site_key *key,
				    u32 *nr_rows);
u32 econ_row_from(const struct econ_row *rows, u32 nr, u64 at);
u64 econ_left_ns(u64 benefit_ns, u64 run_ns, u64 age_ns);
u64 econ_believed_ns(u64 benefit_ns, u32 observed, u32 used);

/**
 * struct econ_region - profile of a region of 2 MiB
 * @walks_ns: cost of its page walks over one run with 4 KiB pages
 * @touched: number of its pages that the program touches
 * @bytes: number of its bytes that have rows
 */
struct econ_region {
	u64 walks_ns;
	unsigned int touched;
	u64 bytes;
};

void econ_region_add(struct econ_region *region, const struct econ_row *row,
		     u64 bytes);
void econ_region_fill(struct econ_region *region);

/* Ranks are binary logarithms of benefits. */
#define ECON_RANKS		65

unsigned int econ_rank(u64 benefit_ns);

#endif /* _MM_ECON_PROFILE_H */
