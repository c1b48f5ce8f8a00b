// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/econ/pot.h. */

#include "../../../mm/econ/pot.h"

#include <linux/bits.h>

#include "tap.h"

#define LIFE	BIT_ULL(ECON_POT_HALF_LIFE)

static void a_pot_holds_no_more_than_a_second(void)
{
	struct econ_pot pot = {};

	econ_pot_add(&pot, 10, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 10);
	econ_pot_add(&pot, U64_MAX, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), ECON_NEVER_NS);
	for (int i = 0; i < 1000; i++)
		econ_pot_add(&pot, ECON_NEVER_NS, i);
	EXPECT_EQ(econ_pot_read(&pot, 1000), ECON_NEVER_NS);
}

static void what_is_spent_beyond_is_owed(void)
{
	struct econ_pot pot = {};

	econ_pot_add(&pot, 100, 0);
	econ_pot_take(&pot, 40, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 60);
	econ_pot_take(&pot, 90, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 0);
	econ_pot_add(&pot, 10, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 0);
	econ_pot_add(&pot, 25, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 5);
	/* At most one second, decaying with time. */
	econ_pot_take(&pot, U64_MAX, 0);
	econ_pot_add(&pot, ECON_NEVER_NS + 7, 0);
	EXPECT_EQ(econ_pot_read(&pot, 0), 7);
	econ_pot_take(&pot, 7 + 1024, 0);
	econ_pot_add(&pot, 1000, LIFE);
	EXPECT_EQ(econ_pot_read(&pot, LIFE), 1000 - 512);
	econ_pot_forget(&pot);
	EXPECT_EQ(econ_pot_read(&pot, LIFE), 0);
	econ_pot_add(&pot, 1, LIFE);
	EXPECT_EQ(econ_pot_read(&pot, LIFE), 1);
}

/* Frequent reads do not change the decay. */
static void what_is_not_used_is_halved(void)
{
	struct econ_pot pot = {}, seen = {};

	econ_pot_add(&pot, 1 << 20, 5 * LIFE);
	econ_pot_add(&seen, 1 << 20, 5 * LIFE);
	EXPECT_EQ(econ_pot_read(&pot, 6 * LIFE - 1), 1 << 20);
	for (int i = 0; i <= 256; i++)
		econ_pot_read(&seen, 5 * LIFE + i * (LIFE / 64));
	EXPECT_EQ(econ_pot_read(&seen, 9 * LIFE), 1 << 16);
	EXPECT_EQ(econ_pot_read(&pot, 9 * LIFE), 1 << 16);
	EXPECT_EQ(econ_pot_read(&pot, 500 * LIFE), 0);
}

/* The clock of one CPU may be slightly behind. */
static void clocks_may_differ(void)
{
	struct econ_pot pot = {};

	econ_pot_add(&pot, 100, 3 * LIFE);
	econ_pot_add(&pot, 100, 3 * LIFE - 1);
	EXPECT_EQ(econ_pot_read(&pot, 3 * LIFE - 2), 200);
	EXPECT_EQ(econ_pot_read(&pot, 3 * LIFE), 200);
}

int main(void)
{
	RUN(a_pot_holds_no_more_than_a_second);
	RUN(what_is_spent_beyond_is_owed);
	RUN(what_is_not_used_is_halved);
	RUN(clocks_may_differ);
	return tap_end();
}
