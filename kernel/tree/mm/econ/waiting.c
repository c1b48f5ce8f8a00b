// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scarce blocks: the benefit that a block would have in a region that was not touched
 * yet.
 *
 * All regions of a profile are expected to be touched within the profiled duration of
 * a run. Those with a larger benefit than the region of a decision take the free blocks
 * first. The block of the first region that would get none costs what that region would
 * save: its page walks for the rest of the run and its faults, less the cost of a huge
 * page.
 */

#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "model.h"
#include "profile.h"
#include "waiting.h"

/* Return: offset of the bits, which follow the rows. */
static size_t econ_bits_offset(u32 nr_rows)
{
	size_t end = sizeof(struct econ_waiting) + nr_rows * sizeof(struct econ_row_regions);

	return ALIGN(end, sizeof(long));
}

static unsigned long *econ_waiting_bits(struct econ_waiting *it)
{
	return (void *)it + econ_bits_offset(it->nr_rows);
}

/* Return: number of regions of a row, at most @room. */
static u32 econ_count_regions(const struct econ_row *row, u32 room)
{
	u64 nr = (row->end - row->begin) / ECON_REGION_BYTES ?: 1;

	return min_t(u64, nr, room);
}

/**
 * econ_waiting_size - size of a struct econ_waiting
 * @profile: the profile
 *
 * Context: any.
 * Return: number of bytes.
 */
size_t econ_waiting_size(const struct econ_profile *profile)
{
	u32 i, nr = 0;

	for (i = 0; i < profile->nr_rows; i++)
		nr += econ_count_regions(&profile->rows[i], ECON_WAITING_REGIONS - nr);
	return econ_bits_offset(profile->nr_rows) + BITS_TO_LONGS(nr) * sizeof(long);
}

/* Profile of a region that is all of one row. */
static struct econ_region econ_row_region(const struct econ_row *row)
{
	struct econ_region region = {};

	econ_region_add(&region, row, ECON_REGION_BYTES);
	return region;
}

static void econ_row_regions_init(struct econ_row_regions *regions, struct econ_rank *ranks,
				  const struct econ_row *row, u64 fault_ns)
{
	struct econ_region region = econ_row_region(row);
	u64 benefit = econ_sum(region.walks_ns, econ_product(fault_ns, region.touched));
	struct econ_rank *rank;

	regions->rank = econ_rank(benefit);
	rank = &ranks[regions->rank];
	rank->nr += regions->nr;
	rank->walks_ns += econ_product(region.walks_ns, regions->nr);
	rank->touched += econ_product(region.touched, regions->nr);
}

/**
 * econ_waiting_init - no region of a profile was touched yet
 * @it: zeroed memory of econ_waiting_size() bytes
 * @profile: the profile
 * @costs: costs of this machine, for the ranks
 *
 * Context: any.
 */
void econ_waiting_init(struct econ_waiting *it, const struct econ_profile *profile,
		       const struct econ_costs *costs)
{
	u32 i, first = 0;

	it->nr_rows = profile->nr_rows;
	for (i = 0; i < profile->nr_rows; i++) {
		const struct econ_row *row = &profile->rows[i];
		struct econ_row_regions *regions = &it->rows[i];

		regions->first = first;
		regions->nr = econ_count_regions(row, ECON_WAITING_REGIONS - first);
		first += regions->nr;
		econ_row_regions_init(regions, it->ranks, row, costs->ns[ECON_FAULT]);
	}
}

/**
 * econ_waiting_touch - a region is touched
 * @it: waiting regions
 * @profile: the profile
 * @row: row with most bytes of the region
 * @before: number of bytes of the row before the region
 *
 * Does nothing if it was touched before, or has no bit. Rows may begin anywhere: a row has
 * most bytes of its first region if less than half of that is before the row.
 *
 * Context: any. Two regions that are touched at the same time may make a sum wrong by
 * one of them: it is an estimate.
 */
void econ_waiting_touch(struct econ_waiting *it, const struct econ_profile *profile,
			const struct econ_row *row, u64 before)
{
	const struct econ_row_regions *regions = &it->rows[row - profile->rows];
	struct econ_rank *rank = &it->ranks[regions->rank];
	u64 region = (before + ECON_REGION_BYTES / 2) / ECON_REGION_BYTES;
	struct econ_region profiled;

	if (region >= regions->nr ||
	    test_and_set_bit(regions->first + region, econ_waiting_bits(it)))
		return;
	profiled = econ_row_region(row);
	WRITE_ONCE(rank->nr, rank->nr - min(rank->nr, 1U));
	WRITE_ONCE(rank->walks_ns, rank->walks_ns - min(rank->walks_ns, profiled.walks_ns));
	WRITE_ONCE(rank->touched,
		   rank->touched - min_t(u64, rank->touched, profiled.touched));
}

/* Benefit of a huge page in a mean region of a rank, less its cost. */
static u64 econ_rank_value(const struct econ_rank *rank, u32 nr, u64 run_ns, u64 age_ns,
			   const struct econ_costs *costs)
{
	u64 walks = econ_left_ns(READ_ONCE(rank->walks_ns) / nr, run_ns, age_ns);
	u64 faults = econ_product(costs->ns[ECON_FAULT], READ_ONCE(rank->touched) / nr);
	u64 benefit = econ_sum(walks, faults);
	u64 cost = econ_sum(costs->ns[ECON_HUGE_FAULT], costs->ns[ECON_CLEAR_HUGE]);

	return benefit > cost ? benefit - cost : 0;
}

/**
 * econ_waiting_value - benefit that a block would have in another region
 * @it: waiting regions
 * @rank: rank of the region that would take the block
 * @blocks: number of free blocks
 * @run_ns: duration of the profiled run
 * @age_ns: age of the current run
 * @costs: costs of this machine
 *
 * As long as there is a block for each region of a higher rank and one more, a block
 * costs nothing, and neither in a run that lasts longer than the profiled one: what was
 * not touched until then is not expected to be.
 *
 * Context: any.
 * Return: net benefit of the region that would get no block, in nanoseconds.
 */
u64 econ_waiting_value(const struct econ_waiting *it, unsigned int rank,
		       unsigned long blocks, u64 run_ns, u64 age_ns,
		       const struct econ_costs *costs)
{
	unsigned int other;

	if (age_ns >= run_ns)
		return 0;
	for (other = ECON_RANKS - 1; other > rank; other--) {
		u32 nr = READ_ONCE(it->ranks[other].nr);
		u64 value;

		if (!nr)
			continue;
		value = econ_rank_value(&it->ranks[other], nr, run_ns, age_ns, costs);
		/* It would not take a block, nor would those of lower ranks. */
		if (!value)
			return 0;
		if (nr >= blocks)
			return value;
		blocks -= nr;
	}
	return 0;
}

/**
 * econ_piece_value - share of a smaller block in the cost of the huge block it is cut from
 * @block_ns: benefit that the huge block would have in another region
 * @order: order of the smaller block
 *
 * The other parts of the huge block serve later requests for smaller blocks, which are
 * charged for theirs.
 *
 * Context: any.
 * Return: nanoseconds, rounded up.
 */
u64 econ_piece_value(u64 block_ns, unsigned int order)
{
	return mul_u64_u64_div_u64(block_ns, 1U << order, ECON_REGION_PAGES) + !!block_ns;
}
