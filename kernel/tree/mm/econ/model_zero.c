// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroing a block ahead.
 *
 * A stock of one block more saves the clearing in as many faults as recently wanted one,
 * divided by the blocks of the stock: the thread fills the place of each one that is
 * taken. Cost: in idle time only the memory that is kept, otherwise also the clearing,
 * which then saves nothing. The processes that want blocks must have used enough CPU
 * time to pay for them.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_zero_estimate(const struct econ_action *action,
					       const struct econ_costs *costs)
{
	u64 clearing_ns = econ_product(costs->ns[ECON_CLEAR_HUGE],
				       action->wanted / (action->stock + 1));
	struct econ_estimate it = {
		.benefit = clearing_ns,
		.cost = econ_sum(action->block_ns,
				 econ_spare_ns(action, ECON_REGION_PAGES, 0)),
	};

	if (!action->is_idle)
		it.cost = econ_sum(it.cost, clearing_ns);
	if (action->credit_ns < costs->ns[ECON_CLEAR_HUGE])
		it.cost = U64_MAX;
	return it;
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_ZERO, .order = 9,			\
		      .supply = ECON_FREE_BLOCK, __VA_ARGS__ } }

#define ENOUGH	10000000

static const struct econ_case cases[] = {
	CASE("an idle CPU, and more were wanted than there are", true,
	     .wanted = 10, .stock = 4, .is_idle = true, .credit_ns = ENOUGH),
	CASE("as many as were wanted are there", false,
	     .wanted = 10, .stock = 10, .is_idle = true, .credit_ns = ENOUGH),
	CASE("nobody wanted one", false, .is_idle = true, .credit_ns = ENOUGH),
	CASE("no CPU has the time", false, .wanted = 10, .credit_ns = ENOUGH),
	CASE("the memory is worth more", false,
	     .wanted = 10, .is_idle = true, .block_ns = 3000000,
	     .credit_ns = ENOUGH),
	CASE("each is used ten times, and memory is short", true,
	     .wanted = 50, .stock = 4, .is_idle = true, .credit_ns = ENOUGH,
	     .page_ns = 3000),
	CASE("each is used twice, and memory is short", false,
	     .wanted = 10, .stock = 4, .is_idle = true, .credit_ns = ENOUGH,
	     .page_ns = 3000),
	CASE("those that wanted one have hardly run", false,
	     .wanted = 10, .is_idle = true, .credit_ns = 200000),
};

const struct econ_model econ_zero_model = {
	.name = "zero",
	.estimate = econ_zero_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
