// SPDX-License-Identifier: GPL-2.0-only
/*
 * A block of several pages, smaller than a huge page, on the first touch of one of
 * them: eager paging.
 *
 * Benefit: the faults of the other pages that the program would touch. Cost: clearing
 * the pages that it would not touch, and their memory. Page walks do not change: x86 CPUs
 * translate in pages of 4 KiB and 2 MiB.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_large_estimate(const struct econ_action *action,
						const struct econ_costs *costs)
{
	unsigned int pages = 1U << action->order;
	/* In the block, if touched pages are spread evenly over the region. */
	unsigned int touched = pages * action->touched / ECON_REGION_PAGES;
	u64 fault = costs->ns[ECON_FAULT], clear = costs->ns[ECON_CLEAR_PAGE];
	struct econ_estimate it;

	/* Touched pages are cleared in any case. */
	fault -= fault > clear ? clear : fault;
	it.benefit = econ_product(fault, touched ? touched - 1 : 0);
	it.cost = econ_sum(econ_product(clear, pages - touched), action->block_ns);
	it.cost = econ_sum(it.cost, econ_spare_ns(action, pages, touched));
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_LARGE, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("all of a region is touched: 64 KiB at once", true,
	     .order = 4, .touched = 512, .supply = ECON_FREE_BLOCK),
	CASE("and 1 MiB at once", true,
	     .order = 8, .touched = 512, .supply = ECON_FREE_BLOCK),
	CASE("a page here and there", false,
	     .order = 4, .touched = 32, .supply = ECON_FREE_BLOCK),
	CASE("a fifth of the region", false,
	     .order = 4, .touched = 102, .supply = ECON_FREE_BLOCK),
	CASE("half of the region", true,
	     .order = 4, .touched = 300, .supply = ECON_FREE_BLOCK),
	CASE("half of it, but others lose the rest", false,
	     .order = 4, .touched = 300, .page_ns = 3000,
	     .supply = ECON_FREE_BLOCK),
	CASE("walks do not count", false,
	     .order = 4, .touched = 32, .walks_ns = 1000000,
	     .supply = ECON_FREE_BLOCK),
	CASE("a block that saves more elsewhere stays there", false,
	     .order = 8, .touched = 512, .block_ns = 2000000,
	     .supply = ECON_FREE_BLOCK),
};

const struct econ_model econ_large_model = {
	.name = "large",
	.estimate = econ_large_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
