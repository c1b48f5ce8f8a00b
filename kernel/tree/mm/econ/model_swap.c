// SPDX-License-Identifier: GPL-2.0-only
/*
 * A block of several pages that is read from swap at once.
 *
 * Benefit: the faults of the other pages that the program will touch, without the
 * reads, which happen in any case. Cost: reading the pages that it will not touch, their
 * memory, and the benefit of the block elsewhere. Nothing is cleared.
 */

#include <linux/kernel.h>

#include "model.h"

static u64 econ_less(u64 one, u64 other)
{
	return one > other ? one - other : 0;
}

static struct econ_estimate econ_swap_estimate(const struct econ_action *action,
					       const struct econ_costs *costs)
{
	unsigned int pages = 1U << action->order;
	/* In the block, if touched pages are spread evenly; one is touched now. */
	unsigned int touched = max(pages * action->touched / ECON_REGION_PAGES, 1U);
	u64 fault = econ_less(costs->ns[ECON_FAULT], costs->ns[ECON_CLEAR_PAGE]);
	u64 read = econ_less(costs->ns[ECON_READ_AGAIN], fault);
	struct econ_estimate it = { .benefit = econ_product(fault, touched - 1) };

	it.cost = econ_sum(econ_product(read, pages - touched), action->block_ns);
	it.cost = econ_sum(it.cost, econ_spare_ns(action, pages, touched));
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_SWAP_IN, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("all of a region is touched again: 64 KiB at once", true,
	     .order = 4, .touched = 512),
	CASE("but not of a block that saves more elsewhere", false,
	     .order = 4, .touched = 512, .block_ns = 100000),
	CASE("and 1 MiB at once", true, .order = 8, .touched = 512),
	CASE("half of it: reading is dearer than a fault", false,
	     .order = 4, .touched = 256),
	CASE("a page here and there", false, .order = 4, .touched = 32),
	CASE("nothing is known", false, .order = 4),
	CASE("walks do not count", false,
	     .order = 4, .touched = 32, .walks_ns = 1000000),
};

const struct econ_model econ_swap_model = {
	.name = "swap",
	.estimate = econ_swap_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
