// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prezero threads: blocks that are zeroed ahead.
 *
 * Each node has a thread that zeroes free blocks while a CPU of the node is idle, and
 * keeps them for faults that econ allows to be huge. A kept block is allocated: a
 * folio with one reference, on the list of the node only. Its private field points to
 * the struct econ_prezero until a fault has seen that it need not clear the block. The
 * allocator need not know the content of free pages.
 *
 * An allocation that lacks memory gets all kept blocks before it reclaims, and the
 * thread takes blocks only above the high watermark. It has no timer unless there is
 * work that cannot be done yet: faults wake it.
 *
 * Processes pay for zeroing with CPU time that they used, block by block: a process
 * that may not run, as in a cgroup with a cpu.max, cannot have its clearing done in
 * the time of others.
 *
 * In mode observe no block is kept. A counter stands for the blocks that would have
 * been kept; it rises and falls as they would, as if zeroing took no time.
 *
 * prezero->lock is taken with interrupts disabled, because memory may be freed in
 * interrupts, and no other lock is taken under it. It is not held while a block is
 * zeroed: wait on prezero->rested until none is.
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

/* Movable, so that blocks come from the pageblocks of user memory. */
#define BLOCK_GFP	((GFP_USER | __GFP_MOVABLE | __GFP_COMP |	\
			  __GFP_THISNODE | __GFP_NOWARN |		\
			  __GFP_NOMEMALLOC) & ~__GFP_RECLAIM)

/* Half-life of the number of wanted blocks. */
#define HALF_LIFE	(16 * HZ)
/* Intervals at which the thread checks for an idle CPU, and for free memory. */
#define WAIT_FOR_CPU	(HZ / 10)
#define WAIT_FOR_MEMORY	HZ
/* A node keeps at most this fraction of the memory of an average node. */
#define SHARE		64

/**
 * struct econ_prezero - blocks that are zeroed ahead, of a node
 * @lock: protects all fields except the wait queues
 * @blocks: kept blocks, by zone
 * @kept: number of kept blocks
 * @supposed: number of blocks that would be kept, in mode observe
 * @wanted: number of blocks that faults could have used recently
 * @faded: time up to which @wanted is decayed, in jiffies
 * @credit: time that zeroing may use, from the CPU time of processes that wanted a
 *	block
 * @blocked: no block is kept while this is not 0
 * @is_at_work: a block is being zeroed, and on no list yet
 * @nid: the node
 * @thread: the prezero thread
 * @work: wait queue of the thread
 * @rested: wait queue for the end of zeroing a block
 */
struct econ_prezero {
	spinlock_t lock; /* all fields except the wait queues */
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

/* Per possible node; NULL until allocated. */
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

/* Kept blocks */

static unsigned long econ_prezero_stock(const struct econ_prezero *prezero)
{
	return READ_ONCE(prezero->kept) + READ_ONCE(prezero->supposed);
}

/* Whether one more block may be kept, or supposed. */
static bool econ_prezero_may_add(const struct econ_prezero *prezero, enum econ_mode mode)
{
	lockdep_assert_held(&prezero->lock);
	return READ_ONCE(econ_mode) == mode && !prezero->blocked &&
	       econ_prezero_stock(prezero) < READ_ONCE(econ_zeroed_limit);
}

/* Keep a block. Return: false if it may not be kept any more. */
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

/* Free a block of a zone. Return: false if none is kept. */
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

/* Supposed blocks would have been freed. */
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
 * Wait until no block is being zeroed. The thread checks after each page whether to
 * stop, provided that it runs: raise its priority.
 */
static void econ_prezero_wait_idle(struct econ_prezero *prezero)
{
	struct task_struct *thread = READ_ONCE(prezero->thread);

	if (thread && READ_ONCE(prezero->is_at_work))
		sched_set_normal(thread, 0);
	wait_event(prezero->rested, !READ_ONCE(prezero->is_at_work));
}

/* Demand */

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

/* Spend the credit for a block that was zeroed, or would have been. */
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
 * econ_prezero_want - count a fault that could use a zeroed block
 * @nid: node of the block
 * @earned_ns: CPU time of its process to add to the credit
 *
 * Context: a page fault; takes a spinlock.
 * Return: number of zeroed blocks that there are, or would be.
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
 * econ_prezero_suppose_taken - count a fault that would have taken a zeroed block
 * @nid: node of the block
 *
 * Context: a page fault; takes a spinlock.
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
 * econ_prezero_take_block - take a zeroed block for a fault
 * @nid: node of the block
 *
 * Context: a page fault; takes a spinlock.
 * Return: the block, like that of vma_alloc_folio() except for its mark, or NULL.
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

/* The block was not written to. */
void __econ_put_block(struct folio *folio)
{
	struct econ_prezero *prezero = folio->private;

	if (!econ_prezero_add(prezero, folio, ECON_ZEROED_PUT_BACK))
		econ_prezero_free_block(folio);
}

/* Zeroing */

/* Whether a zone stays above its high watermark without @blocks blocks. */
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

/* Decide whether zeroing a block pays, and count the decision. */
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
		/* Leave the last block to faults. */
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
 * Bypass the caches where the processor can: the zeros are used later, and would evict
 * data in use.
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

/* Return: false if the block is not needed any more. */
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
	/* Non-temporal stores are weakly ordered. */
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

/* Zero and keep a block. Return: false if there was no free one. */
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

/* Return: false if there is no memory for a block. */
static bool econ_prezero_add_block(struct econ_prezero *prezero)
{
	if (READ_ONCE(econ_mode) == ECON_OBSERVE)
		return econ_prezero_suppose_block(prezero);
	return econ_prezero_has_room(prezero, 1) && econ_prezero_make_block(prezero);
}

/* Run on CPUs of the node, and only when they are idle. */
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

/* Memory shortage */

/* Freed blocks may be on the per-CPU lists, which no watermark counts. */
static void econ_drain_local_pages(struct zone *zone)
{
	guard(preempt)();
	drain_local_pages(zone);
}

/* Under memory pressure the supposed blocks would have been freed. */
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

	/* Between the low and the min watermark kswapd does it. */
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
 * econ_drain_all - free all kept blocks before an allocation fails
 *
 * The check for kept blocks is in here and not at the call: there it would change the
 * code layout of the allocator, and each allocation would cost more.
 *
 * Context: may sleep.
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

/**
 * econ_zeroed_blocks - number of kept blocks of all nodes
 *
 * Context: any.
 * Return: the number.
 */
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

/**
 * econ_block_zone - free all kept blocks of the node of a zone, and keep none
 * @zone: the zone
 *
 * Calls nest; econ_unblock_zone() ends each.
 *
 * Context: may sleep.
 */
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

/**
 * econ_unblock_zone - end econ_block_zone()
 * @zone: the zone
 *
 * Context: process; takes a spinlock.
 */
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
		pr_warn("no prezero thread for node %d: %pe\n", prezero->nid,
			thread);
		return;
	}
	WRITE_ONCE(prezero->thread, thread);
	wake_up_process(thread);
}

/* Start a thread for each node that has memory. */
static void econ_prezero_start_threads(void)
{
	static DEFINE_MUTEX(starting);
	int nid;

	guard(mutex)(&starting);
	for_each_node_state(nid, N_MEMORY)
		if (econ_prezero_of_node(nid))
			econ_prezero_start_thread(econ_prezero_of_node(nid));
}

/* Apply the mode and the limit. */
static void econ_prezero_adjust(struct econ_prezero *prezero)
{
	unsigned long limit = READ_ONCE(econ_zeroed_limit);

	/* Blocks that are kept or begun after this see both. */
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
 * econ_prezero_adjust_all - apply a change of the mode or of the limit
 *
 * On return no more blocks are kept or being zeroed than they allow.
 *
 * Context: may sleep.
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

	/* Without this no block of the node is kept. */
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

	/* With aliasing caches pages must be cleared by their user address. */
	if (cpu_dcache_is_aliasing())
		return 0;
	shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "econ-zeroed-blocks");
	if (!shrinker)
		return -ENOMEM;
	/* Kept blocks cost only idle time to make again. */
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
