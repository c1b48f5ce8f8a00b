/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prezero threads: blocks that are zeroed ahead.
 *
 * Each node has a thread that zeroes free blocks while a CPU of the node is idle, and
 * keeps them for faults that econ allows to be huge. A kept block is allocated: a
 * folio with one reference, on the list of the node only. Its private field points to
 * the struct econ_prezero until a fault has seen that it need not clear the block. The
 * allocator need not know the content of free pages.
 *
 * An allocation that lacks memory gets all kept blocks before it reclaims. The thread
 * takes blocks only above the high watermark, or above the low one if faults use them so
 * often that they save more than reclaim of their memory costs; then kswapd reclaims other
 * memory as well. It has no timer unless there is work that cannot be done yet: faults
 * wake it.
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
#ifndef _MM_ECON_PREZERO_H
#define _MM_ECON_PREZERO_H

#include <linux/list.h>
#include <linux/mmzone.h>
#include <linux/numa.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "internal.h"
#include "pot.h"

struct shrinker;
struct task_struct;

/* Movable, so that blocks come from the pageblocks of user memory. */
#define ECON_BLOCK_GFP	((GFP_USER | __GFP_MOVABLE | __GFP_COMP |	\
			  __GFP_THISNODE | __GFP_NOWARN |		\
			  __GFP_NOMEMALLOC) & ~__GFP_RECLAIM)

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

/* Per possible node; NULL until allocated. */
extern struct econ_prezero *econ_prezero_nodes[MAX_NUMNODES];

/**
 * econ_prezero_of_node - zeroed blocks of a node
 * @nid: the node, or NUMA_NO_NODE
 *
 * Context: any.
 * Return: the blocks, or NULL if none of the node are kept.
 */
static inline struct econ_prezero *econ_prezero_of_node(int nid)
{
	return nid == NUMA_NO_NODE ? NULL : READ_ONCE(econ_prezero_nodes[nid]);
}

/**
 * econ_prezero_of_zone - zeroed blocks of the node of a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: the blocks, or NULL if none of the node are kept.
 */
static inline struct econ_prezero *econ_prezero_of_zone(struct zone *zone)
{
	return econ_prezero_of_node(zone_to_nid(zone));
}

/**
 * econ_prezero_count - count an event
 * @what: the event
 *
 * Context: any.
 */
static inline void econ_prezero_count(enum econ_zeroed_count what)
{
	atomic64_inc(&econ_zeroed_counts[what]);
}

/**
 * econ_prezero_stock - number of blocks that are kept, or would be
 * @prezero: blocks of a node
 *
 * Context: any.
 * Return: the number.
 */
static inline unsigned long econ_prezero_stock(const struct econ_prezero *prezero)
{
	return READ_ONCE(prezero->kept) + READ_ONCE(prezero->supposed);
}

/* prezero_stock.c */

void econ_prezero_trace(const struct econ_prezero *prezero, enum econ_zeroed_count what);
bool econ_zone_has_spare(const struct econ_prezero *prezero, struct zone *zone,
			 unsigned long blocks);
bool econ_prezero_has_room(const struct econ_prezero *prezero, unsigned long blocks);
bool econ_prezero_may_add(const struct econ_prezero *prezero, enum econ_mode mode);
bool econ_prezero_add(struct econ_prezero *prezero, struct folio *folio,
		      enum econ_zeroed_count what);
bool econ_prezero_give_back(struct econ_prezero *prezero, unsigned int zone);
bool econ_prezero_give_back_any(struct econ_prezero *prezero);
void econ_prezero_shrink_to(struct econ_prezero *prezero, unsigned long limit);

/* prezero_demand.c */

bool econ_prezero_pays_memory(const struct econ_prezero *prezero, unsigned long blocks);
unsigned long econ_prezero_left(const struct econ_prezero *prezero, unsigned int weight);
bool econ_prezero_has_work(struct econ_prezero *prezero);
void econ_prezero_pay(struct econ_prezero *prezero);
u64 econ_prezero_node_credit(struct econ_prezero *prezero);

/* prezero_shortage.c */

void econ_prezero_wait_idle(struct econ_prezero *prezero);
struct shrinker *econ_prezero_alloc_shrinker(void);

#endif /* _MM_ECON_PREZERO_H */
