// SPDX-License-Identifier: GPL-2.0-only
/*
 * The prezero of blocks that are zeroed ahead.
 *
 * Each node has a thread that zeroes free blocks while a CPU of it has nothing else
 * to do, and keeps them for faults that econ lets be huge. What is kept is
 * allocated: a folio with one reference, of which only the node's list knows and
 * whose private word is the prezero's, until a fault has seen that it need not clear
 * it. Nothing of the allocator has to know what is in a free page.
 *
 * Whoever needs memory gets all that is kept before he has to reclaim anything,
 * and the thread takes blocks only above the high watermark. It has no timer unless
 * there is something to do that cannot be done yet: faults wake it.
 *
 * What is zeroed for processes is paid with CPU time that they have used themselves,
 * block by block: a process that may not run, as in a cgroup with a cpu.max, cannot
 * have its clearing done in the time of others.
 *
 * While econ only observes nothing is kept. A number stands for the blocks that
 * would have been there; it rises and falls as they would have, as if zeroing took
 * no time.
 *
 * prezero->lock is taken with interrupts off, as memory may be given back in them,
 * and nothing else is locked under it. It is not held while a block is zeroed: who
 * must not find one in work waits for prezero->rested.
 */

#define pr_fmt(fmt) "econ: " fmt

#include <linux/cacheinfo.h>
#include <linux/cpumask.h>
#include <linux/freezer.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kmsan-checks.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/page-isolation.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <linux/vmstat.h>
#include <linux/wait.h>
#include <uapi/linux/sched/types.h>

#include <trace/events/econ.h>

#include "../internal.h"
#include "internal.h"
#include "pot.h"

/* Movable, so that they come from where programs' memory is. */
#define BLOCK_GFP	((GFP_USER | __GFP_MOVABLE | __GFP_COMP |	\
			  __GFP_THISNODE | __GFP_NOWARN |		\
			  __GFP_NOMEMALLOC) & ~__GFP_RECLAIM)

/* After so long what was wanted counts half. */
#define HALF_LIFE	(16 * HZ)
/* How long until the thread looks again whether a CPU is idle, or memory free. */
#define WAIT_FOR_CPU	(HZ / 10)
#define WAIT_FOR_MEMORY	HZ
/* A node keeps so much of the memory that an average node has. */
#define SHARE		64

/**
 * struct econ_prezero - what a node keeps
 * @lock: of all that follows, but for the waits
 * @blocks: what is kept, by zone
 * @kept: how many that are
 * @supposed: how many would be, while econ only observes
 * @wanted: how many faults could have used of late
 * @faded: until when @wanted is halved, in jiffies
 * @credit: what may still be spent on zeroing, by the time that processes have run
 *	which wanted a block
 * @blocked: while it is not 0 nothing is kept
 * @is_at_work: a block is being zeroed, and in no list yet
 * @nid: the node
 * @thread: who zeroes
 * @work: for there is something to do
 * @rested: for no block is being zeroed any more
 */
struct econ_prezero {
	spinlock_t lock; /* of all that follows, but for the waits */
	struct list_head blocks[MAX_NR_ZONES];
	unsigned long kept;
	unsigned long supposed;
	unsigned long wanted;
	unsigned long faded;
	struct econ_pot credit;
	unsigned int blocked;
	bool is_at_work;
	int nid;
	struct task_struct *thread;
	wait_queue_head_t work;
	wait_queue_head_t rested;
};

unsigned long econ_zeroed_limit;
atomic64_t econ_zeroed_counts[ECON_ZEROED_COUNTS];

/* For each node that there may be; NULL until they are made. */
static struct econ_prezero *econ_prezero_nodes[MAX_NUMNODES];

static struct econ_prezero *econ_prezero_of_node(int nid)
{
	return nid == NUMA_NO_NODE ? NULL : READ_ONCE(econ_prezero_nodes[nid]);
}

static struct econ_prezero *econ_prezero_of_zone(struct zone *zone)
{
	return econ_prezero_of_node(zone_to_nid(zone));
}

static void econ_prezero_count(enum econ_zeroed_count what)
{
	atomic64_inc(&econ_zeroed_counts[what]);
}

static void econ_prezero_trace(const struct econ_prezero *prezero, enum econ_zeroed_count what)
{
	trace_econ_zeroed(prezero->nid, econ_zeroed_names[what],
			  READ_ONCE(prezero->kept), READ_ONCE(prezero->supposed));
}

/* What there is */

static unsigned long econ_prezero_stock(const struct econ_prezero *prezero)
{
	return READ_ONCE(prezero->kept) + READ_ONCE(prezero->supposed);
}

/* One more may be kept, or supposed. */
static bool econ_prezero_may_add(const struct econ_prezero *prezero, enum econ_mode mode)
{
	lockdep_assert_held(&prezero->lock);
	return READ_ONCE(econ_mode) == mode && !prezero->blocked &&
	       econ_prezero_stock(prezero) < READ_ONCE(econ_zeroed_limit);
}

/* Return: false if it may not be kept any more. */
static bool econ_prezero_add(struct econ_prezero *prezero, struct folio *folio,
			     enum econ_zeroed_count what)
{
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		if (!econ_prezero_may_add(prezero, ECON_ON))
			return false;
		folio->private = prezero;
		list_add(&folio->lru, &prezero->blocks[folio_zonenum(folio)]);
		WRITE_ONCE(prezero->kept, prezero->kept + 1);
		econ_prezero_count(what);
	}
	econ_prezero_trace(prezero, what);
	return true;
}

static struct folio *econ_prezero_remove(struct econ_prezero *prezero, unsigned int zone,
					 enum econ_zeroed_count what)
{
	struct folio *folio;

	lockdep_assert_held(&prezero->lock);
	folio = list_first_entry_or_null(&prezero->blocks[zone], struct folio,
					 lru);
	if (folio) {
		list_del(&folio->lru);
		WRITE_ONCE(prezero->kept, prezero->kept - 1);
		econ_prezero_count(what);
	}
	return folio;
}

static void econ_prezero_free_block(struct folio *folio)
{
	folio->private = NULL;
	folio_put(folio);
}

/* Gives a block of a zone back to the allocator. Return: false if none is kept. */
static bool econ_prezero_give_back(struct econ_prezero *prezero, unsigned int zone)
{
	struct folio *folio;

	if (!READ_ONCE(prezero->kept))
		return false;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		folio = econ_prezero_remove(prezero, zone, ECON_ZEROED_GIVEN_BACK);
	if (!folio)
		return false;
	econ_prezero_trace(prezero, ECON_ZEROED_GIVEN_BACK);
	econ_prezero_free_block(folio);
	return true;
}

/* They would have been given back. */
static void econ_prezero_suppose_none(struct econ_prezero *prezero)
{
	guard(spinlock_irqsave)(&prezero->lock);
	WRITE_ONCE(prezero->supposed, 0);
}

static bool econ_prezero_give_back_any(struct econ_prezero *prezero)
{
	unsigned int zone = MAX_NR_ZONES;

	while (zone--)
		if (econ_prezero_give_back(prezero, zone))
			return true;
	return false;
}

static void econ_prezero_shrink_to(struct econ_prezero *prezero, unsigned long limit)
{
	while (READ_ONCE(prezero->kept) > limit && econ_prezero_give_back_any(prezero))
		;
}

/*
 * Waits until no block is in work. The thread finds out from page to page that it
 * is not wanted any more, if only it runs.
 */
static void econ_prezero_wait_idle(struct econ_prezero *prezero)
{
	struct task_struct *thread = READ_ONCE(prezero->thread);

	if (thread && READ_ONCE(prezero->is_at_work))
		sched_set_normal(thread, 0);
	wait_event(prezero->rested, !READ_ONCE(prezero->is_at_work));
}

/* What was wanted of late */

static void econ_prezero_fade(struct econ_prezero *prezero)
{
	unsigned long lives = (jiffies - prezero->faded) / HALF_LIFE;

	lockdep_assert_held(&prezero->lock);
	if (!lives)
		return;
	prezero->wanted >>= min(lives, BITS_PER_LONG - 1UL);
	prezero->faded += lives * HALF_LIFE;
}

static bool econ_prezero_has_work(struct econ_prezero *prezero)
{
	enum econ_mode mode = READ_ONCE(econ_mode);

	guard(spinlock_irqsave)(&prezero->lock);
	econ_prezero_fade(prezero);
	return mode != ECON_OFF && econ_prezero_may_add(prezero, mode) &&
	       prezero->wanted > econ_prezero_stock(prezero) &&
	       econ_pot_read(&prezero->credit, ktime_get_ns()) >=
	       READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]);
}

/* A block was zeroed, or would have been. */
static void econ_prezero_pay(struct econ_prezero *prezero)
{
	lockdep_assert_held(&prezero->lock);
	econ_pot_take(&prezero->credit,
		      READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]),
		      ktime_get_ns());
}

static u64 econ_prezero_node_credit(struct econ_prezero *prezero)
{
	guard(spinlock_irqsave)(&prezero->lock);
	return econ_pot_read(&prezero->credit, ktime_get_ns());
}

/**
 * econ_prezero_want - a fault could use a block that was zeroed ahead
 * @nid: of which node
 * @earned_ns: what its process may spend on zeroing in addition
 *
 * Return: how many there are, or would be.
 */
unsigned long econ_prezero_want(int nid, u64 earned_ns)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);
	unsigned long stock;

	if (!prezero)
		return 0;
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		econ_prezero_fade(prezero);
		econ_pot_add(&prezero->credit, earned_ns, ktime_get_ns());
		prezero->wanted++;
		stock = econ_prezero_stock(prezero);
	}
	if (!stock)
		econ_prezero_count(ECON_ZEROED_MISSED);
	if (wq_has_sleeper(&prezero->work) && econ_prezero_has_work(prezero))
		wake_up(&prezero->work);
	return stock;
}

/**
 * econ_prezero_suppose_taken - a fault would have taken a block, but is only observed
 * @nid: of which node
 */
void econ_prezero_suppose_taken(int nid)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);

	if (!prezero)
		return;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		if (prezero->supposed)
			WRITE_ONCE(prezero->supposed, prezero->supposed - 1);
	econ_prezero_count(ECON_ZEROED_WOULD_HIT);
	econ_prezero_trace(prezero, ECON_ZEROED_WOULD_HIT);
	econ_count_ns(&econ_zeroed_counts[ECON_ZEROED_WOULD_SAVE_NS],
		      READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]));
}

/**
 * econ_prezero_take_block - a block for a fault
 * @nid: of which node
 *
 * Return: the block, as vma_alloc_folio() gives it but for its mark, or NULL.
 */
struct folio *econ_prezero_take_block(int nid)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);
	struct folio *folio = NULL;
	unsigned int zone = MAX_NR_ZONES;

	if (!prezero || !READ_ONCE(prezero->kept))
		return NULL;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		while (!folio && zone--)
			folio = econ_prezero_remove(prezero, zone, ECON_ZEROED_TAKEN);
	if (folio)
		econ_prezero_trace(prezero, ECON_ZEROED_TAKEN);
	return folio;
}

void __econ_was_zeroed(struct folio *folio)
{
	folio->private = NULL;
	econ_fault_saw(ECON_SAW_ZEROED);
}

/* Nobody has written to it. */
void __econ_put_block(struct folio *folio)
{
	struct econ_prezero *prezero = folio->private;

	if (!econ_prezero_add(prezero, folio, ECON_ZEROED_PUT_BACK))
		econ_prezero_free_block(folio);
}

/* Zeroing */

/* So many blocks could go, and its zone would still be above the high watermark. */
static bool econ_zone_has_spare(struct zone *zone, unsigned long blocks)
{
	return managed_zone(zone) &&
	       zone_watermark_ok(zone, blocks ? HPAGE_PMD_ORDER : 0,
				 high_wmark_pages(zone) +
				 blocks * HPAGE_PMD_NR,
				 gfp_zone(BLOCK_GFP), 0);
}

static bool econ_prezero_has_room(const struct econ_prezero *prezero, unsigned long blocks)
{
	struct zone *zones = NODE_DATA(prezero->nid)->node_zones;
	int i;

	for (i = gfp_zone(BLOCK_GFP); i >= 0; i--)
		if (econ_zone_has_spare(&zones[i], blocks))
			return true;
	return false;
}

/* Whether it pays, which is a decision like any other. */
static bool econ_prezero_pays(struct econ_prezero *prezero)
{
	struct econ_action action = {
		.kind = ECON_ZERO,
		.order = HPAGE_PMD_ORDER,
		.supply = ECON_FREE_BLOCK,
		.wanted = READ_ONCE(prezero->wanted),
		.stock = econ_prezero_stock(prezero),
		.credit_ns = econ_prezero_node_credit(prezero),
		.is_idle = single_task_running(),
		/* The last one is left to who can do with one that is not zeroed. */
		.block_ns = econ_free_blocks(prezero->nid) > 1 ? 0 :
							       ECON_NEVER_NS,
	};

	return econ_decide(&action, 0, NULL, READ_ONCE(econ_mode) == ECON_ON);
}

static struct folio *econ_prezero_alloc_block(struct econ_prezero *prezero)
{
	struct folio *folio = __folio_alloc_node(BLOCK_GFP, HPAGE_PMD_ORDER,
						 prezero->nid);

	if (!folio)
		return NULL;
	if (econ_zone_has_spare(folio_zone(folio), 0) &&
	    !is_migrate_cma_page(&folio->page) &&
	    !is_migrate_isolate_page(&folio->page))
		return folio;
	folio_put(folio);
	return NULL;
}

/*
 * Past the caches where the processor can do that: what will be used later would
 * push out what is used now.
 */
static void econ_prezero_clear_page(struct page *page)
{
	if (IS_ENABLED(CONFIG_X86_64)) {
		kmsan_unpoison_memory(page_address(page), PAGE_SIZE);
		memcpy_flushcache(page_address(page),
				  page_address(ZERO_PAGE(0)), PAGE_SIZE);
	} else {
		clear_highpage(page);
	}
}

/* Return: false if it is not wanted any more. */
static bool econ_prezero_clear_block(struct econ_prezero *prezero, struct folio *folio)
{
	unsigned int i;

	for (i = 0; i < HPAGE_PMD_NR; i++) {
		if (READ_ONCE(prezero->blocked) ||
		    READ_ONCE(econ_mode) != ECON_ON ||
		    READ_ONCE(prezero->kept) >= READ_ONCE(econ_zeroed_limit))
			return false;
		econ_prezero_clear_page(folio_page(folio, i));
		cond_resched();
	}
	/* Such stores are not ordered by themselves. */
	wmb();
	return true;
}

static bool econ_prezero_begin_block(struct econ_prezero *prezero)
{
	guard(spinlock_irqsave)(&prezero->lock);
	WRITE_ONCE(prezero->is_at_work, econ_prezero_may_add(prezero, ECON_ON));
	return prezero->is_at_work;
}

static void econ_prezero_end_block(struct econ_prezero *prezero, bool has_zeroed)
{
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		if (has_zeroed)
			econ_prezero_pay(prezero);
		WRITE_ONCE(prezero->is_at_work, false);
	}
	wake_up_all(&prezero->rested);
}

static void econ_prezero_abandon(struct econ_prezero *prezero, struct folio *folio)
{
	econ_prezero_count(ECON_ZEROED_ABANDONED);
	econ_prezero_trace(prezero, ECON_ZEROED_ABANDONED);
	folio_put(folio);
}

/* Return: false if there was no block to make one of. */
static bool econ_prezero_make_block(struct econ_prezero *prezero)
{
	struct folio *folio;

	if (!econ_prezero_begin_block(prezero))
		return true;
	folio = econ_prezero_alloc_block(prezero);
	if (folio && !(econ_prezero_clear_block(prezero, folio) &&
		       econ_zone_has_spare(folio_zone(folio), 0) &&
		       econ_prezero_add(prezero, folio, ECON_ZEROED_MADE)))
		econ_prezero_abandon(prezero, folio);
	econ_prezero_end_block(prezero, folio);
	return folio;
}

static bool econ_prezero_suppose_block(struct econ_prezero *prezero)
{
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		if (!econ_prezero_may_add(prezero, ECON_OBSERVE) ||
		    prezero->supposed >= econ_free_blocks(prezero->nid) ||
		    !econ_prezero_has_room(prezero, prezero->supposed + 1))
			return false;
		WRITE_ONCE(prezero->supposed, prezero->supposed + 1);
		econ_prezero_pay(prezero);
	}
	econ_prezero_count(ECON_ZEROED_WOULD_MAKE);
	econ_prezero_trace(prezero, ECON_ZEROED_WOULD_MAKE);
	return true;
}

/* Return: false if there is no memory for it. */
static bool econ_prezero_add_block(struct econ_prezero *prezero)
{
	if (READ_ONCE(econ_mode) == ECON_OBSERVE)
		return econ_prezero_suppose_block(prezero);
	return econ_prezero_has_room(prezero, 1) && econ_prezero_make_block(prezero);
}

/* Where the node's memory is near, and only if nobody else wants to run there. */
static void econ_prezero_set_affinity(struct econ_prezero *prezero)
{
	static const struct sched_param param;
	const struct cpumask *cpus = cpumask_of_node(prezero->nid);

	if (cpumask_intersects(cpus, cpu_online_mask))
		set_cpus_allowed_ptr(current, cpus);
	if (current->policy != SCHED_IDLE)
		sched_setscheduler_nocheck(current, SCHED_IDLE, &param);
}

static int econ_prezero_thread(void *data)
{
	struct econ_prezero *prezero = data;

	set_freezable();
	while (!kthread_should_stop()) {
		wait_event_freezable(prezero->work, econ_prezero_has_work(prezero));
		try_to_freeze();
		econ_prezero_set_affinity(prezero);
		if (econ_prezero_pays(prezero) && econ_prezero_add_block(prezero))
			cond_resched();
		else
			schedule_timeout_idle(single_task_running() ?
					      WAIT_FOR_MEMORY : WAIT_FOR_CPU);
	}
	return 0;
}

/* Who needs memory */

/* What is given back may stay in the CPU's own lists, where no watermark sees it. */
static void econ_drain_local_pages(struct zone *zone)
{
	guard(preempt)();
	drain_local_pages(zone);
}

/* Where memory is short they would have been given back. */
static void econ_prezero_check_supposed(struct econ_prezero *prezero)
{
	unsigned long supposed = READ_ONCE(prezero->supposed);

	if (supposed && !econ_prezero_has_room(prezero, supposed))
		econ_prezero_suppose_none(prezero);
}

bool __econ_refill(struct zone *zone, unsigned int order, unsigned long mark,
		   int highest_zoneidx, unsigned int alloc_flags)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	/* Between the low mark and the min mark kswapd does it. */
	if (!prezero || current == READ_ONCE(prezero->thread) ||
	    (alloc_flags & ALLOC_WMARK_MASK) != ALLOC_WMARK_MIN)
		return false;
	econ_prezero_check_supposed(prezero);
	while (econ_prezero_give_back(prezero, zone_idx(zone))) {
		if (in_task())
			econ_drain_local_pages(zone);
		if (zone_watermark_ok(zone, order, mark, highest_zoneidx,
				      alloc_flags))
			return true;
	}
	return false;
}

void __econ_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx)
{
	struct econ_prezero *prezero = econ_prezero_of_node(pgdat->node_id);
	int i;

	if (!prezero)
		return;
	econ_prezero_check_supposed(prezero);
	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = &pgdat->node_zones[i];

		while (managed_zone(zone) &&
		       !zone_watermark_ok(zone, order, high_wmark_pages(zone),
					  highest_zoneidx, 0) &&
		       econ_prezero_give_back(prezero, i))
			econ_drain_local_pages(zone);
	}
}

/**
 * econ_drain_all - gives back all that is kept, before memory is called short
 *
 * May sleep. No branch decides at the call whether there may be any: with it the
 * compiler would lay out the allocator otherwise, and each page costs more.
 */
void econ_drain_all(void)
{
	bool found = false;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		struct econ_prezero *prezero = econ_prezero_of_node(nid);

		if (!prezero)
			continue;
		econ_prezero_check_supposed(prezero);
		while (econ_prezero_give_back_any(prezero))
			found = true;
	}
	if (found)
		drain_all_pages(NULL);
}

unsigned long econ_zeroed_blocks(void)
{
	unsigned long blocks = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		const struct econ_prezero *prezero = econ_prezero_of_node(nid);

		if (prezero)
			blocks += READ_ONCE(prezero->kept);
	}
	return blocks;
}

/**
 * econ_prezero_credit - what may still be spent on zeroing, by all nodes
 *
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

static unsigned long econ_prezero_count_pages(struct shrinker *shrinker,
					      struct shrink_control *control)
{
	const struct econ_prezero *prezero = econ_prezero_of_node(control->nid);
	unsigned long blocks = prezero ? READ_ONCE(prezero->kept) : 0;

	return blocks ? blocks * HPAGE_PMD_NR : SHRINK_EMPTY;
}

static unsigned long econ_prezero_scan_pages(struct shrinker *shrinker,
					     struct shrink_control *control)
{
	struct econ_prezero *prezero = econ_prezero_of_node(control->nid);
	unsigned long pages = 0;

	while (prezero && pages < control->nr_to_scan && econ_prezero_give_back_any(prezero))
		pages += HPAGE_PMD_NR;
	control->nr_scanned = pages;
	return pages ?: SHRINK_STOP;
}

/* Isolation */

void econ_block_zone(struct zone *zone)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	if (!prezero)
		return;
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		WRITE_ONCE(prezero->blocked, prezero->blocked + 1);
		WRITE_ONCE(prezero->supposed, 0);
	}
	econ_prezero_shrink_to(prezero, 0);
	econ_prezero_wait_idle(prezero);
}

void econ_unblock_zone(struct zone *zone)
{
	struct econ_prezero *prezero = econ_prezero_of_zone(zone);

	if (!prezero)
		return;
	guard(spinlock_irqsave)(&prezero->lock);
	WRITE_ONCE(prezero->blocked, prezero->blocked - 1);
}

void __econ_drain_zone(struct zone *zone)
{
	econ_block_zone(zone);
	econ_unblock_zone(zone);
	drain_all_pages(zone);
}

/* Threads */

static void econ_prezero_start_thread(struct econ_prezero *prezero)
{
	struct task_struct *thread;

	if (prezero->thread)
		return;
	thread = kthread_create_on_node(econ_prezero_thread, prezero, prezero->nid, "prezero%d",
					prezero->nid);
	if (IS_ERR(thread)) {
		pr_warn("nobody zeroes blocks of node %d: %pe\n", prezero->nid,
			thread);
		return;
	}
	WRITE_ONCE(prezero->thread, thread);
	wake_up_process(thread);
}

/* For each node that has memory by now. */
static void econ_prezero_start_threads(void)
{
	static DEFINE_MUTEX(starting);
	int nid;

	guard(mutex)(&starting);
	for_each_node_state(nid, N_MEMORY)
		if (econ_prezero_of_node(nid))
			econ_prezero_start_thread(econ_prezero_of_node(nid));
}

/* As the mode and the limit want it. */
static void econ_prezero_adjust(struct econ_prezero *prezero)
{
	unsigned long limit = READ_ONCE(econ_zeroed_limit);

	/* Who keeps or begins a block after this knows both. */
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		if (econ_mode != ECON_OBSERVE || prezero->supposed > limit)
			WRITE_ONCE(prezero->supposed, 0);
		if (econ_mode == ECON_OFF)
			econ_pot_forget(&prezero->credit);
	}
	if (econ_mode != ECON_ON)
		limit = 0;
	econ_prezero_shrink_to(prezero, limit);
	if (READ_ONCE(prezero->kept) >= limit)
		econ_prezero_wait_idle(prezero);
	wake_up(&prezero->work);
}

/**
 * econ_prezero_adjust_all - the mode or the limit was changed
 *
 * When it returns no more is kept than they allow, nor being zeroed.
 */
void econ_prezero_adjust_all(void)
{
	int nid;

	if (econ_mode != ECON_OFF)
		econ_prezero_start_threads();
	for_each_node(nid)
		if (econ_prezero_of_node(nid))
			econ_prezero_adjust(econ_prezero_of_node(nid));
}

static int econ_prezero_memory_notify(struct notifier_block *block, unsigned long action,
				      void *arg)
{
	if (action == MEM_ONLINE && READ_ONCE(econ_mode) != ECON_OFF)
		econ_prezero_start_threads();
	return NOTIFY_OK;
}

static void __init econ_prezero_alloc_node(int nid)
{
	struct econ_prezero *prezero = kzalloc_node(sizeof(*prezero), GFP_KERNEL, nid);
	int i;

	/* Without one nothing of the node is kept. */
	if (!prezero)
		return;
	spin_lock_init(&prezero->lock);
	for (i = 0; i < MAX_NR_ZONES; i++)
		INIT_LIST_HEAD(&prezero->blocks[i]);
	init_waitqueue_head(&prezero->work);
	init_waitqueue_head(&prezero->rested);
	prezero->faded = jiffies;
	prezero->nid = nid;
	econ_prezero_nodes[nid] = prezero;
}

static int __init econ_prezero_init(void)
{
	struct shrinker *shrinker;
	int nid;

	/* There a page has to be cleared by the address that it is used at. */
	if (cpu_dcache_is_aliasing())
		return 0;
	shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "econ-zeroed-blocks");
	if (!shrinker)
		return -ENOMEM;
	/* They cost no more than idle time. */
	shrinker->seeks = 0;
	shrinker->batch = HPAGE_PMD_NR;
	shrinker->count_objects = econ_prezero_count_pages;
	shrinker->scan_objects = econ_prezero_scan_pages;
	for_each_node(nid)
		econ_prezero_alloc_node(nid);
	econ_zeroed_limit = max(totalram_pages() / SHARE / HPAGE_PMD_NR /
				num_node_state(N_MEMORY), 1UL);
	hotplug_memory_notifier(econ_prezero_memory_notify, DEFAULT_CALLBACK_PRI);
	shrinker_register(shrinker);
	return 0;
}
core_initcall(econ_prezero_init);
