// SPDX-License-Identifier: GPL-2.0-only
/*
 * Benefit that is lost for lack of a block, and compaction that it pays for.
 *
 * A fault waits for no block. Where a block would have paid and there was none, its
 * benefit is added to the ledger of the node, and so is the benefit of the fault that
 * takes the last block: the next one would lose as much. As soon as the ledger exceeds
 * the cost of a block, kcompactd is asked for one. Each attempt is paid from the ledger,
 * successful or not, with the larger of its cost and its duration: no more is spent
 * than was lost or gained before, and repeated failures of compaction end by themselves.
 * One in many attempts that do not pay is made nevertheless, to measure its cost, and paid
 * with its duration.
 *
 * An attempt is the compaction of one zone. It ends with one block, and zones from which
 * no fault could take a huge page are left out. It is done as in a fault, which is the
 * cheapest way: only blocks of movable pages, and each only as far as its pages can be
 * moved at once. After a failure it is thorough, like other work of kcompactd.
 *
 * The loss is only what a profile claims, and any user may write one. So an attempt is
 * also paid from the CPU time of processes that lacked a block: for each 8 ns of their
 * time kcompactd may work 1 ns. No work is done for a process that may not run, as in a
 * cgroup with a cpu.max. (Linux cannot charge the time of a kernel thread to the cgroup
 * of another task: bandwidth is taken from the run queue of the running task.)
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
 * @failed: number of failed attempts
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
	bool is_asked;
	bool is_explored;
	bool is_thorough;
};

static struct econ_node_ledger ledgers[MAX_NUMNODES];
static DEFINE_SPINLOCK(pots_lock); /* the pots of all ledgers */

static struct econ_action econ_attempt_action(struct econ_node_ledger *ledger)
{
	u64 now = ktime_get_ns();

	guard(spinlock)(&pots_lock);
	return (struct econ_action){
		.kind = ECON_COMPACT,
		.order = HPAGE_PMD_ORDER,
		.refused_ns = econ_pot_read(&ledger->refused, now),
		.credit_ns = econ_pot_read(&ledger->credit, now),
	};
}

/* Whether to ask kcompactd, which decides once more. */
static bool econ_wants_attempt(struct econ_node_ledger *ledger, bool acts)
{
	struct econ_action action = econ_attempt_action(ledger);
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
	struct econ_action action = econ_attempt_action(ledger);

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
 * @earned_ns: CPU time of the process since the last call
 * @action: the action
 * @acts: whether to ask kcompactd, or only observe
 *
 * Context: a page fault; takes a spinlock, may wake kcompactd.
 */
void econ_want_block(int nid, u64 earned_ns, const struct econ_action *action,
		     bool acts)
{
	struct econ_node_ledger *ledger = &ledgers[nid];
	struct econ_action with = *action;
	struct econ_estimate it;

	with.supply = ECON_FREE_BLOCK;
	with.block_ns = 0;
	it = econ_estimate(&with, &econ_costs);
	if (!econ_pays(it))
		return;
	if (action->supply == ECON_NO_BLOCK)
		atomic64_inc(&ledger->faults);
	econ_ledger_deposit(ledger, it.benefit - it.cost, earned_ns / COMPACT_SHARE);
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

/* Whether the ledger pays for a zone. */
static bool econ_pays_for_zone(struct econ_compaction *it, struct zone *zone)
{
	if (it->is_over ||
	    !compaction_suitable(zone, it->order, gfp_zone(GFP_TRANSHUGE_LIGHT)))
		return false;
	it->is_over = !econ_decide_attempt(&ledgers[it->nid], true) &&
		      !it->is_explored;
	return !it->is_over;
}

/**
 * econ_may_compact - whether kcompactd may compact a zone
 * @it: state of the run
 * @cc: how to compact; set if the ledger pays
 * @zone: the zone
 *
 * Context: kcompactd; takes a spinlock.
 * Return: false if the ledger would have to pay, and does not: a block was made already,
 * too little of @zone is free to compact it or to let a fault take a block, or the attempt
 * does not pay and is not made to measure its cost.
 */
bool econ_may_compact(struct econ_compaction *it, struct compact_control *cc,
		      struct zone *zone)
{
	if (it->is_ours && !econ_pays_for_zone(it, zone))
		return false;
	if (it->is_ours && !ledgers[it->nid].is_thorough) {
		cc->mode = MIGRATE_ASYNC;
		cc->direct_compaction = true;
	}
	it->began_ns = it->is_ours ? task_sched_runtime(current) : 0;
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
	u64 cost_ns, took_ns;

	econ_compacted(&it->watch, it->order, is_made);
	if (!it->is_ours)
		return;
	it->is_over = is_made;
	if (!is_made)
		ledger->is_thorough = !ledger->is_thorough;
	took_ns = task_sched_runtime(current) - it->began_ns;
	/* The attempt may have been a sample of it. */
	cost_ns = READ_ONCE(econ_costs.ns[ECON_COMPACT_BLOCK]);
	/* The cost is in doubt if the attempt was made to measure it. */
	econ_ledger_withdraw(ledger, it->is_explored ? took_ns : max(took_ns, cost_ns));
	atomic64_inc(is_made ? &ledger->made : &ledger->failed);
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
		struct econ_action action = econ_attempt_action(it);

		length += sysfs_emit_at(buf, length,
					"node %d faults %lld refused_ns %llu blocks_made %lld blocks_failed %lld credit_ns %llu\n",
					nid, atomic64_read(&it->faults),
					action.refused_ns,
					atomic64_read(&it->made),
					atomic64_read(&it->failed),
					action.credit_ns);
	}
	return length;
}
