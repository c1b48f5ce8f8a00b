/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_LUF_BATCH_H
#define _MM_LUF_BATCH_H

#include <linux/cpumask.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* More than concurrent drains need. Without a free slot unmaps are eager. */
#define LUF_BATCHES	64

enum luf_batch_state {
	LUF_BATCH_FREE,
	LUF_BATCH_OPEN,
	LUF_BATCH_CLOSED,
	LUF_BATCH_FLUSHED,	/* but still pinned by a flusher */
};

/**
 * struct luf_batch - unmaps that one flush will cover
 * @generation: unique number
 * @cpus: CPUs that may hold a translation; bits are set while in flight
 * @completed: sequence number: a CPU that has flushed since holds no translation
 *	of this batch; 0 while unmaps are in flight
 * @stream: stream of the batch while it is open
 * @state: state of the batch
 * @pins: number of flushers that use it
 * @slot: index in luf_batches.slots
 *
 * The lock of struct luf_batches protects all fields except @cpus. Unmaps in
 * flight are counted per CPU, so that concurrent unmaps share no cache line.
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
 * struct luf_stream - a source of unmaps with its own batches
 * @open: batch that unmaps join, NULL until one is opened
 */
struct luf_stream {
	struct luf_batch *open;
};

/**
 * struct luf_batches - all batches of the system
 * @lock: protects all fields; a leaf lock, taken under page-table locks
 * @newest: last generation that was given
 * @drained: every generation up to this one is flushed
 * @sequence: sequence number of the batch that was completed last
 * @slots: the batches
 */
struct luf_batches {
	spinlock_t lock; /* of all below */
	u64 newest;
	u64 drained;
	u64 sequence;
	struct luf_batch slots[LUF_BATCHES];
};

extern struct luf_batches luf_batches;

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
 * luf_flush_cpus - flush the TLBs of some CPUs
 * @cpus: CPUs that may hold a translation
 * @completed: CPUs that have flushed since this sequence number are skipped
 *
 * In cpus.c, so that user-space tests of batch.c can replace it.
 *
 * Context: may sleep.
 * Return: number of CPUs that were interrupted.
 */
unsigned int luf_flush_cpus(const struct cpumask *cpus, u64 completed);

#endif /* _MM_LUF_BATCH_H */
