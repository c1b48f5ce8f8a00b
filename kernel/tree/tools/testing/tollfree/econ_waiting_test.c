// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/econ/waiting.c. */

#include "../../../mm/econ/profile.c"
#include "../../../mm/econ/waiting.c"

#include <stdlib.h>
#include <string.h>

#include <linux/array_size.h>

#include "tap.h"

#define REGION	(2ULL << 20)
#define RUN_NS	1000000000ULL

/* A huge page costs 220,000 ns more than no page. */
static const struct econ_costs costs = {
	.ns = {
		[ECON_FAULT] = 1000,
		[ECON_HUGE_FAULT] = 20000,
		[ECON_CLEAR_HUGE] = 200000,
	},
};

static struct econ_row rows[3];
static struct econ_profile profile = { .run_ns = RUN_NS, .rows = rows };
static struct econ_waiting *waiting;

static struct econ_row row(u64 regions, u64 walks_ns, unsigned int touched)
{
	return (struct econ_row){
		.end = regions * REGION, .benefit_ns = walks_ns,
		.touched = touched, .confidence = 100,
	};
}

/* 10 regions that save 5 ms each, 90 that save 1 us, and 5 that save 512 faults. */
static void begin(void)
{
	rows[0] = row(10, 5000000, 0);
	rows[1] = row(90, 1000, 0);
	rows[2] = row(5, 0, 512);
	profile.nr_rows = ARRAY_SIZE(rows);
	free(waiting);
	/* Exactly sized, so that a sanitizer detects accesses beyond the end. */
	waiting = calloc(1, econ_waiting_size(&profile));
	econ_waiting_init(waiting, &profile, &costs);
}

static u64 value(unsigned int of_row, unsigned long blocks, u64 age_ns)
{
	return econ_waiting_value(waiting, waiting->rows[of_row].rank, blocks, RUN_NS,
				  age_ns, &costs);
}

static void touch(unsigned int of_row, u64 region)
{
	econ_waiting_touch(waiting, &profile, &rows[of_row], region * REGION);
}

static void touch_all(unsigned int of_row, u64 regions)
{
	for (u64 region = 0; region < regions; region++)
		touch(of_row, region);
}

/* Example of the talk: scarce blocks go to the regions with the largest benefit. */
static void a_block_costs_what_it_would_save_elsewhere(void)
{
	begin();
	EXPECT_EQ(value(1, 100, 0), 0);
	EXPECT_EQ(value(1, 16, 0), 0);
	/* 5 blocks too few for the regions that save faults. */
	EXPECT_EQ(value(1, 15, 0), 512000 - 220000);
	EXPECT_EQ(value(1, 11, 0), 512000 - 220000);
	EXPECT_EQ(value(1, 10, 0), 5000000 - 220000);
	EXPECT_EQ(value(1, 0, 0), 5000000 - 220000);
	EXPECT_EQ(value(2, 10, 0), 5000000 - 220000);
	EXPECT_EQ(value(2, 11, 0), 0);
	EXPECT_EQ(value(0, 0, 0), 0);
}

/* The benefit of the region that asks is scaled in the same way. */
static void walks_count_for_the_rest_of_the_run_and_faults_as_a_whole(void)
{
	begin();
	EXPECT_EQ(value(1, 10, RUN_NS / 2), 2500000 - 220000);
	EXPECT_EQ(value(1, 11, RUN_NS / 2), 512000 - 220000);
}

static void what_was_not_touched_in_a_whole_run_is_not_expected(void)
{
	begin();
	EXPECT_EQ(value(1, 0, RUN_NS - 1), 5000000 / 8 - 220000);
	EXPECT_EQ(value(1, 0, RUN_NS), 0);
	profile.run_ns = 0;
	EXPECT_EQ(econ_waiting_value(waiting, 0, 0, 0, 0, &costs), 0);
	profile.run_ns = RUN_NS;
}

static void a_region_for_which_a_huge_page_does_not_pay_takes_none(void)
{
	begin();
	touch_all(0, 10);
	touch_all(2, 5);
	EXPECT_EQ(waiting->ranks[waiting->rows[1].rank].nr, 90);
	EXPECT_EQ(econ_waiting_value(waiting, 0, 0, RUN_NS, 0, &costs), 0);
}

/* The row of most bytes of a region, of rows that follow each other from @begin on. */
static unsigned int row_of(u64 begin, u64 region, u64 *row_begin)
{
	unsigned int of = 0;
	u64 most = 0;

	for (unsigned int i = 0; i < profile.nr_rows; i++) {
		u64 end = begin + rows[i].end - rows[i].begin;
		u64 low = begin > region ? begin : region;
		u64 high = end < region + REGION ? end : region + REGION;

		if (high > low && high - low > most) {
			most = high - low;
			of = i;
			*row_begin = begin;
		}
		begin = end;
	}
	return of;
}

/* Rows begin and end between regions: those of a file of a mapping, for example. */
static void all_regions_of_unaligned_rows_are_touched(void)
{
	for (u64 offset = 0; offset < REGION; offset += 0x3000) {
		begin();
		for (u64 region = 0; region < offset + 105 * REGION; region += REGION) {
			u64 row_begin = 0;
			unsigned int of = row_of(offset, region, &row_begin);

			econ_waiting_touch(waiting, &profile, &rows[of],
					   region > row_begin ? region - row_begin : 0);
		}
		for (int rank = 0; rank < ECON_RANKS; rank++)
			EXPECT_EQ(waiting->ranks[rank].nr, 0);
	}
}

static void a_region_waits_until_its_first_touch(void)
{
	begin();
	touch_all(0, 7);
	EXPECT_EQ(value(2, 3, 0), 5000000 - 220000);
	EXPECT_EQ(value(2, 4, 0), 0);
	/* Unmapped and touched again, it is not another region. */
	for (int i = 0; i < 100; i++)
		touch(0, 3);
	EXPECT_EQ(value(2, 3, 0), 5000000 - 220000);
	touch_all(0, 10);
	EXPECT_EQ(value(2, 0, 0), 0);
	EXPECT_EQ(waiting->ranks[waiting->rows[0].rank].walks_ns, 0);
	/* A mapping that has grown beyond its rows. */
	touch(0, 10);
	touch(0, U64_MAX);
	EXPECT_EQ(waiting->ranks[waiting->rows[2].rank].nr, 5);
}

static void a_copy_is_of_its_own(void)
{
	struct econ_waiting *parent, *child;
	size_t size;

	begin();
	touch_all(0, 9);
	size = econ_waiting_size(&profile);
	child = malloc(size);
	memcpy(child, waiting, size);
	parent = waiting;
	waiting = child;
	EXPECT_EQ(value(2, 2, 0), 0);
	touch(0, 9);
	touch(0, 3);
	EXPECT_EQ(value(2, 0, 0), 0);
	waiting = parent;
	EXPECT_EQ(value(2, 0, 0), 5000000 - 220000);
	free(child);
}

/* The largest profile takes little memory, and no sum overflows. */
static void rows_beyond_the_upper_bound_keep_no_block(void)
{
	rows[0] = row(1ULL << 34, ECON_MOST_ROW_NS, 512);
	rows[1] = row(1ULL << 34, ECON_MOST_ROW_NS, 512);
	profile.nr_rows = 2;
	free(waiting);
	EXPECT_EQ(econ_waiting_size(&profile) <= sizeof(*waiting) + 64 + (32 << 10), true);
	waiting = calloc(1, econ_waiting_size(&profile));
	econ_waiting_init(waiting, &profile, &costs);
	EXPECT_EQ(waiting->rows[0].nr, ECON_WAITING_REGIONS);
	EXPECT_EQ(waiting->rows[1].nr, 0);
	EXPECT_EQ(econ_waiting_value(waiting, 0, 1000, RUN_NS, 0, &costs),
		  ECON_MOST_ROW_NS + 512000 - 220000);
	touch(0, ECON_WAITING_REGIONS - 1);
	touch(0, ECON_WAITING_REGIONS);
	touch(1, 0);
	EXPECT_EQ(waiting->ranks[waiting->rows[0].rank].nr, ECON_WAITING_REGIONS - 1);
}

static void a_piece_costs_its_share(void)
{
	EXPECT_EQ(econ_piece_value(0, 4), 0);
	EXPECT_EQ(econ_piece_value(512000, 4), 16001);
	EXPECT_EQ(econ_piece_value(512000, 8), 256001);
	EXPECT_EQ(econ_piece_value(1, 2), 1);
}

int main(void)
{
	RUN(a_block_costs_what_it_would_save_elsewhere);
	RUN(walks_count_for_the_rest_of_the_run_and_faults_as_a_whole);
	RUN(what_was_not_touched_in_a_whole_run_is_not_expected);
	RUN(a_region_for_which_a_huge_page_does_not_pay_takes_none);
	RUN(a_region_waits_until_its_first_touch);
	RUN(all_regions_of_unaligned_rows_are_touched);
	RUN(a_copy_is_of_its_own);
	RUN(rows_beyond_the_upper_bound_keep_no_block);
	RUN(a_piece_costs_its_share);
	free(waiting);
	return tap_end();
}
