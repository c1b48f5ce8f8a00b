// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compaction of a block in the background.
 *
 * Benefit: the expected loss for lack of a block: as much as was lost before, or gained by
 * the last block, less the cost of blocks since.
 * Cost: compaction, or less where the pages to move are known and few. The processes that
 * lost the benefit must have used enough CPU time to have paid for all earlier attempts. A
 * block is for the next fault; khugepaged decides for itself whether its collapse pays.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_compact_estimate(const struct econ_action *action,
						  const struct econ_costs *costs)
{
	struct econ_estimate it = {
		.benefit = action->refused_ns,
		.cost = econ_block_ns(costs, action->in_way),
	};

	if (!action->credit_ns)
		it.cost = U64_MAX;
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_COMPACT, .order = 9, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("nobody wanted a block", false,
	     .refused_ns = 0, .credit_ns = 10000000),
	CASE("a poor region wanted one", false,
	     .refused_ns = 500000, .credit_ns = 10000000),
	CASE("a rich region wanted one", true,
	     .refused_ns = 10000000, .credit_ns = 10000000),
	CASE("a poor region wanted one that one page is in the way of", true,
	     .refused_ns = 500000, .credit_ns = 10000000, .in_way = 1),
	CASE("a poor region wanted one that half of its pages are in the way of", false,
	     .refused_ns = 500000, .credit_ns = 10000000, .in_way = 256),
	CASE("one page is in the way, and the program has not paid for the last one", false,
	     .refused_ns = 500000, .credit_ns = 0, .in_way = 1),
	CASE("a rich region of a program that has hardly run", true,
	     .refused_ns = 10000000, .credit_ns = 1000),
	CASE("a rich region of a program that has not paid for the last one", false,
	     .refused_ns = 1000000000, .credit_ns = 0),
};

const struct econ_model econ_compact_model = {
	.name = "compact",
	.estimate = econ_compact_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
