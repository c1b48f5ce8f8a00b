// SPDX-License-Identifier: GPL-2.0-only
/* Tests of fs/morsel/slot.c. */

#include "../../../fs/morsel/slot.c"

#include "tap.h"

#define MIB	0x100000UL
#define GIB	0x40000000UL

static struct morsel_span span;

static void map(unsigned long begin, unsigned long length, u64 offset)
{
	span = (struct morsel_span){ begin, begin + length, offset };
}

static enum morsel_level level_at(unsigned long address)
{
	return morsel_slot_level(&span, address);
}

static void whole_slots_of_a_gib(void)
{
	map(5 * GIB, 3 * GIB, 0);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PUD);
	EXPECT_EQ(level_at(8 * GIB - 1), MORSEL_PUD);
	map(5 * GIB, 3 * GIB, 7 * GIB);
	EXPECT_EQ(level_at(6 * GIB), MORSEL_PUD);
}

static void the_rest_in_2_mib_and_pages(void)
{
	map(4 * GIB, GIB + 5 * MIB, 0);
	EXPECT_EQ(level_at(5 * GIB - 1), MORSEL_PUD);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PMD);
	EXPECT_EQ(level_at(5 * GIB + 4 * MIB - 1), MORSEL_PMD);
	EXPECT_EQ(level_at(5 * GIB + 4 * MIB), MORSEL_PAGE);
	EXPECT_EQ(level_at(5 * GIB + 5 * MIB - 1), MORSEL_PAGE);
}

static void what_comes_before_the_first_gib(void)
{
	map(4 * GIB - 6 * MIB, 2 * GIB, GIB - 6 * MIB);
	EXPECT_EQ(level_at(4 * GIB - 6 * MIB), MORSEL_PMD);
	EXPECT_EQ(level_at(4 * GIB - 1), MORSEL_PMD);
	EXPECT_EQ(level_at(4 * GIB), MORSEL_PUD);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PMD);
	map(4 * GIB - 5 * MIB, 10 * MIB, GIB - 5 * MIB);
	EXPECT_EQ(level_at(4 * GIB - 5 * MIB), MORSEL_PAGE);
	EXPECT_EQ(level_at(4 * GIB - 4 * MIB), MORSEL_PMD);
}

static void address_and_offset_are_aligned_alike(void)
{
	map(4 * GIB + 2 * MIB, 3 * GIB, 0);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PMD);
	map(4 * GIB + PAGE_SIZE, 3 * GIB, 0);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PAGE);
	map(4 * GIB + PAGE_SIZE, 3 * GIB, PAGE_SIZE);
	EXPECT_EQ(level_at(4 * GIB + PAGE_SIZE), MORSEL_PAGE);
	EXPECT_EQ(level_at(4 * GIB + 2 * MIB), MORSEL_PMD);
	EXPECT_EQ(level_at(5 * GIB), MORSEL_PUD);
}

/* For any mapping, each slot lies in it, and both are aligned. */
static void no_slot_is_somebody_elses(void)
{
	unsigned long seed = 1;

	for (int i = 0; i < 200000; i++) {
		unsigned long at, begin, length;
		enum morsel_level level;

		seed = seed * 6364136223846793005UL + 1442695040888963407UL;
		length = (seed >> 20) % (3 * GIB / PAGE_SIZE) + 1;
		begin = (seed >> 7) % (4 * GIB / (i % 3 ? PAGE_SIZE : 2 * MIB));
		map(begin * (i % 3 ? PAGE_SIZE : 2 * MIB), length * PAGE_SIZE,
		    i % 2 ? begin * (i % 3 ? PAGE_SIZE : 2 * MIB) : (seed >> 33) * PAGE_SIZE);
		at = span.begin + (seed >> 11) % (span.end - span.begin);
		level = level_at(at);
		begin = morsel_slot_begin(at, level);
		EXPECT_EQ(begin >= span.begin, true);
		EXPECT_EQ(begin + morsel_slot_size(level) <= span.end, true);
		EXPECT_EQ((begin - span.begin + span.offset) % morsel_slot_size(level), 0);
	}
}

static void an_address_is_chosen_for_the_largest_slot(void)
{
	EXPECT_EQ(morsel_alignment(GIB, 0), GIB);
	EXPECT_EQ(morsel_alignment(GIB - 1, 0), 2 * MIB);
	EXPECT_EQ(morsel_alignment(2 * MIB, 0), 2 * MIB);
	EXPECT_EQ(morsel_alignment(2 * MIB - 1, 0), PAGE_SIZE);
	EXPECT_EQ(morsel_alignment(GIB, PAGE_SIZE), 2 * MIB);
	EXPECT_EQ(morsel_alignment(2 * GIB, PAGE_SIZE), GIB);
	EXPECT_EQ(morsel_alignment(3 * MIB, MIB), 2 * MIB);
	EXPECT_EQ(morsel_alignment(2 * MIB, MIB), PAGE_SIZE);
}

int main(void)
{
	RUN(whole_slots_of_a_gib);
	RUN(the_rest_in_2_mib_and_pages);
	RUN(what_comes_before_the_first_gib);
	RUN(address_and_offset_are_aligned_alike);
	RUN(no_slot_is_somebody_elses);
	RUN(an_address_is_chosen_for_the_largest_slot);
	return tap_end();
}
