// SPDX-License-Identifier: GPL-2.0-only
/*
 * Benefit that is lost for lack of a block, and compaction that it pays for.
 *
 * Where a block would have paid in a fault, and none was free or worth making there, its
 * benefit is added to the ledger of the node, and so is the benefit of the fault that
 * takes the last block: the next one would lose as much. As soon as the ledger exceeds
 * the cost of a block, kcompactd is asked for one. Each attempt is paid from the ledger,
 * successful or not, with the larger of its cost and its duration, and so is the time of a
 * search that finds no block worth its cost: no more is spent than was lost or gained
 * before, and repeated failures of compaction end by themselves.
 * One in many attempts that do not pay is made nevertheless, to measure its cost, and paid
 * with its duration.
 *
 * An attempt makes blocks by moving the pages that are in use in them, if there are some
 * that can be moved (block.c): as many blocks as the ledger pays for, and as few pages as a
 * block has. Allocations of single pages take the smallest free pieces, which are in all
 * blocks, so that each block is cheaper now than it will be. Else an attempt is the
 * compaction of one zone, as in a fault: only blocks of movable pages, and each only as far
 * as its pages can be moved at once. After a failure it is thorough: all blocks of the zone,
 * those that compaction marked to be skipped as well. Zones from which no fault could take a
 * huge page are left out.
 *
 * Compaction is not deferred after failures, as stock code defers it, and failures defer no
 * stock code: the ledger limits attempts already, and a zone where compaction fails can
 * still have blocks with known pages in their way.
 *
 * The loss is only what a profile claims, and any user may write one. So an attempt is
 * also paid from the CPU time of processes that lacked a block: for each 8 ns of their
 * time kcompactd may work 1 ns. No work is done for a process that may not run, as in a
 * cgroup with a cpu.max. (Linux cannot charge the time of a kernel thread to the cgroup
 * of another task: bandwidth is taken from the run queue of the running task.)
 *
 * The loss and the credit are scaled by the weight of the memory cgroup (weight.c).
 *
 * Requests of stock code to kcompactd are done as without econ, and paid by no ledger.
 */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/cputime.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>
/* Needs the headers above. */
#include <linux/compaction.h>

#include <trace/events/econ.h>

#include "../internal.h"
#include "internal.h"
#include "pot.h"

/* An eighth of the CPU time of a process is credit for compaction, all of it for zeroing. */
#define COMPACT_SHARE	8

/**
 * struct econ_node_ledger - lost benefit of a node, and compaction for it
 * @faults: number of faults that lacked a block that would have paid
 * @refused: benefit that they lost recently, or that the last block brought, less what was
 *	spent
 * @credit: time that compaction may use, from the CPU time of these processes
 * @made: number of blocks that kcompactd made for it
 * @failed: number of failed attempts, and of chosen blocks that were not free in the end
 * @moved: number of pages to move in blocks that were chosen
 * @in_way: number of pages to move for the block that was refused last; 0 if the last
 *	one was made
 * @is_asked: kcompactd was asked for a block, and has not begun
 * @is_explored: the next attempt is made whether it pays or not
 * @is_thorough: the next attempt waits for pages; only kcompactd uses it
 */
struct econ_node_ledger {
	atomic64_t faults;
	struct econ_pot refused;
	struct econ_pot credit;
	atomic64_t made;
	atomic64_t failed;
	atomic64_t moved;
	unsigned int in_way;
	bool is_asked;
	bool is_explored;
	bool is_thorough;
};

static struct econ_node_ledger ledgers[MAX_NUMNODES];
static DEFINE_SPINLOCK(pots_lock); /* the pots of all ledgers */

static struct econ_action econ_attempt_action(struct econ_node_ledger *ledger,
					      unsigned int in_way)
{
	u64 now = ktime_get_ns();

	guard(spinlock)(&pots_lock);
	return (struct econ_action){
		.kind = ECON_COMPACT,
		.order = HPAGE_PMD_ORDER,
		.in_way = in_way,
		.refused_ns = econ_pot_read(&ledger->refused, now),
		.credit_ns = econ_pot_read(&ledger->credit, now),
	};
}

/* Whether to ask kcompactd, which decides once more, when it knows the pages to move. */
static bool econ_wants_attempt(struct econ_node_ledger *ledger, bool acts)
{
	struct econ_action action =
		econ_attempt_action(ledger, READ_ONCE(ledger->in_way) ?: 1);
	struct econ_estimate it = econ_estimate(&action, &econ_costs);

	if (econ_pays(it))
		return true;
	if (!econ_explore(&action, 0, it, acts))
		return false;
	WRITE_ONCE(ledger->is_explored, true);
	return true;
}

static void econ_ledger_deposit(struct econ_node_ledger *ledger, u64 lost_ns, u64 earned_ns)
{
	u64 now = ktime_get_ns();

	guard(spinlock)(&pots_lock);
	econ_pot_add(&ledger->refused, lost_ns, now);
	econ_pot_add(&ledger->credit, earned_ns, now);
}

static void econ_ledger_withdraw(struct econ_node_ledger *ledger, u64 ns)
{
	u64 now = ktime_get_ns();

	guard(spinlock)(&pots_lock);
	econ_pot_take(&ledger->refused, ns, now);
	econ_pot_take(&ledger->credit, ns, now);
}

/* Decide whether an attempt pays, and count the decision. */
static bool econ_decide_attempt(struct econ_node_ledger *ledger, bool acts)
{
	struct econ_action action = econ_attempt_action(ledger, 0);

	return econ_decide(&action, 0, NULL, acts);
}

static void econ_ask_kcompactd(int nid)
{
	pg_data_t *pgdat = NODE_DATA(nid);

	/* A request of stock code is free. */
	if (READ_ONCE(pgdat->kcompactd_max_order) < HPAGE_PMD_ORDER)
		WRITE_ONCE(ledgers[nid].is_asked, true);
	wakeup_kcompactd(pgdat, HPAGE_PMD_ORDER, gfp_zone(GFP_TRANSHUGE_LIGHT));
}

/**
 * econ_want_block - account for a fault that lacks a block, or took the last one
 * @nid: node without a free block
 * @econ: profile of the mm of the fault
 * @mm: the mm
 * @action: the action
 *
 * Context: a page fault, RCU is locked; takes a spinlock and locks of run queues, may
 * wake kcompactd.
 */
void econ_want_block(int nid, struct econ_mm *econ, const struct mm_struct *mm,
		     const struct econ_action *action)
{
	bool acts = econ_effective_mode(econ) == ECON_ON;
	u64 earned_ns = econ_earned(econ, mm, ECON_WORK_COMPACT);
	struct econ_node_ledger *ledger = &ledgers[nid];
	struct econ_action with = *action;
	unsigned int weight = econ_weight(mm);
	struct econ_estimate it;

	with.supply = ECON_FREE_BLOCK;
	with.block_ns = 0;
	it = econ_estimate(&with, &econ_costs);
	if (!econ_pays(it))
		return;
	if (action->supply != ECON_FREE_BLOCK)
		atomic64_inc(&ledger->faults);
	econ_ledger_deposit(ledger, econ_weighed(it.benefit - it.cost, weight),
			    econ_weighed(earned_ns, weight) / COMPACT_SHARE);
	if (!econ_wants_attempt(ledger, acts))
		return;
	if (acts)
		econ_ask_kcompactd(nid);
	else if (econ_decide_attempt(ledger, false))
		econ_ledger_withdraw(ledger,
				     READ_ONCE(econ_costs.ns[ECON_COMPACT_BLOCK]));
}

/**
 * econ_compaction_begin - begin a run of kcompactd
 * @it: state of the run
 * @pgdat: the node
 * @gfp: mask of stock code
 *
 * Context: kcompactd.
 * Return: the mask of the allocation that the block is for.
 */
gfp_t econ_compaction_begin(struct econ_compaction *it, pg_data_t *pgdat, gfp_t gfp)
{
	struct econ_node_ledger *ledger = &ledgers[pgdat->node_id];

	it->nid = pgdat->node_id;
	it->order = READ_ONCE(pgdat->kcompactd_max_order);
	it->is_ours = xchg(&ledger->is_asked, false) &&
		      it->order == HPAGE_PMD_ORDER &&
		      READ_ONCE(econ_mode) != ECON_OFF;
	it->is_explored = it->is_ours && xchg(&ledger->is_explored, false);
	it->is_over = false;
	return it->is_ours ? GFP_TRANSHUGE_LIGHT : gfp;
}

/*
 * Whether the ledger pays for the compaction of a zone. If not, the next zone can still have
 * blocks that cost less.
 */
static bool econ_pays_for_zone(struct econ_compaction *it)
{
	struct econ_node_ledger *ledger = &ledgers[it->nid];
	bool pays = econ_decide_attempt(ledger, true) || it->is_explored;

	WRITE_ONCE(ledger->in_way, pays ? 0 : ECON_REGION_PAGES);
	return pays;
}

/*
 * The blocks that the ledger pays for together, of those that can be made, the cheapest
 * first. Return: their number; @pages is set to the number of pages that they cost.
 */
static unsigned int econ_plan_blocks(struct econ_compaction *it,
				     const struct econ_block *blocks, unsigned int count,
				     unsigned int *pages)
{
	struct econ_node_ledger *ledger = &ledgers[it->nid];
	struct econ_action action = econ_attempt_action(ledger, 0);
	u64 lost_ns = action.refused_ns, spent_ns = 0;
	unsigned int planned;

	*pages = 0;
	for (planned = 0; planned < count; planned++) {
		action.in_way = econ_paid_pages(blocks[planned].in_way);
		action.refused_ns = lost_ns > spent_ns ? lost_ns - spent_ns : 0;
		if (planned && *pages + action.in_way > ECON_REGION_PAGES)
			break;
		if (!econ_decide(&action, 0, NULL, true) && (planned || !it->is_explored))
			break;
		*pages += action.in_way;
		spent_ns += econ_block_ns(&econ_costs, action.in_way);
	}
	WRITE_ONCE(ledger->in_way, planned ? 0 : action.in_way);
	return planned;
}

/* CPU time of kcompactd that is not paid yet. */
static u64 econ_unpaid_ns(struct econ_compaction *it)
{
	u64 now_ns = task_sched_runtime(current), unpaid_ns = now_ns - it->began_ns;

	it->began_ns = now_ns;
	return unpaid_ns;
}

/* Pay for an attempt and count its result: blocks made, and attempts and blocks that failed. */
static void econ_pay(struct econ_compaction *it, unsigned int in_way, unsigned int made,
		     unsigned int failed)
{
	struct econ_node_ledger *ledger = &ledgers[it->nid];
	u64 took_ns = econ_unpaid_ns(it);
	/* The attempt may have been a sample of it. */
	u64 cost_ns = econ_block_ns(&econ_costs, in_way);

	/* The cost is in doubt if the attempt was made to measure it. */
	econ_ledger_withdraw(ledger, it->is_explored ? took_ns : max(took_ns, cost_ns));
	atomic64_add(made, &ledger->made);
	atomic64_add(failed, &ledger->failed);
}

/* Whether the ledger pays for the cheapest block that there can be. */
static bool econ_may_pay(const struct econ_compaction *it)
{
	struct econ_action action = econ_attempt_action(&ledgers[it->nid],
							ECON_LEAST_IN_WAY);

	return it->is_explored || econ_pays(econ_estimate(&action, &econ_costs));
}

/* A block with a page in the list of a CPU cannot be made. */
static unsigned int econ_choose_after_drain(const struct econ_compaction *it,
					    struct zone *zone, struct econ_block *blocks)
{
	unsigned int count = econ_choose_blocks(zone, blocks);

	if (count || !econ_may_pay(it))
		return count;
	drain_all_pages(zone);
	return econ_choose_blocks(zone, blocks);
}

/*
 * Make blocks by moving pages that are known. Return false if there is no block, or none
 * could be made; true if some were made, or none pays.
 */
static bool econ_try_blocks(struct econ_compaction *it, struct zone *zone)
{
	struct econ_block blocks[ECON_BLOCKS];
	unsigned int count = econ_choose_after_drain(it, zone, blocks), pages, made;

	if (!count)
		return false;
	count = econ_plan_blocks(it, blocks, count, &pages);
	if (!count)
		return true;
	econ_watch_begin(&it->watch);
	made = econ_make_blocks(zone, blocks, count);
	if (it->watch.is_on)
		__econ_compacted(&it->watch, it->order, pages, made);
	econ_pay(it, pages, made, count - made);
	for (unsigned int i = 0; i < count; i++)
		atomic64_add(blocks[i].in_way, &ledgers[it->nid].moved);
	trace_econ_blocks(it->nid, count, pages, made);
	it->is_over = made;
	return made;
}

/* An earlier zone of the run may have had the other way. */
static void econ_set_way(struct compact_control *cc, bool is_thorough)
{
	cc->mode = is_thorough ? MIGRATE_SYNC_LIGHT : MIGRATE_ASYNC;
	cc->direct_compaction = !is_thorough;
	cc->ignore_skip_hint = is_thorough;
	cc->whole_zone = is_thorough;
}

/* Whether kcompactd has to compact a zone for the ledger. */
static bool econ_may_try(struct econ_compaction *it, struct compact_control *cc,
			 struct zone *zone)
{
	if (it->is_over || !econ_has_room(zone) || econ_try_blocks(it, zone) ||
	    !econ_pays_for_zone(it))
		return false;
	econ_set_way(cc, ledgers[it->nid].is_thorough);
	return true;
}

/**
 * econ_may_compact - make blocks, or let kcompactd compact a zone
 * @it: state of the run
 * @cc: how to compact; set if the ledger pays
 * @zone: the zone
 *
 * Context: kcompactd; may sleep.
 * Return: false if kcompactd has nothing to do for the ledger: blocks were made already,
 * too little of @zone is free to compact it or to let a fault take a block, or the attempt
 * does not pay and is not made to measure its cost.
 */
bool econ_may_compact(struct econ_compaction *it, struct compact_control *cc,
		      struct zone *zone)
{
	if (it->is_ours) {
		it->began_ns = task_sched_runtime(current);
		if (!econ_may_try(it, cc, zone)) {
			econ_ledger_withdraw(&ledgers[it->nid], econ_unpaid_ns(it));
			return false;
		}
	}
	econ_watch_begin(&it->watch);
	return true;
}

/**
 * econ_compaction_end - pay for a compaction and count its result
 * @it: state of the run
 * @is_made: whether a block was made
 *
 * Context: kcompactd; takes a spinlock.
 */
void econ_compaction_end(struct econ_compaction *it, bool is_made)
{
	struct econ_node_ledger *ledger = &ledgers[it->nid];

	econ_compacted(&it->watch, it->order, is_made);
	if (!it->is_ours)
		return;
	it->is_over = is_made;
	if (!is_made)
		ledger->is_thorough = !ledger->is_thorough;
	econ_pay(it, 0, is_made, !is_made);
}

/**
 * econ_forget_ledgers - clear all ledgers when econ is switched off
 *
 * Context: process; takes a spinlock.
 */
void econ_forget_ledgers(void)
{
	int nid;

	guard(spinlock)(&pots_lock);
	for_each_node(nid) {
		econ_pot_forget(&ledgers[nid].refused);
		econ_pot_forget(&ledgers[nid].credit);
	}
}

/**
 * econ_show_ledgers - print a line for each node
 * @buf: a page
 *
 * Context: process; takes a spinlock.
 * Return: number of bytes written.
 */
int econ_show_ledgers(char *buf)
{
	int length = 0, nid;

	for_each_node_state(nid, N_MEMORY) {
		struct econ_node_ledger *it = &ledgers[nid];
		struct econ_action action = econ_attempt_action(it, 0);

		length += sysfs_emit_at(buf, length,
					"node %d faults %lld refused_ns %llu blocks_made %lld blocks_failed %lld pages_moved %lld credit_ns %llu\n",
					nid, atomic64_read(&it->faults),
					action.refused_ns,
					atomic64_read(&it->made),
					atomic64_read(&it->failed),
					atomic64_read(&it->moved),
					action.credit_ns);
	}
	return length;
}
