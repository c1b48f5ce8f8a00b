// SPDX-License-Identifier: GPL-2.0-only
/* All models, and the costs of their test cases. */

#include "model.h"

const struct econ_model *const econ_models[ECON_KINDS] = {
	[ECON_HUGE] = &econ_huge_model,
	[ECON_LARGE] = &econ_large_model,
	[ECON_DIRECT] = &econ_direct_model,
	[ECON_PROMOTE] = &econ_promote_model,
	[ECON_DEMOTE] = &econ_demote_model,
	[ECON_COMPACT] = &econ_compact_model,
	[ECON_ZERO] = &econ_zero_model,
	[ECON_POOL] = &econ_pool_model,
	[ECON_SWAP_IN] = &econ_swap_model,
};

/*
 * Costs until this machine has measured its own. Measured on 2 CPUs of an AMD EPYC in
 * a virtual machine, Linux 6.18, with memory that the host had backed before: the
 * first touch of a page, of a huge page, and MADV_COLLAPSE. Their parts are split by
 * the share of their instructions. Moving a page: a copy, and a flush of another CPU
 * with its share of what moving several has in common. Compaction of a block: 512 of
 * them. A flush of another CPU: 2,000 cycles with its entry and return, the weight that
 * the lab uses, at 2.5 GHz. A refault: 4 KiB from flash. All are wrong by a factor on
 * other machines, so each machine measures its own.
 */
const struct econ_costs econ_default_costs = {
	.ns = {
		[ECON_FAULT] = 1300,
		[ECON_HUGE_FAULT] = 4000,
		[ECON_CLEAR_PAGE] = 420,
		[ECON_CLEAR_HUGE] = 216000,
		[ECON_COMPACT_BLOCK] = 2000000,
		[ECON_MOVE_PAGE] = 3900,
		[ECON_COLLAPSE] = 700000,
		[ECON_SPLIT] = 60000,
		[ECON_RECLAIM_PAGE] = 3000,
		[ECON_FLUSH] = 800,
		[ECON_READ_AGAIN] = 80000,
	},
};

/**
 * econ_estimate - estimate the cost and benefit of an action
 * @action: the action
 * @costs: costs of this machine
 *
 * Context: any.
 * Return: cost and benefit, in nanoseconds of user-space time.
 */
struct econ_estimate econ_estimate(const struct econ_action *action,
				   const struct econ_costs *costs)
{
	return econ_models[action->kind]->estimate(action, costs);
}

/* Credit that pays for an attempt of unknown duration: 10 ms. */
#define EXPLORATION_CREDIT_NS	10000000ULL

/**
 * econ_may_explore - whether a refused action may be done to measure its cost
 * @action: the action
 * @it: its cost and benefit
 *
 * Only actions that nothing else measures if all are refused: clearing a huge page,
 * collapse, and compaction in the background. Each has some benefit, takes no block
 * from another region, and lets no fault wait.
 *
 * Context: any.
 * Return: true if so.
 */
bool econ_may_explore(const struct econ_action *action, struct econ_estimate it)
{
	if (!it.benefit)
		return false;
	switch (action->kind) {
	case ECON_HUGE:
	case ECON_PROMOTE:
		return action->supply == ECON_FREE_BLOCK && !action->block_ns;
	case ECON_COMPACT:
		return action->credit_ns >= EXPLORATION_CREDIT_NS;
	default:
		return false;
	}
}
