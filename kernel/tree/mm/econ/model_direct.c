// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compaction and reclaim by the task that faults, so that it gets a block.
 *
 * How long that takes is not known before: from nothing to a second. Who waits
 * for it in a fault pays for the longest, so that hardly anything pays for it.
 * What it would have saved goes to the ledger, from which compaction in the
 * background is paid.
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
	CASE("minutes of walks may wait a second", true,
	     .walks_ns = 60000000000, .touched = 512),
};

const struct econ_model econ_direct_model = {
	.name = "direct",
	.estimate = econ_direct_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
