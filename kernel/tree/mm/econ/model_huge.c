// SPDX-License-Identifier: GPL-2.0-only
/*
 * A huge page on the first touch of a region.
 *
 * Benefit: the page walks in the region, and the faults of all other pages that the
 * program would touch. Cost: its own fault, its clearing unless it was zeroed ahead,
 * the benefit of the block elsewhere, and the memory that the program does not touch.
 * Without a free block it costs ECON_NEVER_NS, or where it is known which pages are in the
 * way of one, to move these. A region that is read first is mapped to
 * the huge zero page, which needs no clearing, no block and no memory.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_huge_estimate(const struct econ_action *action,
					       const struct econ_costs *costs)
{
	struct econ_estimate it;

	it.benefit = econ_sum(action->walks_ns,
			      econ_product(costs->ns[ECON_FAULT],
					   action->touched));
	it.cost = econ_sum(costs->ns[ECON_HUGE_FAULT], action->block_ns);
	if (action->supply == ECON_NO_BLOCK)
		it.cost = econ_sum(it.cost, ECON_NEVER_NS);
	if (action->supply == ECON_MADE_BLOCK)
		it.cost = econ_sum(it.cost, econ_block_ns(costs, action->in_way));
	if (action->supply != ECON_ZEROED_BLOCK)
		it.cost = econ_sum(it.cost, costs->ns[ECON_CLEAR_HUGE]);
	it.cost = econ_sum(it.cost,
			   econ_spare_ns(action, ECON_REGION_PAGES, action->touched));
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_HUGE, .order = 9, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	/* Example of the talk: 10 us of TLB misses; clearing costs more, or is done. */
	CASE("10 us of walks do not pay for clearing", false,
	     .walks_ns = 10000, .touched = 1, .supply = ECON_FREE_BLOCK),
	CASE("10 us of walks pay for a block that was zeroed ahead", true,
	     .walks_ns = 10000, .touched = 1, .supply = ECON_ZEROED_BLOCK),
	CASE("nothing pays for a block that is not there", false,
	     .walks_ns = 10000000, .touched = 512, .supply = ECON_NO_BLOCK),
	CASE("not even 0.9 s", false,
	     .walks_ns = 900000000, .touched = 512, .supply = ECON_NO_BLOCK),
	CASE("a region that is filled pays for moving the pages of a sixteenth", true,
	     .touched = 512, .supply = ECON_MADE_BLOCK, .in_way = 32),
	CASE("but not for moving half of the pages", false,
	     .touched = 512, .supply = ECON_MADE_BLOCK, .in_way = 256),
	CASE("a rich one pays for that", true,
	     .walks_ns = 10000000, .touched = 512, .supply = ECON_MADE_BLOCK, .in_way = 256),
	CASE("a region that is filled pays by its faults alone", true,
	     .touched = 512, .supply = ECON_FREE_BLOCK),
	CASE("a tenth of a region does not", false,
	     .touched = 51, .supply = ECON_FREE_BLOCK),
	CASE("a tenth of a region that is read at random does", true,
	     .walks_ns = 1000000, .touched = 51, .supply = ECON_FREE_BLOCK),
	CASE("but not if others lose the memory that it does not touch", false,
	     .walks_ns = 1000000, .touched = 51, .page_ns = 3000,
	     .supply = ECON_FREE_BLOCK),
	CASE("of a region that is filled they lose nothing", true,
	     .touched = 512, .page_ns = 3000, .supply = ECON_FREE_BLOCK),
	CASE("a block that saves more elsewhere stays there", false,
	     .walks_ns = 1000000, .touched = 512, .block_ns = 2000000,
	     .supply = ECON_FREE_BLOCK),
	CASE("a page of zeros for one page that is read does not", false,
	     .touched = 1, .supply = ECON_ZEROED_BLOCK),
	CASE("a page of zeros for all that is read does", true,
	     .touched = 512, .supply = ECON_ZEROED_BLOCK),
	CASE("nothing is known, and clearing is not done", false,
	     .supply = ECON_FREE_BLOCK),
};

const struct econ_model econ_huge_model = {
	.name = "huge",
	.estimate = econ_huge_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
