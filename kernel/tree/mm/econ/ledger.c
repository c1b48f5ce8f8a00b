// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is lost for want of a block, and compaction that is paid from it.
 *
 * A fault waits for no block. Where one would have paid and there was none, what
 * it would have saved goes to the node's ledger. As soon as that exceeds what a
 * block costs, kcompactd is asked for one. Each attempt is paid from the ledger,
 * whether there is a block then or not, at its price or, if it took longer, at
 * what it took: nothing is spent that was not lost before, and where compaction
 * fails again and again it ends by itself.
 *
 * What stock code asks of kcompactd is done as ever and paid from nothing.
 */

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/cputime.h>
#include <linux/sysfs.h>
#include <linux/topology.h>
/* It knows what it needs from those before. */
#include <linux/compaction.h>

#include "internal.h"

/**
 * struct node_ledger - what a node lost, and what was done about it
 * @faults: how many faults lacked a block that would have paid
 * @refused_ns: what that has lost, less what was spent
 * @made: blocks that kcompactd put together for it
 * @failed: attempts of which there was none
 * @is_asked: kcompactd was asked for a block, and has not begun
 */
struct node_ledger {
	atomic64_t faults;
	atomic64_t refused_ns;
	atomic64_t made;
	atomic64_t failed;
	bool is_asked;
};

static struct node_ledger ledgers[MAX_NUMNODES];

static struct econ_action attempt(const struct node_ledger *ledger)
{
	return (struct econ_action){
		.kind = ECON_COMPACT,
		.order = HPAGE_PMD_ORDER,
		.refused_ns = atomic64_read(&ledger->refused_ns),
	};
}

static struct econ_estimate estimate(const struct node_ledger *ledger)
{
	struct econ_action action = attempt(ledger);

	return econ_estimate(&action, &econ_prices);
}

/* More than it can hold stays at the largest. */
static void deposit(struct node_ledger *ledger, u64 ns)
{
	s64 old = atomic64_read(&ledger->refused_ns);

	while (!atomic64_try_cmpxchg(&ledger->refused_ns, &old,
				     econ_sum(old, ns)))
		;
}

static void withdraw(struct node_ledger *ledger, u64 ns)
{
	s64 old = atomic64_read(&ledger->refused_ns);

	while (!atomic64_try_cmpxchg(&ledger->refused_ns, &old,
				     (u64)old > ns ? (u64)old - ns : 0))
		;
}

/* Whether an attempt pays. This is a decision, and counted. */
static bool decide(const struct node_ledger *ledger, bool acts)
{
	struct econ_action action = attempt(ledger);

	return econ_decide(&action, 0, NULL, acts);
}

static void ask_kcompactd(int nid)
{
	pg_data_t *pgdat = NODE_DATA(nid);

	/* What stock code has asked for already is done for nothing. */
	if (READ_ONCE(pgdat->kcompactd_max_order) < HPAGE_PMD_ORDER)
		WRITE_ONCE(ledgers[nid].is_asked, true);
	wakeup_kcompactd(pgdat, HPAGE_PMD_ORDER, gfp_zone(GFP_TRANSHUGE_LIGHT));
}

/**
 * econ_lack_block - a fault stays small, and there is no block
 * @action: what was decided about
 * @acts: whether anything is done, or only observed
 */
void econ_lack_block(const struct econ_action *action, bool acts)
{
	int nid = numa_mem_id();
	struct node_ledger *ledger = &ledgers[nid];
	struct econ_action with = *action;
	struct econ_estimate it;

	with.supply = ECON_FREE_BLOCK;
	with.block_ns = 0;
	it = econ_estimate(&with, &econ_prices);
	if (!econ_pays(it))
		return;
	atomic64_inc(&ledger->faults);
	deposit(ledger, it.benefit - it.cost);
	it = estimate(ledger);
	if (!econ_pays(it))
		return;
	if (acts)
		ask_kcompactd(nid);
	else if (decide(ledger, false))
		withdraw(ledger, it.cost);
}

void econ_compaction_begin(struct econ_compaction *it, int nid,
			   unsigned int order)
{
	it->nid = nid;
	it->order = order;
	it->is_ours = xchg(&ledgers[nid].is_asked, false) &&
		      order == HPAGE_PMD_ORDER &&
		      READ_ONCE(econ_mode) != ECON_OFF;
}

bool econ_may_compact(struct econ_compaction *it)
{
	if (it->is_ours && !decide(&ledgers[it->nid], true))
		return false;
	it->began_ns = it->is_ours ? task_sched_runtime(current) : 0;
	econ_watch_begin(&it->watch);
	return true;
}

void econ_compaction_end(struct econ_compaction *it, bool is_made)
{
	struct node_ledger *ledger = &ledgers[it->nid];
	u64 took_ns;

	if (is_made)
		econ_compacted(&it->watch, it->order);
	if (!it->is_ours)
		return;
	took_ns = task_sched_runtime(current) - it->began_ns;
	withdraw(ledger, max(estimate(ledger).cost, took_ns));
	atomic64_inc(is_made ? &ledger->made : &ledger->failed);
}

/**
 * econ_show_ledgers - a line for each node
 * @buf: a page
 *
 * Return: the bytes of it that are used.
 */
int econ_show_ledgers(char *buf)
{
	int length = 0, nid;

	for_each_node_state(nid, N_MEMORY) {
		struct node_ledger *it = &ledgers[nid];

		length += sysfs_emit_at(buf, length,
					"node %d faults %lld refused_ns %llu blocks_made %lld blocks_failed %lld\n",
					nid, atomic64_read(&it->faults),
					(u64)atomic64_read(&it->refused_ns),
					atomic64_read(&it->made),
					atomic64_read(&it->failed));
	}
	return length;
}
