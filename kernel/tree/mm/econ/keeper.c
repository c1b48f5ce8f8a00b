// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keeper of blocks that are zeroed ahead.
 *
 * Each node has a thread that zeroes free blocks while a CPU of it has nothing else
 * to do, and keeps them for faults that econ lets be huge. What is kept is
 * allocated: a folio with one reference, of which only the node's list knows and
 * whose private word is the keeper's, until a fault has seen that it need not clear
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
 * keeper->lock is taken with interrupts off, as memory may be given back in them,
 * and nothing else is locked under it. It is not held while a block is zeroed: who
 * must not find one in work waits for keeper->rested.
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
 * struct keeper - what a node keeps
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
struct keeper {
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
static struct keeper *keepers[MAX_NUMNODES];

static struct keeper *keeper_of(int nid)
{
	return nid == NUMA_NO_NODE ? NULL : READ_ONCE(keepers[nid]);
}

static struct keeper *keeper_of_zone(struct zone *zone)
{
	return keeper_of(zone_to_nid(zone));
}

static void count(enum econ_zeroed_count what)
{
	atomic64_inc(&econ_zeroed_counts[what]);
}

static void trace(const struct keeper *keeper, enum econ_zeroed_count what)
{
	trace_econ_zeroed(keeper->nid, econ_zeroed_names[what],
			  READ_ONCE(keeper->kept), READ_ONCE(keeper->supposed));
}

/* What there is */

static unsigned long stock_of(const struct keeper *keeper)
{
	return READ_ONCE(keeper->kept) + READ_ONCE(keeper->supposed);
}

/* One more may be kept, or supposed. */
static bool may_have(const struct keeper *keeper, enum econ_mode mode)
{
	lockdep_assert_held(&keeper->lock);
	return READ_ONCE(econ_mode) == mode && !keeper->blocked &&
	       stock_of(keeper) < READ_ONCE(econ_zeroed_limit);
}

/* Return: false if it may not be kept any more. */
static bool keep(struct keeper *keeper, struct folio *folio,
		 enum econ_zeroed_count what)
{
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		if (!may_have(keeper, ECON_ON))
			return false;
		folio->private = keeper;
		list_add(&folio->lru, &keeper->blocks[folio_zonenum(folio)]);
		WRITE_ONCE(keeper->kept, keeper->kept + 1);
		count(what);
	}
	trace(keeper, what);
	return true;
}

static struct folio *take(struct keeper *keeper, unsigned int zone,
			  enum econ_zeroed_count what)
{
	struct folio *folio;

	lockdep_assert_held(&keeper->lock);
	folio = list_first_entry_or_null(&keeper->blocks[zone], struct folio,
					 lru);
	if (folio) {
		list_del(&folio->lru);
		WRITE_ONCE(keeper->kept, keeper->kept - 1);
		count(what);
	}
	return folio;
}

static void free_block(struct folio *folio)
{
	folio->private = NULL;
	folio_put(folio);
}

/* Gives a block of a zone back to the allocator. Return: false if none is kept. */
static bool give_back(struct keeper *keeper, unsigned int zone)
{
	struct folio *folio;

	if (!READ_ONCE(keeper->kept))
		return false;
	scoped_guard(spinlock_irqsave, &keeper->lock)
		folio = take(keeper, zone, ECON_ZEROED_GIVEN_BACK);
	if (!folio)
		return false;
	trace(keeper, ECON_ZEROED_GIVEN_BACK);
	free_block(folio);
	return true;
}

/* They would have been given back. */
static void suppose_none(struct keeper *keeper)
{
	guard(spinlock_irqsave)(&keeper->lock);
	WRITE_ONCE(keeper->supposed, 0);
}

static bool give_back_any(struct keeper *keeper)
{
	unsigned int zone = MAX_NR_ZONES;

	while (zone--)
		if (give_back(keeper, zone))
			return true;
	return false;
}

static void give_back_beyond(struct keeper *keeper, unsigned long limit)
{
	while (READ_ONCE(keeper->kept) > limit && give_back_any(keeper))
		;
}

/*
 * Waits until no block is in work. The thread finds out from page to page that it
 * is not wanted any more, if only it runs.
 */
static void wait_for_rest(struct keeper *keeper)
{
	struct task_struct *thread = READ_ONCE(keeper->thread);

	if (thread && READ_ONCE(keeper->is_at_work))
		sched_set_normal(thread, 0);
	wait_event(keeper->rested, !READ_ONCE(keeper->is_at_work));
}

/* What was wanted of late */

static void fade(struct keeper *keeper)
{
	unsigned long lives = (jiffies - keeper->faded) / HALF_LIFE;

	lockdep_assert_held(&keeper->lock);
	if (!lives)
		return;
	keeper->wanted >>= min(lives, BITS_PER_LONG - 1UL);
	keeper->faded += lives * HALF_LIFE;
}

static bool has_work(struct keeper *keeper)
{
	enum econ_mode mode = READ_ONCE(econ_mode);

	guard(spinlock_irqsave)(&keeper->lock);
	fade(keeper);
	return mode != ECON_OFF && may_have(keeper, mode) &&
	       keeper->wanted > stock_of(keeper) &&
	       econ_pot_read(&keeper->credit, ktime_get_ns()) >=
	       READ_ONCE(econ_prices.ns[ECON_CLEAR_HUGE]);
}

/* A block was zeroed, or would have been. */
static void econ_pay_zeroing(struct keeper *keeper)
{
	lockdep_assert_held(&keeper->lock);
	econ_pot_take(&keeper->credit,
		      READ_ONCE(econ_prices.ns[ECON_CLEAR_HUGE]),
		      ktime_get_ns());
}

static u64 econ_zeroing_credit(struct keeper *keeper)
{
	guard(spinlock_irqsave)(&keeper->lock);
	return econ_pot_read(&keeper->credit, ktime_get_ns());
}

/**
 * econ_want_zeroed - a fault could use a block that was zeroed ahead
 * @nid: of which node
 * @earned_ns: what its process may spend on zeroing in addition
 *
 * Return: how many there are, or would be.
 */
unsigned long econ_want_zeroed(int nid, u64 earned_ns)
{
	struct keeper *keeper = keeper_of(nid);
	unsigned long stock;

	if (!keeper)
		return 0;
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		fade(keeper);
		econ_pot_add(&keeper->credit, earned_ns, ktime_get_ns());
		keeper->wanted++;
		stock = stock_of(keeper);
	}
	if (!stock)
		count(ECON_ZEROED_MISSED);
	if (wq_has_sleeper(&keeper->work) && has_work(keeper))
		wake_up(&keeper->work);
	return stock;
}

/**
 * econ_suppose_taken - a fault would have taken a block, but is only observed
 * @nid: of which node
 */
void econ_suppose_taken(int nid)
{
	struct keeper *keeper = keeper_of(nid);

	if (!keeper)
		return;
	scoped_guard(spinlock_irqsave, &keeper->lock)
		if (keeper->supposed)
			WRITE_ONCE(keeper->supposed, keeper->supposed - 1);
	count(ECON_ZEROED_WOULD_HIT);
	trace(keeper, ECON_ZEROED_WOULD_HIT);
	econ_count_ns(&econ_zeroed_counts[ECON_ZEROED_WOULD_SAVE_NS],
		      READ_ONCE(econ_prices.ns[ECON_CLEAR_HUGE]));
}

/**
 * econ_take_block - a block for a fault
 * @nid: of which node
 *
 * Return: the block, as vma_alloc_folio() gives it but for its mark, or NULL.
 */
struct folio *econ_take_block(int nid)
{
	struct keeper *keeper = keeper_of(nid);
	struct folio *folio = NULL;
	unsigned int zone = MAX_NR_ZONES;

	if (!keeper || !READ_ONCE(keeper->kept))
		return NULL;
	scoped_guard(spinlock_irqsave, &keeper->lock)
		while (!folio && zone--)
			folio = take(keeper, zone, ECON_ZEROED_TAKEN);
	if (folio)
		trace(keeper, ECON_ZEROED_TAKEN);
	return folio;
}

void __econ_was_zeroed(struct folio *folio)
{
	folio->private = NULL;
	econ_see(ECON_SAW_ZEROED);
}

/* Nobody has written to it. */
void __econ_put_block(struct folio *folio)
{
	struct keeper *keeper = folio->private;

	if (!keep(keeper, folio, ECON_ZEROED_PUT_BACK))
		free_block(folio);
}

/* Zeroing */

/* So many blocks could go, and its zone would still be above the high watermark. */
static bool has_spare(struct zone *zone, unsigned long blocks)
{
	return managed_zone(zone) &&
	       zone_watermark_ok(zone, blocks ? HPAGE_PMD_ORDER : 0,
				 high_wmark_pages(zone) +
				 blocks * HPAGE_PMD_NR,
				 gfp_zone(BLOCK_GFP), 0);
}

static bool has_room(const struct keeper *keeper, unsigned long blocks)
{
	struct zone *zones = NODE_DATA(keeper->nid)->node_zones;
	int i;

	for (i = gfp_zone(BLOCK_GFP); i >= 0; i--)
		if (has_spare(&zones[i], blocks))
			return true;
	return false;
}

/* Whether it pays, which is a decision like any other. */
static bool pays(struct keeper *keeper)
{
	struct econ_action action = {
		.kind = ECON_ZERO,
		.order = HPAGE_PMD_ORDER,
		.supply = ECON_FREE_BLOCK,
		.wanted = READ_ONCE(keeper->wanted),
		.stock = stock_of(keeper),
		.credit_ns = econ_zeroing_credit(keeper),
		.is_idle = single_task_running(),
		/* The last one is left to who can do with one that is not zeroed. */
		.block_ns = econ_free_blocks(keeper->nid) > 1 ? 0 :
							       ECON_NEVER_NS,
	};

	return econ_decide(&action, 0, NULL, READ_ONCE(econ_mode) == ECON_ON);
}

static struct folio *new_block(struct keeper *keeper)
{
	struct folio *folio = __folio_alloc_node(BLOCK_GFP, HPAGE_PMD_ORDER,
						 keeper->nid);

	if (!folio)
		return NULL;
	if (has_spare(folio_zone(folio), 0) &&
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
static void zero_page(struct page *page)
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
static bool zero(struct keeper *keeper, struct folio *folio)
{
	unsigned int i;

	for (i = 0; i < HPAGE_PMD_NR; i++) {
		if (READ_ONCE(keeper->blocked) ||
		    READ_ONCE(econ_mode) != ECON_ON ||
		    READ_ONCE(keeper->kept) >= READ_ONCE(econ_zeroed_limit))
			return false;
		zero_page(folio_page(folio, i));
		cond_resched();
	}
	/* Such stores are not ordered by themselves. */
	wmb();
	return true;
}

static bool begin_work(struct keeper *keeper)
{
	guard(spinlock_irqsave)(&keeper->lock);
	WRITE_ONCE(keeper->is_at_work, may_have(keeper, ECON_ON));
	return keeper->is_at_work;
}

static void end_work(struct keeper *keeper, bool has_zeroed)
{
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		if (has_zeroed)
			econ_pay_zeroing(keeper);
		WRITE_ONCE(keeper->is_at_work, false);
	}
	wake_up_all(&keeper->rested);
}

static void abandon(struct keeper *keeper, struct folio *folio)
{
	count(ECON_ZEROED_ABANDONED);
	trace(keeper, ECON_ZEROED_ABANDONED);
	folio_put(folio);
}

/* Return: false if there was no block to make one of. */
static bool make(struct keeper *keeper)
{
	struct folio *folio;

	if (!begin_work(keeper))
		return true;
	folio = new_block(keeper);
	if (folio && !(zero(keeper, folio) && has_spare(folio_zone(folio), 0) &&
		       keep(keeper, folio, ECON_ZEROED_MADE)))
		abandon(keeper, folio);
	end_work(keeper, folio);
	return folio;
}

static bool suppose(struct keeper *keeper)
{
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		if (!may_have(keeper, ECON_OBSERVE) ||
		    keeper->supposed >= econ_free_blocks(keeper->nid) ||
		    !has_room(keeper, keeper->supposed + 1))
			return false;
		WRITE_ONCE(keeper->supposed, keeper->supposed + 1);
		econ_pay_zeroing(keeper);
	}
	count(ECON_ZEROED_WOULD_MAKE);
	trace(keeper, ECON_ZEROED_WOULD_MAKE);
	return true;
}

/* Return: false if there is no memory for it. */
static bool add_one(struct keeper *keeper)
{
	if (READ_ONCE(econ_mode) == ECON_OBSERVE)
		return suppose(keeper);
	return has_room(keeper, 1) && make(keeper);
}

/* Where the node's memory is near, and only if nobody else wants to run there. */
static void settle(struct keeper *keeper)
{
	static const struct sched_param param;
	const struct cpumask *cpus = cpumask_of_node(keeper->nid);

	if (cpumask_intersects(cpus, cpu_online_mask))
		set_cpus_allowed_ptr(current, cpus);
	if (current->policy != SCHED_IDLE)
		sched_setscheduler_nocheck(current, SCHED_IDLE, &param);
}

static int work(void *data)
{
	struct keeper *keeper = data;

	set_freezable();
	while (!kthread_should_stop()) {
		wait_event_freezable(keeper->work, has_work(keeper));
		try_to_freeze();
		settle(keeper);
		if (pays(keeper) && add_one(keeper))
			cond_resched();
		else
			schedule_timeout_idle(single_task_running() ?
					      WAIT_FOR_MEMORY : WAIT_FOR_CPU);
	}
	return 0;
}

/* Who needs memory */

/* What is given back may stay in the CPU's own lists, where no watermark sees it. */
static void spill(struct zone *zone)
{
	guard(preempt)();
	drain_local_pages(zone);
}

/* Where memory is short they would have been given back. */
static void check_supposed(struct keeper *keeper)
{
	unsigned long supposed = READ_ONCE(keeper->supposed);

	if (supposed && !has_room(keeper, supposed))
		suppose_none(keeper);
}

bool __econ_refill(struct zone *zone, unsigned int order, unsigned long mark,
		   int highest_zoneidx, unsigned int alloc_flags)
{
	struct keeper *keeper = keeper_of_zone(zone);

	/* Between the low mark and the min mark kswapd does it. */
	if (!keeper || current == READ_ONCE(keeper->thread) ||
	    (alloc_flags & ALLOC_WMARK_MASK) != ALLOC_WMARK_MIN)
		return false;
	check_supposed(keeper);
	while (give_back(keeper, zone_idx(zone))) {
		if (in_task())
			spill(zone);
		if (zone_watermark_ok(zone, order, mark, highest_zoneidx,
				      alloc_flags))
			return true;
	}
	return false;
}

void __econ_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx)
{
	struct keeper *keeper = keeper_of(pgdat->node_id);
	int i;

	if (!keeper)
		return;
	check_supposed(keeper);
	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = &pgdat->node_zones[i];

		while (managed_zone(zone) &&
		       !zone_watermark_ok(zone, order, high_wmark_pages(zone),
					  highest_zoneidx, 0) &&
		       give_back(keeper, i))
			spill(zone);
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
		struct keeper *keeper = keeper_of(nid);

		if (!keeper)
			continue;
		check_supposed(keeper);
		while (give_back_any(keeper))
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
		const struct keeper *keeper = keeper_of(nid);

		if (keeper)
			blocks += READ_ONCE(keeper->kept);
	}
	return blocks;
}

/**
 * econ_zeroed_credit - what may still be spent on zeroing, by all nodes
 *
 * Return: nanoseconds.
 */
u64 econ_zeroed_credit(void)
{
	u64 ns = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY)
		if (keeper_of(nid))
			ns += econ_zeroing_credit(keeper_of(nid));
	return ns;
}

static unsigned long count_pages(struct shrinker *shrinker,
				 struct shrink_control *control)
{
	const struct keeper *keeper = keeper_of(control->nid);
	unsigned long blocks = keeper ? READ_ONCE(keeper->kept) : 0;

	return blocks ? blocks * HPAGE_PMD_NR : SHRINK_EMPTY;
}

static unsigned long scan_pages(struct shrinker *shrinker,
				struct shrink_control *control)
{
	struct keeper *keeper = keeper_of(control->nid);
	unsigned long pages = 0;

	while (keeper && pages < control->nr_to_scan && give_back_any(keeper))
		pages += HPAGE_PMD_NR;
	control->nr_scanned = pages;
	return pages ?: SHRINK_STOP;
}

/* Isolation */

void econ_block(struct zone *zone)
{
	struct keeper *keeper = keeper_of_zone(zone);

	if (!keeper)
		return;
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		WRITE_ONCE(keeper->blocked, keeper->blocked + 1);
		WRITE_ONCE(keeper->supposed, 0);
	}
	give_back_beyond(keeper, 0);
	wait_for_rest(keeper);
}

void econ_unblock(struct zone *zone)
{
	struct keeper *keeper = keeper_of_zone(zone);

	if (!keeper)
		return;
	guard(spinlock_irqsave)(&keeper->lock);
	WRITE_ONCE(keeper->blocked, keeper->blocked - 1);
}

void __econ_drain_zone(struct zone *zone)
{
	econ_block(zone);
	econ_unblock(zone);
	drain_all_pages(zone);
}

/* Threads */

static void start_on(struct keeper *keeper)
{
	struct task_struct *thread;

	if (keeper->thread)
		return;
	thread = kthread_create_on_node(work, keeper, keeper->nid, "kzerod%d",
					keeper->nid);
	if (IS_ERR(thread)) {
		pr_warn("nobody zeroes blocks of node %d: %pe\n", keeper->nid,
			thread);
		return;
	}
	WRITE_ONCE(keeper->thread, thread);
	wake_up_process(thread);
}

/* For each node that has memory by now. */
static void start_threads(void)
{
	static DEFINE_MUTEX(starting);
	int nid;

	guard(mutex)(&starting);
	for_each_node_state(nid, N_MEMORY)
		if (keeper_of(nid))
			start_on(keeper_of(nid));
}

/* As the mode and the limit want it. */
static void adjust(struct keeper *keeper)
{
	unsigned long limit = READ_ONCE(econ_zeroed_limit);

	/* Who keeps or begins a block after this knows both. */
	scoped_guard(spinlock_irqsave, &keeper->lock) {
		if (econ_mode != ECON_OBSERVE || keeper->supposed > limit)
			WRITE_ONCE(keeper->supposed, 0);
		if (econ_mode == ECON_OFF)
			econ_pot_forget(&keeper->credit);
	}
	if (econ_mode != ECON_ON)
		limit = 0;
	give_back_beyond(keeper, limit);
	if (READ_ONCE(keeper->kept) >= limit)
		wait_for_rest(keeper);
	wake_up(&keeper->work);
}

/**
 * econ_adjust_keepers - the mode or the limit was changed
 *
 * When it returns no more is kept than they allow, nor being zeroed.
 */
void econ_adjust_keepers(void)
{
	int nid;

	if (econ_mode != ECON_OFF)
		start_threads();
	for_each_node(nid)
		if (keeper_of(nid))
			adjust(keeper_of(nid));
}

static int memory_changed(struct notifier_block *block, unsigned long action,
			  void *arg)
{
	if (action == MEM_ONLINE && READ_ONCE(econ_mode) != ECON_OFF)
		start_threads();
	return NOTIFY_OK;
}

static void __init make_keeper(int nid)
{
	struct keeper *keeper = kzalloc_node(sizeof(*keeper), GFP_KERNEL, nid);
	int i;

	/* Without one nothing of the node is kept. */
	if (!keeper)
		return;
	spin_lock_init(&keeper->lock);
	for (i = 0; i < MAX_NR_ZONES; i++)
		INIT_LIST_HEAD(&keeper->blocks[i]);
	init_waitqueue_head(&keeper->work);
	init_waitqueue_head(&keeper->rested);
	keeper->faded = jiffies;
	keeper->nid = nid;
	keepers[nid] = keeper;
}

static int __init econ_keepers_init(void)
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
	shrinker->count_objects = count_pages;
	shrinker->scan_objects = scan_pages;
	for_each_node(nid)
		make_keeper(nid);
	econ_zeroed_limit = max(totalram_pages() / SHARE / HPAGE_PMD_NR /
				num_node_state(N_MEMORY), 1UL);
	hotplug_memory_notifier(memory_changed, DEFAULT_CALLBACK_PRI);
	shrinker_register(shrinker);
	return 0;
}
core_initcall(econ_keepers_init);
