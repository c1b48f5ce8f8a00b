// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life cycle of batches of lazy unmaps: open, closed, flushed, free again.
 *
 * An unmap increments its CPU's counter for the open batch of its stream, checks
 * that the batch is still open, publishes its changes in the order given in
 * include/linux/luf.h and decrements the counter. Counters are per CPU, so that
 * concurrent unmaps do not share a cache line. A flush closes the batch first, so
 * that no unmap joins it, waits until all counters are zero, and only then reads
 * the CPU mask. Any number of tasks may flush one batch at the same time; they do
 * not wait for each other's interrupts.
 *
 * This file touches neither page tables nor pages. tools/testing/tollfree builds
 * and tests it in user space, with threads.
 */

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "batch.h"

/* Number of checks for unmaps in flight before a flusher sleeps between them. */
#define LUF_SPINS	1000

/*
 * Unmaps in flight on one CPU, by the slot of their batch. An unmap begins and ends
 * on the same CPU, because it holds a page-table lock.
 */
struct luf_in_flight {
	atomic_t of[LUF_BATCHES];
};

static DEFINE_PER_CPU(struct luf_in_flight, luf_in_flight);

struct luf_batches luf_batches = {
	.lock = __SPIN_LOCK_UNLOCKED(luf_batches.lock),
};

static bool luf_batch_is_pending(const struct luf_batch *batch)
{
	return batch->state == LUF_BATCH_OPEN ||
	       batch->state == LUF_BATCH_CLOSED;
}

/* Return: the pending batch with the lowest generation, NULL if none is pending. */
static struct luf_batch *luf_oldest_pending(struct luf_batches *all)
{
	struct luf_batch *found = NULL, *batch;

	lockdep_assert_held(&all->lock);
	for (batch = all->slots; batch < all->slots + LUF_BATCHES; batch++)
		if (luf_batch_is_pending(batch) &&
		    (!found || batch->generation < found->generation))
			found = batch;
	return found;
}

static struct luf_batch *luf_find_pending(struct luf_batches *all, u64 generation)
{
	struct luf_batch *batch;

	lockdep_assert_held(&all->lock);
	for (batch = all->slots; batch < all->slots + LUF_BATCHES; batch++)
		if (batch->generation == generation && luf_batch_is_pending(batch))
			return batch;
	return NULL;
}

static void luf_advance_drained(struct luf_batches *all)
{
	struct luf_batch *first = luf_oldest_pending(all);

	/* Pairs with luf_is_drained(): drained batches were flushed before. */
	smp_store_release(&all->drained,
			  first ? first->generation - 1 : all->newest);
}

static struct luf_batch *luf_find_free_slot(struct luf_batches *all)
{
	struct luf_batch *batch;

	lockdep_assert_held(&all->lock);
	for (batch = all->slots; batch < all->slots + LUF_BATCHES; batch++)
		if (batch->state == LUF_BATCH_FREE)
			return batch;
	return NULL;
}

/* Open a batch unless the stream has one. Return: false if no slot is free. */
static bool luf_open_batch(struct luf_batches *all, struct luf_stream *stream)
{
	struct luf_batch *batch;

	guard(spinlock)(&all->lock);
	if (stream->open)
		return true;
	batch = luf_find_free_slot(all);
	if (!batch)
		return false;
	batch->generation = ++all->newest;
	batch->completed = 0;
	batch->stream = stream;
	batch->state = LUF_BATCH_OPEN;
	batch->slot = batch - all->slots;
	cpumask_clear(&batch->cpus);
	/* Pairs with luf_batch_get(): the batch is initialised when it is found. */
	smp_store_release(&stream->open, batch);
	return true;
}

/**
 * luf_batch_get - join the open batch of a stream
 * @all: the batches
 * @stream: stream of the unmap
 *
 * Flushers of the batch wait until luf_batch_put().
 *
 * Context: a page-table lock is held until after luf_batch_put().
 * Return: the batch, NULL if no slot is free: then the unmap is eager.
 */
struct luf_batch *luf_batch_get(struct luf_batches *all,
				struct luf_stream *stream)
{
	struct luf_batch *batch;

	for (;;) {
		/* Pairs with luf_open_batch(). */
		batch = smp_load_acquire(&stream->open);
		if (!batch) {
			if (!luf_open_batch(all, stream))
				return NULL;
			continue;
		}
		atomic_inc(&this_cpu_ptr(&luf_in_flight)->of[batch->slot]);
		/* Pairs with luf_wait_for_unmaps(). */
		smp_mb__after_atomic();
		/* The batch may have been closed and reopened since. */
		if (smp_load_acquire(&stream->open) == batch)
			return batch;
		luf_batch_put(batch);
	}
}

/**
 * luf_batch_put - leave a batch after publishing an unmap
 * @batch: return value of luf_batch_get()
 *
 * Context: under the page-table lock of luf_batch_get().
 */
void luf_batch_put(struct luf_batch *batch)
{
	/* Pairs with luf_wait_for_unmaps(): the published changes are visible. */
	smp_mb__before_atomic();
	atomic_dec(&this_cpu_ptr(&luf_in_flight)->of[batch->slot]);
}

static void luf_close_batch(struct luf_batches *all, struct luf_batch *batch)
{
	lockdep_assert_held(&all->lock);
	if (batch->state != LUF_BATCH_OPEN)
		return;
	batch->state = LUF_BATCH_CLOSED;
	WRITE_ONCE(batch->stream->open, NULL);
}

static struct luf_batch *luf_close_and_pin(struct luf_batches *all,
					   struct luf_batch *batch)
{
	luf_close_batch(all, batch);
	batch->pins++;
	return batch;
}

/* Return: the oldest pending batch up to a generation, NULL if there is none. */
static struct luf_batch *luf_pin_oldest(struct luf_batches *all, u64 generation)
{
	struct luf_batch *batch;

	guard(spinlock)(&all->lock);
	batch = luf_oldest_pending(all);
	if (!batch || batch->generation > generation)
		return NULL;
	return luf_close_and_pin(all, batch);
}

static bool luf_is_in_range(const struct luf_batch *batch, u64 first, u64 last)
{
	return luf_batch_is_pending(batch) && batch->generation >= first &&
	       batch->generation <= last;
}

/* Pin the pending batches in a range of generations. Return: a bit for each slot. */
static u64 luf_pin_range(struct luf_batches *all, u64 first, u64 last)
{
	struct luf_batch *batch;
	u64 pinned = 0;

	static_assert(LUF_BATCHES <= 64);
	guard(spinlock)(&all->lock);
	for (batch = all->slots; batch < all->slots + LUF_BATCHES; batch++)
		if (luf_is_in_range(batch, first, last))
			pinned |= 1ULL << luf_close_and_pin(all, batch)->slot;
	return pinned;
}

static bool luf_is_in_flight(const struct luf_batch *batch)
{
	unsigned int cpu;
	int unmaps = 0;

	for_each_possible_cpu(cpu)
		unmaps += atomic_read(&per_cpu_ptr(&luf_in_flight, cpu)->of[batch->slot]);
	return unmaps;
}

/*
 * Unmaps in flight in a closed batch end soon: they hold a page-table lock and are
 * not preempted, except by a hypervisor or where page-table locks sleep.
 */
static void luf_wait_for_unmaps(const struct luf_batch *batch)
{
	unsigned int looks = 0;

	/* Close before the check; pairs with luf_batch_get(). */
	smp_mb();
	while (luf_is_in_flight(batch)) {
		if (!IS_ENABLED(CONFIG_PREEMPT_RT) && looks++ < LUF_SPINS)
			cpu_relax();
		else
			schedule_timeout_uninterruptible(1);
	}
	/* Pairs with luf_batch_put(). */
	smp_mb();
}

/* Assign the sequence number of a batch that has no unmaps in flight any more. */
static u64 luf_complete_batch(struct luf_batches *all, struct luf_batch *batch)
{
	guard(spinlock)(&all->lock);
	if (!batch->completed) {
		batch->completed = all->sequence + 1;
		WRITE_ONCE(all->sequence, batch->completed);
	}
	return batch->completed;
}

static void luf_unpin_flushed(struct luf_batches *all, struct luf_batch *batch)
{
	guard(spinlock)(&all->lock);
	batch->state = --batch->pins ? LUF_BATCH_FLUSHED : LUF_BATCH_FREE;
	luf_advance_drained(all);
}

/* Flush a closed and pinned batch, and unpin it. */
static unsigned int luf_flush_pinned(struct luf_batches *all, struct luf_batch *batch)
{
	unsigned int cpus;

	luf_wait_for_unmaps(batch);
	cpus = luf_flush_cpus(&batch->cpus, luf_complete_batch(all, batch));
	luf_unpin_flushed(all, batch);
	return cpus;
}

/**
 * luf_is_drained - whether all batches up to a generation are flushed
 * @all: the batches
 * @generation: generation of a stamp, 0 if there is none
 *
 * Context: any.
 * Return: true if this and every older batch is flushed.
 */
bool luf_is_drained(const struct luf_batches *all, u64 generation)
{
	/* Pairs with luf_advance_drained(). */
	return generation <= smp_load_acquire(&all->drained);
}

/**
 * luf_is_flushed - whether one batch is flushed
 * @all: the batches
 * @generation: generation of the batch
 *
 * Context: process; takes a spinlock.
 * Return: true if the batch is flushed; older ones may not be.
 */
bool luf_is_flushed(struct luf_batches *all, u64 generation)
{
	if (luf_is_drained(all, generation))
		return true;
	guard(spinlock)(&all->lock);
	return !luf_find_pending(all, generation);
}

/**
 * luf_drain - flush every batch up to a generation
 * @all: the batches
 * @generation: generation of the newest batch to flush
 *
 * Context: may sleep; the caller holds no page-table lock.
 * Return: number of CPUs that were interrupted.
 */
unsigned int luf_drain(struct luf_batches *all, u64 generation)
{
	struct luf_batch *batch;
	unsigned int cpus = 0;

	while ((batch = luf_pin_oldest(all, generation)))
		cpus += luf_flush_pinned(all, batch);
	return cpus;
}

/**
 * luf_add_cpus - add the CPUs of pending batches to a mask
 * @all: the batches
 * @first: oldest generation of the range
 * @last: newest generation of the range
 * @cpus: mask that the CPUs are added to
 *
 * Context: process; takes a spinlock.
 * Return: true if a batch of the range was pending.
 */
bool luf_add_cpus(struct luf_batches *all, u64 first, u64 last,
		  struct cpumask *cpus)
{
	struct luf_batch *batch;
	bool any = false;

	guard(spinlock)(&all->lock);
	for (batch = all->slots; batch < all->slots + LUF_BATCHES; batch++) {
		if (!luf_is_in_range(batch, first, last))
			continue;
		cpumask_or(cpus, cpus, &batch->cpus);
		any = true;
	}
	return any;
}

/**
 * luf_flush_range - flush a range of batches, and no older ones
 * @all: the batches
 * @first: oldest generation of the range
 * @last: newest generation of the range
 *
 * Takes the lock of the batches once to find them, for any length of the range. On
 * return the pages of these batches may be freed, even if other tasks flush the
 * same batches concurrently.
 *
 * Context: may sleep; the caller holds no page-table lock.
 * Return: number of CPUs that were interrupted.
 */
unsigned int luf_flush_range(struct luf_batches *all, u64 first, u64 last)
{
	u64 pinned = luf_pin_range(all, first, last);
	unsigned int cpus = 0, slot;

	for (slot = 0; slot < LUF_BATCHES; slot++)
		if (pinned & 1ULL << slot)
			cpus += luf_flush_pinned(all, &all->slots[slot]);
	return cpus;
}

/**
 * luf_flush_batch - flush one batch, and no older ones
 * @all: the batches
 * @generation: generation of the batch
 *
 * Context: as luf_flush_range().
 * Return: number of CPUs that were interrupted.
 */
unsigned int luf_flush_batch(struct luf_batches *all, u64 generation)
{
	return luf_flush_range(all, generation, generation);
}
