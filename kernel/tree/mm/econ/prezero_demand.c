// SPDX-License-Identifier: GPL-2.0-only
/*
 * Demand for zeroed blocks: how many faults could have used recently, and the credit of
 * their processes.
 */

#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/nodemask.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>

#include "internal.h"
#include "prezero.h"

/* Half-life of the number of wanted blocks. */
#define HALF_LIFE	(16 * HZ)

/**
 * econ_prezero_left - number of blocks that a program leaves to those of higher weight
 * @prezero: blocks of a node
 * @weight: weight of the program
 *
 * Context: the lock of @prezero is held.
 * Return: what the weight lacks of the number that faults could have used recently, or of
 * the limit; without weight, more than any number.
 */
unsigned long econ_prezero_left(const struct econ_prezero *prezero, unsigned int weight)
{
	lockdep_assert_held(&prezero->lock);
	if (!weight)
		return ULONG_MAX;
	return econ_weighed(min(prezero->wanted, READ_ONCE(econ_zeroed_limit)),
			    ECON_MOST_WEIGHT - weight);
}

static void econ_prezero_fade(struct econ_prezero *prezero)
{
	unsigned long lives = (jiffies - prezero->faded) / HALF_LIFE;

	lockdep_assert_held(&prezero->lock);
	if (!lives)
		return;
	prezero->wanted >>= min(lives, BITS_PER_LONG - 1UL);
	prezero->faded += lives * HALF_LIFE;
}

/**
 * econ_prezero_pays_memory - whether a stock pays for its memory where that is short
 * @prezero: blocks of a node
 * @blocks: number of blocks of the stock
 *
 * Context: any.
 * Return: true if the clearings that its last block saves cost more than reclaim of as many
 * pages.
 */
bool econ_prezero_pays_memory(const struct econ_prezero *prezero, unsigned long blocks)
{
	struct econ_action action = {
		.kind = ECON_ZERO,
		.wanted = READ_ONCE(prezero->wanted),
		.stock = blocks - 1,
		.page_ns = READ_ONCE(econ_costs.ns[ECON_RECLAIM_PAGE]),
		.credit_ns = U64_MAX,
		.is_idle = true,
	};

	return blocks && econ_pays(econ_estimate(&action, &econ_costs));
}

/**
 * econ_prezero_has_work - whether one more block is wanted, allowed and paid for
 * @prezero: blocks of a node
 *
 * Context: any; takes a spinlock.
 * Return: true if so.
 */
bool econ_prezero_has_work(struct econ_prezero *prezero)
{
	enum econ_mode mode = READ_ONCE(econ_mode);

	guard(spinlock_irqsave)(&prezero->lock);
	econ_prezero_fade(prezero);
	return mode != ECON_OFF && econ_prezero_may_add(prezero, mode) &&
	       prezero->wanted > econ_prezero_stock(prezero) &&
	       econ_pot_read(&prezero->credit, ktime_get_ns()) >=
	       READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]);
}

/**
 * econ_prezero_pay - spend the credit for a block that was zeroed, or would have been
 * @prezero: blocks of a node
 *
 * Context: the lock of @prezero is held.
 */
void econ_prezero_pay(struct econ_prezero *prezero)
{
	lockdep_assert_held(&prezero->lock);
	econ_pot_take(&prezero->credit,
		      READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]),
		      ktime_get_ns());
}

/**
 * econ_prezero_node_credit - credit for zeroing
 * @prezero: blocks of a node
 *
 * Context: any; takes a spinlock.
 * Return: nanoseconds.
 */
u64 econ_prezero_node_credit(struct econ_prezero *prezero)
{
	guard(spinlock_irqsave)(&prezero->lock);
	return econ_pot_read(&prezero->credit, ktime_get_ns());
}

/**
 * econ_prezero_want - count a fault that could use a zeroed block
 * @nid: node of the block
 * @earned_ns: CPU time of its process to add to the credit
 * @weight: weight of its program
 *
 * Context: a page fault; takes a spinlock.
 * Return: number of zeroed blocks that there are, or would be, and that it may take.
 */
unsigned long econ_prezero_want(int nid, u64 earned_ns, unsigned int weight)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);
	unsigned long stock, left;

	if (!prezero)
		return 0;
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		econ_prezero_fade(prezero);
		econ_pot_add(&prezero->credit, econ_weighed(earned_ns, weight),
			     ktime_get_ns());
		/* Without weight it takes none. */
		prezero->wanted += !!weight;
		left = econ_prezero_left(prezero, weight);
		stock = econ_prezero_stock(prezero);
	}
	if (!stock)
		econ_prezero_count(ECON_ZEROED_MISSED);
	if (stock && stock <= left) {
		econ_prezero_count(ECON_ZEROED_LEFT);
		econ_prezero_trace(prezero, ECON_ZEROED_LEFT);
	}
	if (wq_has_sleeper(&prezero->work) && econ_prezero_has_work(prezero))
		wake_up(&prezero->work);
	return stock > left ? stock - left : 0;
}

/**
 * econ_prezero_credit - credit for zeroing, of all nodes
 *
 * Context: any; takes spinlocks.
 * Return: nanoseconds.
 */
u64 econ_prezero_credit(void)
{
	u64 ns = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY)
		if (econ_prezero_of_node(nid))
			ns += econ_prezero_node_credit(econ_prezero_of_node(nid));
	return ns;
}
