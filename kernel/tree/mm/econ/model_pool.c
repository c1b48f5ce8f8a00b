// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another size for the pools of lazily unmapped pages.
 *
 * Doubling the pools halves the flushes and doubles the refaults due to the pools.
 * Halving them doubles the flushes and halves these refaults. The two are separate
 * decisions.
 */

#include <linux/kernel.h>

#include "model.h"

static struct econ_estimate econ_pool_estimate(const struct econ_action *action,
					       const struct econ_costs *costs)
{
	u64 flushes = econ_product(costs->ns[ECON_FLUSH], action->interrupted);
	u64 reads = econ_product(costs->ns[ECON_READ_AGAIN],
				 action->refaults);

	if (action->is_smaller)
		return (struct econ_estimate){
			.benefit = reads / 2, .cost = flushes,
		};
	return (struct econ_estimate){ .benefit = flushes / 2, .cost = reads };
}

#define CASE(text, verdict, ...)					\
	{ .what = (text), .go = (verdict),				\
	  .action = { .kind = ECON_POOL, __VA_ARGS__ } }

static const struct econ_case cases[] = {
	CASE("flushes interrupt, and nothing is read again", true,
	     .interrupted = 100),
	CASE("what is read again costs more than half of the flushes", false,
	     .interrupted = 100, .refaults = 1),
	CASE("many flushes pay for a page that is read again", true,
	     .interrupted = 1000, .refaults = 1),
	CASE("what is read again pays for twice the flushes", true,
	     .interrupted = 100, .refaults = 10, .is_smaller = true),
	CASE("little is read again", false,
	     .interrupted = 1000, .refaults = 10, .is_smaller = true),
	CASE("nothing is read again", false,
	     .interrupted = 100, .is_smaller = true),
};

const struct econ_model econ_pool_model = {
	.name = "pool",
	.estimate = econ_pool_estimate,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
};
