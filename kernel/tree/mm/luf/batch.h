/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_LUF_BATCH_H
#define _MM_LUF_BATCH_H

#include <linux/cpumask.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* More than there are drains at one time; with none left unmaps are eager. */
#define LUF_BATCHES	64

enum luf_batch_state {
	LUF_BATCH_FREE,
	LUF_BATCH_OPEN,
	LUF_BATCH_CLOSED,
	LUF_BATCH_FLUSHED,	/* but still looked at by somebody */
};

/**
 * struct luf_batch - unmaps that one flush will cover
 * @generation: its number, never given twice
 * @cpus: those that may hold a translation; bits are set while in flight
 * @completed: the sequence number from which on a CPU that is up to date has
 *	nothing of this batch, 0 while unmaps are in flight
 * @stream: whose it is, while it is open
 * @state: what may be done with it
 * @pins: flushers that look at it
 * @slot: its place among all batches
 *
 * All but @cpus is guarded by the lock of struct luf_batches. Unmaps that are
 * being published are counted for each CPU: CPUs that unmap at the same time
 * write nothing in here.
 */
struct luf_batch {
	u64 generation;
	struct cpumask cpus;
	u64 completed;
	struct luf_stream *stream;
	enum luf_batch_state state;
	unsigned int pins;
	unsigned int slot;
};

/**
 * struct luf_stream - a source of unmaps that has batches of its own
 * @open: the batch that unmaps go to, NULL until there is one
 */
struct luf_stream {
	struct luf_batch *open;
};

/**
 * struct luf_batches - all batches, for those who need to see every unmap
 * @lock: a leaf; taken under page-table locks
 * @newest: the generation that was given last
 * @drained: every generation up to this one is flushed
 * @sequence: the completed batch that came last
 * @slots: the batches
 */
struct luf_batches {
	spinlock_t lock; /* of all below */
	u64 newest;
	u64 drained;
	u64 sequence;
	struct luf_batch slots[LUF_BATCHES];
};

struct luf_batch *luf_batch_get(struct luf_batches *all,
				struct luf_stream *stream);
void luf_batch_put(struct luf_batch *batch);
bool luf_is_drained(const struct luf_batches *all, u64 generation);
bool luf_is_flushed(struct luf_batches *all, u64 generation);
bool luf_add_cpus(struct luf_batches *all, u64 first, u64 last,
		  struct cpumask *cpus);
unsigned int luf_drain(struct luf_batches *all, u64 generation);
unsigned int luf_flush_range(struct luf_batches *all, u64 first, u64 last);
unsigned int luf_flush_batch(struct luf_batches *all, u64 generation);

/**
 * luf_flush_cpus - make CPUs forget what was unmapped
 * @cpus: those that may have a translation
 * @completed: one that was up to date at this sequence number has none
 *
 * For who uses this file to define. May sleep.
 *
 * Return: how many CPUs were interrupted.
 */
unsigned int luf_flush_cpus(const struct cpumask *cpus, u64 completed);

#endif /* _MM_LUF_BATCH_H */
