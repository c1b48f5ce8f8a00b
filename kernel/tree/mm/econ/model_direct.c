// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct compaction and direct reclaim for a block in a fault.
 *
 * Their duration is not known in advance: up to a second. The cost is that of the
 * longest, so they hardly ever pay. A block with few pages in the way is made without them
 * (block.c). The lost benefit goes to the ledger, which pays
 * for compaction in the background. A user who advises huge pages expects to touch all
 * of a region; that makes a wait worth more, and not free.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_direct_estimate(const struct econ_action *action,
						 const struct econ_costs *costs)
{
	return (struct econ_estimate){
		.benefit = econ_sum(action->walks_ns,
				    econ_product(costs->ns[ECON_FAULT],
						 action->touched)),
		.cost = econ_sum(ECON_NEVER_NS,
				 costs->ns[ECON_COMPACT_BLOCK]),
	};
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_DIRECT, .order = 9, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("a rich region does not wait in its fault", false,
	     .walks_ns = 50000000, .touched = 512),
	CASE("nothing is known", false, .touched = 0),
	CASE("huge pages are advised", false, .touched = 512),
	CASE("minutes of walks may wait a second", true,
	     .walks_ns = 60000000000, .touched = 512),
};

const struct econ_model econ_direct_model = {
	.name = "direct",
	.estimate = econ_direct_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
