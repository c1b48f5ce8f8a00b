// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroing a block ahead.
 *
 * Benefit: its clearing in a fault, if faults recently wanted more blocks than there
 * are. Cost: in idle time only the memory that is kept, otherwise also the clearing,
 * which then saves nothing. The processes that want blocks must have used enough CPU
 * time to pay for them.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_zero_estimate(const struct econ_action *action,
					       const struct econ_costs *costs)
{
	struct econ_estimate it = { .cost = action->block_ns };

	if (action->wanted > action->stock)
		it.benefit = costs->ns[ECON_CLEAR_HUGE];
	if (!action->is_idle)
		it.cost = econ_sum(it.cost, costs->ns[ECON_CLEAR_HUGE]);
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
	     .wanted = 10, .is_idle = true, .block_ns = 1000000,
	     .credit_ns = ENOUGH),
	CASE("those that wanted one have hardly run", false,
	     .wanted = 10, .is_idle = true, .credit_ns = 200000),
};

const struct econ_model econ_zero_model = {
	.name = "zero",
	.estimate = econ_zero_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
