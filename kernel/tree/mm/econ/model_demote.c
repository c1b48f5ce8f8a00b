// SPDX-License-Identifier: GPL-2.0-only
/*
 * Split of a huge page under memory pressure: pages that contain only zeros become
 * free.
 *
 * Benefit: the memory of these pages, which need not be reclaimed elsewhere. Cost: the
 * split, and the page walks in the region for the rest of the run.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_demote_estimate(const struct econ_action *action,
						 const struct econ_costs *costs)
{
	return (struct econ_estimate){
		.benefit = econ_product(action->page_ns, action->empty),
		.cost = econ_sum(costs->ns[ECON_SPLIT], action->walks_ns),
	};
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_DEMOTE, .order = 9, .page_ns = 3000,	\
		      __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("hardly anything of it is used", true, .empty = 500),
	CASE("all of it is used", false, .empty = 0),
	CASE("what is used of it is read at random", false,
	     .empty = 500, .walks_ns = 5000000),
	CASE("a few empty pages do not pay for the split", false, .empty = 10),
};

const struct econ_model econ_demote_model = {
	.name = "demote",
	.estimate = econ_demote_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
