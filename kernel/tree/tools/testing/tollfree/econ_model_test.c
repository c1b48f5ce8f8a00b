// SPDX-License-Identifier: GPL-2.0-only
/* Each model of mm/econ decides its cases as expected, and has cases of both kinds. */

#include <string.h>

#include <linux/array_size.h>

#include "econ/model.h"

#include "tap.h"

static void each_case_is_decided_as_it_says(void)
{
	for (int kind = 0; kind < ECON_KINDS; kind++) {
		const struct econ_model *model = econ_models[kind];

		for (unsigned int i = 0; i < model->nr_cases; i++) {
			const struct econ_case *it = &model->cases[i];
			bool go = econ_pays(econ_estimate(&it->action, &econ_default_costs));

			EXPECT_EQ(it->action.kind, kind);
			if (go != it->go)
				printf("# %s: %s\n", model->name, it->what);
			EXPECT_EQ(go, it->go);
		}
	}
}

static void each_model_can_say_both(void)
{
	for (int kind = 0; kind < ECON_KINDS; kind++) {
		const struct econ_model *model = econ_models[kind];
		int says[2] = {};

		for (unsigned int i = 0; i < model->nr_cases; i++)
			says[model->cases[i].go]++;
		EXPECT_EQ(says[false] > 0, true);
		EXPECT_EQ(says[true] > 0, true);
	}
}

static void names_differ(void)
{
	for (int one = 0; one < ECON_KINDS; one++)
		for (int other = 0; other < one; other++)
			EXPECT_EQ(!strcmp(econ_models[one]->name, econ_models[other]->name), false);
}

/* No cost and no benefit, and the largest possible benefit. */
static const struct econ_action poor = { .order = 4, .supply = ECON_FREE_BLOCK };
static const struct econ_action rich = {
	.order = 4, .supply = ECON_NO_BLOCK, .walks_ns = U64_MAX, .touched = 512, .empty = 512,
	.refused_ns = U64_MAX, .credit_ns = 1, .wanted = 1,
};

static bool pays(int kind, struct econ_action action, const struct econ_costs *costs)
{
	action.kind = kind;
	return econ_pays(econ_estimate(&action, costs));
}

/* Models with no benefit if all costs are 0. */
static bool saves_by_prices_alone(int kind)
{
	return kind == ECON_LARGE || kind == ECON_ZERO || kind == ECON_DEMOTE ||
	       kind == ECON_POOL || kind == ECON_SWAP_IN;
}

/* No overflow for any values of the costs. */
static void prices_may_be_anything(void)
{
	static const u64 values[] = { 0, 1, 1000, 1ULL << 32, 1ULL << 63, U64_MAX };
	struct econ_costs costs;

	for (int kind = 0; kind < ECON_KINDS; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			for (int cost = 0; cost < ECON_COSTS; cost++)
				costs.ns[cost] = values[i];
			EXPECT_EQ(pays(kind, poor, &costs), false);
			if (!values[i] && !saves_by_prices_alone(kind))
				EXPECT_EQ(pays(kind, rich, &costs), true);
		}
	}
}

/* A larger benefit never turns an approval into a refusal. */
static void more_to_save_is_never_less_reason(void)
{
	for (int kind = 0; kind < ECON_KINDS; kind++) {
		struct econ_action action = { .kind = kind, .order = 4, .supply = ECON_FREE_BLOCK };
		struct econ_estimate last = {};

		for (int i = 0; i < 64; i++) {
			struct econ_estimate now;

			if (kind != ECON_DEMOTE)
				action.walks_ns = 1ULL << i;
			action.refused_ns = 1ULL << i;
			action.touched = i * 8;
			action.empty = i * 8;
			now = econ_estimate(&action, &econ_default_costs);
			EXPECT_EQ(now.benefit >= last.benefit, true);
			if (i)
				EXPECT_EQ(now.cost <= last.cost, true);
			last = now;
		}
	}
}

/* If it is refused always, nothing measures its cost. */
static void what_is_refused_may_be_explored(void)
{
	struct econ_estimate refused = { .benefit = 1, .cost = U64_MAX }, useless = { .cost = 1 };
	struct econ_action action = { .supply = ECON_FREE_BLOCK, .credit_ns = 10000000 };

	for (int kind = 0; kind < ECON_KINDS; kind++) {
		action.kind = kind;
		EXPECT_EQ(econ_may_explore(&action, refused),
			  kind == ECON_HUGE || kind == ECON_PROMOTE || kind == ECON_COMPACT);
		EXPECT_EQ(econ_may_explore(&action, useless), false);
	}
	action.kind = ECON_HUGE;
	action.block_ns = 1;
	EXPECT_EQ(econ_may_explore(&action, refused), false);
	action.block_ns = 0;
	action.supply = ECON_NO_BLOCK;
	EXPECT_EQ(econ_may_explore(&action, refused), false);
	/* It measures nothing: the block is clear. */
	action.supply = ECON_ZEROED_BLOCK;
	EXPECT_EQ(econ_may_explore(&action, refused), false);
	/* The process may not run as much. */
	action.kind = ECON_COMPACT;
	action.credit_ns--;
	EXPECT_EQ(econ_may_explore(&action, refused), false);
}

static void a_weight_gives_a_part(void)
{
	EXPECT_EQ(econ_weighed(1000, ECON_MOST_WEIGHT), 1000);
	EXPECT_EQ(econ_weighed(1000, 0), 0);
	EXPECT_EQ(econ_weighed(8, 50), 4);
	EXPECT_EQ(econ_weighed(8, 99), 7);
	EXPECT_EQ(econ_weighed(U64_MAX, ECON_MOST_WEIGHT), U64_MAX);
}

int main(void)
{
	RUN(each_case_is_decided_as_it_says);
	RUN(each_model_can_say_both);
	RUN(names_differ);
	RUN(prices_may_be_anything);
	RUN(more_to_save_is_never_less_reason);
	RUN(what_is_refused_may_be_explored);
	RUN(a_weight_gives_a_part);
	return tap_end();
}
