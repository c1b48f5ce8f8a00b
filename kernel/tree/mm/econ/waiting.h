/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Regions of a profile that were not touched yet, and what a block would save in one of
 * them.
 *
 * Each region has a bit, which its first touch sets: a region that is unmapped and
 * touched again does not count twice. tools/testing/tollfree builds and tests this in
 * user space.
 */
#ifndef _MM_ECON_WAITING_H
#define _MM_ECON_WAITING_H

#include <linux/bits.h>
#include <linux/types.h>

#include "profile.h"

/*
 * Upper bound of the regions of a profile that count, 512 GiB of memory: the bits take
 * 32 KiB. Later rows keep no block for their regions.
 */
#define ECON_WAITING_REGIONS	BIT(18)

/**
 * struct econ_rank - waiting regions of a rank
 * @walks_ns: sum of the cost of their page walks over one run with 4 KiB pages
 * @touched: sum of their pages that the program touches
 * @nr: number of regions
 */
struct econ_rank {
	u64 walks_ns;
	u64 touched;
	u32 nr;
};

/**
 * struct econ_row_regions - regions of a row
 * @first: number of the first bit
 * @nr: number of regions that count
 * @rank: rank of each
 */
struct econ_row_regions {
	u32 first;
	u32 nr;
	u8 rank;
};

/**
 * struct econ_waiting - regions of a profile that were not touched yet
 * @ranks: sums, by rank
 * @nr_rows: number of rows of the profile
 * @rows: for each row, its regions; then a bit for each region that was touched
 */
struct econ_waiting {
	struct econ_rank ranks[ECON_RANKS];
	u32 nr_rows;
	struct econ_row_regions rows[];
};

size_t econ_waiting_size(const struct econ_profile *profile);
void econ_waiting_init(struct econ_waiting *it, const struct econ_profile *profile,
		       const struct econ_costs *costs);
void econ_waiting_touch(struct econ_waiting *it, const struct econ_profile *profile,
			const struct econ_row *row, u64 before);
u64 econ_waiting_value(const struct econ_waiting *it, unsigned int rank,
		       unsigned long blocks, u64 run_ns, u64 age_ns,
		       const struct econ_costs *costs);
u64 econ_piece_value(u64 block_ns, unsigned int order);

#endif /* _MM_ECON_WAITING_H */
