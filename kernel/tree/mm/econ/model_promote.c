// SPDX-License-Identifier: GPL-2.0-only
/*
 * A huge page for a region that has 4 KiB pages.
 *
 * Benefit: the page walks for the rest of the run; the faults have happened already.
 * Cost: the collapse, during which writes of the program wait, a block, with its
 * compaction if none is free, and the memory that the program does not touch.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_promote_estimate(const struct econ_action *action,
						  const struct econ_costs *costs)
{
	struct econ_estimate it = {
		.benefit = action->walks_ns,
		.cost = econ_sum(costs->ns[ECON_COLLAPSE], action->block_ns),
	};

	if (action->supply == ECON_NO_BLOCK)
		it.cost = econ_sum(it.cost, costs->ns[ECON_COMPACT_BLOCK]);
	it.cost = econ_sum(it.cost,
			   econ_spare_ns(action, ECON_REGION_PAGES, action->touched));
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_PROMOTE, .order = 9, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("a region that is read at random", true,
	     .walks_ns = 5000000, .touched = 512, .supply = ECON_FREE_BLOCK),
	CASE("a region that is read in order", false,
	     .walks_ns = 20000, .touched = 512, .supply = ECON_FREE_BLOCK),
	CASE("walks that pay for copying, and not for a block", false,
	     .walks_ns = 1000000, .touched = 512, .supply = ECON_NO_BLOCK),
	CASE("walks that pay for both", true,
	     .walks_ns = 5000000, .touched = 512, .supply = ECON_NO_BLOCK),
	CASE("a tenth of a region that is read at random", true,
	     .walks_ns = 2000000, .touched = 51, .supply = ECON_FREE_BLOCK),
	CASE("but not if others lose the rest", false,
	     .walks_ns = 2000000, .touched = 51, .page_ns = 3000,
	     .supply = ECON_FREE_BLOCK),
	CASE("past faults save nothing", false,
	     .touched = 512, .supply = ECON_ZEROED_BLOCK),
};

const struct econ_model econ_promote_model = {
	.name = "promote",
	.estimate = econ_promote_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
