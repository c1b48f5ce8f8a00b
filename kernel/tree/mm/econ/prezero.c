// SPDX-License-Identifier: GPL-2.0-only
/* The prezero threads: zeroing, and when to do it. See prezero.h. */

#define pr_fmt(fmt) "econ: " fmt

#include <linux/cacheinfo.h>
#include <linux/cpumask.h>
#include <linux/freezer.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kmsan-checks.h>
#include <linux/kthread.h>
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
#include <linux/topology.h>
#include <linux/wait.h>
#include <uapi/linux/sched/types.h>

#include "../internal.h"
#include "internal.h"
#include "prezero.h"

/* Intervals at which the thread checks for an idle CPU, and for free memory. */
#define WAIT_FOR_CPU	(HZ / 10)
#define WAIT_FOR_MEMORY	HZ
/* A node keeps at most this fraction of the memory of an average node. */
#define SHARE		64

/* Zeroing */

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
		.page_ns = econ_is_node_short(prezero->nid) ?
			   READ_ONCE(econ_costs.ns[ECON_RECLAIM_PAGE]) : 0,
		.is_idle = single_task_running(),
		/* Leave the last block to faults. */
		.block_ns = econ_free_blocks(prezero->nid) > 1 ? 0 :
							       ECON_NEVER_NS,
	};

	return econ_decide(&action, 0, NULL, READ_ONCE(econ_mode) == ECON_ON);
}

static struct folio *econ_prezero_alloc_block(struct econ_prezero *prezero)
{
	struct folio *folio = __folio_alloc_node(ECON_BLOCK_GFP, HPAGE_PMD_ORDER,
						 prezero->nid);

	if (!folio)
		return NULL;
	if (econ_zone_has_spare(prezero, folio_zone(folio), 0) &&
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
		       econ_zone_has_spare(prezero, folio_zone(folio), 0) &&
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
	shrinker = econ_prezero_alloc_shrinker();
	if (!shrinker)
		return -ENOMEM;
	for_each_node(nid)
		econ_prezero_alloc_node(nid);
	econ_zeroed_limit = max(totalram_pages() / SHARE / HPAGE_PMD_NR /
				num_node_state(N_MEMORY), 1UL);
	hotplug_memory_notifier(econ_prezero_memory_notify, DEFAULT_CALLBACK_PRI);
	shrinker_register(shrinker);
	return 0;
}
core_initcall(econ_prezero_init);
