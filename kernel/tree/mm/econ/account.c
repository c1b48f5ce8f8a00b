// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode and costs of the machine, its free blocks and memory, and decisions: ask the model,
 * and count the result.
 */

#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/econ.h>

DEFINE_STATIC_KEY_FALSE(econ_key);

enum econ_mode econ_mode;
struct econ_costs econ_costs;
/* Decisions of the whole machine. */
struct econ_account econ_ledger[ECON_KINDS];
atomic64_t econ_explored[ECON_KINDS];

/* One in this many refused actions is done nevertheless, to measure its cost. */
#define REFUSALS_AN_EXPLORATION	1000

/* Whether a zone is above a watermark. Part of a low zone is reserved. */
static bool econ_zone_above(struct zone *zone, unsigned int order, unsigned long mark)
{
	return populated_zone(zone) &&
	       zone_watermark_ok(zone, order, mark, gfp_zone(GFP_TRANSHUGE_LIGHT), 0);
}

/*
 * Whether a zone may give a block: above the low watermark, at which allocations that do
 * not wait stop.
 */
static bool econ_zone_gives(struct zone *zone, unsigned int order)
{
	return econ_zone_above(zone, order, low_wmark_pages(zone));
}

/**
 * econ_is_node_short - whether memory of a node is short
 * @nid: the node
 *
 * Context: any.
 * Return: true if no zone is above its high watermark, up to which kswapd reclaims.
 */
bool econ_is_node_short(int nid)
{
	struct zone *zones = NODE_DATA(nid)->node_zones, *zone;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++)
		if (econ_zone_above(zone, 0, high_wmark_pages(zone)))
			return false;
	return true;
}

#ifdef CONFIG_MEMCG
/* Whether the memory cgroup of an mm has to reclaim for a huge page. RCU is locked. */
static bool econ_is_memcg_short(const struct mm_struct *mm)
{
	struct mem_cgroup *memcg = mem_cgroup_from_task(rcu_dereference(mm->owner));

	for (; memcg && !mem_cgroup_is_root(memcg); memcg = parent_mem_cgroup(memcg)) {
		unsigned long limit = min(READ_ONCE(memcg->memory.max),
					  READ_ONCE(memcg->memory.high));

		if (page_counter_read(&memcg->memory) + HPAGE_PMD_NR > limit)
			return true;
	}
	return false;
}
#else
static bool econ_is_memcg_short(const struct mm_struct *mm)
{
	return false;
}
#endif

/**
 * econ_page_ns - cost of a page of memory
 * @mm: the mm that would use it
 * @nid: its node, or NUMA_NO_NODE if it is not known
 *
 * Context: RCU is locked.
 * Return: nanoseconds. Where memory is short, another page is reclaimed for it; otherwise
 * it costs nothing.
 */
u64 econ_page_ns(const struct mm_struct *mm, int nid)
{
	if ((nid == NUMA_NO_NODE || !econ_is_node_short(nid)) && !econ_is_memcg_short(mm))
		return 0;
	return READ_ONCE(econ_costs.ns[ECON_RECLAIM_PAGE]);
}

/**
 * econ_free_blocks - number of free huge pages of a node
 * @nid: the node
 *
 * Context: any.
 * Return: number of blocks in zones above the low watermark, at which allocations
 * that do not wait stop.
 */
unsigned long econ_free_blocks(int nid)
{
	struct zone *zones = NODE_DATA(nid)->node_zones, *zone;
	unsigned long blocks = 0;
	unsigned int order;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++) {
		unsigned long in_zone = 0;

		if (!econ_zone_gives(zone, HPAGE_PMD_ORDER))
			continue;
		for (order = HPAGE_PMD_ORDER; order < NR_PAGE_ORDERS; order++)
			in_zone += READ_ONCE(zone->free_area[order].nr_free)
				   << (order - HPAGE_PMD_ORDER);
		blocks += in_zone;
	}
	return blocks;
}

/**
 * econ_has_piece - whether a block can be taken without cutting a huge block
 * @nid: the node
 * @order: order of the block, below that of a huge page
 *
 * Context: any.
 * Return: true if a zone above the low watermark has a free block of that order, or
 * of one between it and a huge page.
 */
bool econ_has_piece(int nid, unsigned int order)
{
	struct zone *zones = NODE_DATA(nid)->node_zones, *zone;
	unsigned int at;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++) {
		if (!econ_zone_gives(zone, order))
			continue;
		for (at = order; at < HPAGE_PMD_ORDER; at++)
			if (READ_ONCE(zone->free_area[at].nr_free))
				return true;
	}
	return false;
}

/**
 * econ_count_ns - add to a saturating sum of nanoseconds
 * @sum: the sum
 * @ns: any number
 *
 * Context: any.
 */
void econ_count_ns(atomic64_t *sum, u64 ns)
{
	s64 old = atomic64_read(sum), new;

	do {
		new = min_t(u64, econ_sum(old, ns), S64_MAX);
	} while (!atomic64_try_cmpxchg(sum, &old, new));
}

static void econ_account_add(struct econ_account *account, struct econ_estimate it, bool go)
{
	atomic64_inc(&account->asked);
	if (go) {
		atomic64_inc(&account->approved);
		econ_count_ns(&account->cost, it.cost);
		econ_count_ns(&account->benefit, it.benefit);
	} else {
		econ_count_ns(&account->refused, it.benefit);
	}
}

/**
 * econ_book - count a decision
 * @kind: kind of the action
 * @order: order of its block
 * @address: address of the action, or 0
 * @own: account of the process, or NULL
 * @it: cost and benefit
 * @go: the decision
 * @acts: whether the decision takes effect, or is only observed
 *
 * Context: any.
 */
void econ_book(unsigned int kind, unsigned int order, unsigned long address,
	       struct econ_account *own, struct econ_estimate it, bool go, bool acts)
{
	if (own)
		econ_account_add(own, it, go);
	econ_account_add(&econ_ledger[kind], it, go);
	trace_econ_decision(econ_models[kind]->name, order, address, it.cost,
			    it.benefit, go, acts);
}

/**
 * econ_explore - whether to do a refused action, to measure its cost
 * @action: the action
 * @address: address of the action, or 0
 * @it: its cost and benefit
 * @acts: whether decisions take effect, or are only observed
 *
 * Otherwise a cost that is too high would stay, because nothing would measure it again.
 *
 * Context: any.
 * Return: true for one in many.
 */
bool econ_explore(const struct econ_action *action, unsigned long address,
		  struct econ_estimate it, bool acts)
{
	static atomic_t refusals[ECON_KINDS];

	if (!acts || READ_ONCE(econ_frozen_costs) == ECON_ALL_COSTS ||
	    !econ_may_explore(action, it) ||
	    atomic_inc_return(&refusals[action->kind]) % REFUSALS_AN_EXPLORATION)
		return false;
	atomic64_inc(&econ_explored[action->kind]);
	trace_econ_explored(econ_models[action->kind]->name, address, it.cost,
			    it.benefit);
	return true;
}

/**
 * econ_judge - decide whether an action is worth it, and do not count the decision
 * @action: the action
 * @it: its cost and benefit
 * @may_explore: set if the action may be done to measure its cost: the model decided
 *
 * Context: any.
 * Return: the decision of a BPF program, or else whether it pays.
 */
bool econ_judge(const struct econ_action *action, struct econ_estimate it, bool *may_explore)
{
	enum econ_verdict verdict = econ_ask_program(action, it);

	*may_explore = verdict == ECON_AS_ESTIMATED;
	return *may_explore ? econ_pays(it) : verdict == ECON_APPROVE;
}

/**
 * econ_decide - decide whether an action pays, and count the decision
 * @action: the action
 * @address: address of the action, or 0
 * @own: account of the process, or NULL
 * @acts: whether the decision takes effect, or is only observed
 *
 * Context: any.
 * Return: true if it pays, or is done to measure its cost.
 */
bool econ_decide(const struct econ_action *action, unsigned long address,
		 struct econ_account *own, bool acts)
{
	struct econ_estimate it = econ_estimate(action, &econ_costs);
	bool may_explore, go = econ_judge(action, it, &may_explore);

	econ_book(action->kind, action->order, address, own, it, go, acts);
	return go || (may_explore && econ_explore(action, address, it, acts));
}

/**
 * econ_decide_for_mm - econ_decide() for a process
 * @econ: profile of its mm
 * @action: the action
 * @address: address of the action
 *
 * Context: any.
 * Return: true if it pays, or is done to measure its cost.
 */
bool econ_decide_for_mm(struct econ_mm *econ, const struct econ_action *action,
			unsigned long address)
{
	return econ_decide(action, address, &econ->ledger[action->kind],
			   econ_effective_mode(econ) == ECON_ON);
}
