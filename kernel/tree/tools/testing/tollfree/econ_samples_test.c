// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/econ/samples.c. */

#include "../../../mm/econ/samples.c"
#include "../../../mm/tollfree/histogram.c"

#include <stdbool.h>
#include <string.h>

#include "tap.h"

#define MS	1000000ULL
#define SECOND	1000000000ULL

static struct econ_samples all;
/* The cost as measure.c keeps it. */
static u64 cost;
static u64 now;

static void begin(u64 at_first)
{
	memset(&all, 0, sizeof(all));
	cost = at_first;
	now = 5 * SECOND;
}

static void add(u64 ns)
{
	if (econ_samples_add(&all, ns, now))
		cost = econ_samples_cost(&all);
}

/* Buckets are an eighth of their value wide. */
static bool is_near(u64 ns)
{
	return cost >= ns && cost <= ns + ns / 8;
}

#define EXPECT_NEAR(ns)	EXPECT_EQ(is_near(ns), true)

static void costs_converge_from_both_sides(void)
{
	begin(1);
	add(6 * MS);
	EXPECT_NEAR(6 * MS);
	begin(900 * MS);
	add(6 * MS);
	EXPECT_NEAR(6 * MS);
}

static void a_median_ignores_what_is_rare(void)
{
	begin(0);
	for (int i = 0; i < 15; i++)
		add(i % 4 ? 200000 : 6 * MS);
	EXPECT_NEAR(200000);
}

/* Whether many samples or few came before, and with few samples now. */
static void old_samples_fade_with_time(void)
{
	for (unsigned int before = 1; before <= 10000; before *= 10) {
		begin(0);
		for (unsigned int i = 0; i < before; i++)
			add(900 * MS);
		EXPECT_NEAR(900 * MS);
		for (int i = 0; i < 20; i++) {
			now += 10 * SECOND;
			add(6 * MS);
		}
		EXPECT_NEAR(6 * MS);
	}
}

static void and_with_newer_samples(void)
{
	begin(0);
	for (int i = 0; i < 4096; i++)
		add(900 * MS);
	for (int i = 0; i < 3 * 4096; i++)
		add(6 * MS);
	EXPECT_NEAR(6 * MS);
}

static void the_only_sample_counts_after_any_time(void)
{
	begin(0);
	add(2 * MS);
	now += 1000000 * SECOND;
	add(6 * MS);
	EXPECT_NEAR(6 * MS);
	/* A clock that goes back is ignored. */
	now = 0;
	add(6 * MS);
	EXPECT_NEAR(6 * MS);
}

static void charge(u64 ns, bool is_made)
{
	if (econ_samples_charge(&all, &ns, is_made, cost))
		add(ns);
}

static void successes_pay_for_failures(void)
{
	begin(8 * MS);
	charge(1 * MS, false);
	charge(2 * MS, false);
	EXPECT_EQ(all.seen, 0);
	EXPECT_EQ(cost, 8 * MS);
	charge(3 * MS, true);
	EXPECT_EQ(all.seen, 1);
	EXPECT_NEAR(6 * MS);
	charge(3 * MS, true);
	/* The failures are paid. */
	EXPECT_NEAR(3 * MS);
}

static void failures_alone_raise_a_cost(void)
{
	begin(2 * MS);
	for (int i = 0; i < 100; i++)
		charge(1 * MS, false);
	EXPECT_EQ(cost >= 6 * MS, true);
	begin(2 * MS);
	charge(U64_MAX, false);
	EXPECT_EQ(all.seen, 1);
	EXPECT_EQ(cost, U64_MAX);
	charge(U64_MAX, false);
	EXPECT_EQ(all.failed_ns, U64_MAX);
	charge(U64_MAX, true);
	EXPECT_EQ(all.seen, 2);
}

int main(void)
{
	RUN(costs_converge_from_both_sides);
	RUN(a_median_ignores_what_is_rare);
	RUN(old_samples_fade_with_time);
	RUN(and_with_newer_samples);
	RUN(the_only_sample_counts_after_any_time);
	RUN(successes_pay_for_failures);
	RUN(failures_alone_raise_a_cost);
	return tap_end();
}
