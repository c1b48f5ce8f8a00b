// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/luf/batch.c. */

#include <linux/atomic.h>

/* Hook between finding a batch and joining it. */
static void (*meanwhile)(void);
static void let_happen(void);

#define atomic_inc(v) (let_happen(), atomic_inc(v))
#include "luf/batch.c"

#include "tap.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum { CPUS = 8, ROUNDS = 20000 };

static struct luf_batches all;
static struct luf_stream reclaim, compaction;

/* Arguments of the last flush, and the number of flushes. */
static struct cpumask asked;
static u64 asked_completed;
static unsigned int flushes;
/* Start of the last flush of each CPU, by a logical clock. */
static u64 clock_now, flush_began[CPUS];
static void (*while_flushing)(void);

static void let_happen(void)
{
	void (*happens)(void) = meanwhile;

	meanwhile = NULL;
	if (happens)
		happens();
}

static u64 tick(void)
{
	return __atomic_add_fetch(&clock_now, 1, __ATOMIC_SEQ_CST);
}

unsigned int luf_flush_cpus(const struct cpumask *cpus, u64 completed)
{
	u64 now = tick();

	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		u64 *began = &flush_began[cpu];
		u64 before = __atomic_load_n(began, __ATOMIC_SEQ_CST);

		while (cpumask_test_cpu(cpu, cpus) && before < now)
			if (__atomic_compare_exchange_n(began, &before, now, false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				break;
	}
	__atomic_store_n(&asked.bits, cpus->bits, __ATOMIC_SEQ_CST);
	__atomic_store_n(&asked_completed, completed, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&flushes, 1, __ATOMIC_SEQ_CST);
	if (while_flushing)
		while_flushing();
	return __builtin_popcountll(cpus->bits);
}

static void begin(void)
{
	memset(&all, 0, sizeof(all));
	spin_lock_init(&all.lock);
	reclaim.open = NULL;
	compaction.open = NULL;
	asked.bits = 0;
	asked_completed = 0;
	flushes = 0;
	while_flushing = NULL;
}

/* Unmap a page that a CPU may have a translation for. Return: the generation. */
static u64 unmap(struct luf_stream *stream, unsigned int cpu)
{
	struct luf_batch *batch = luf_batch_get(&all, stream);
	u64 generation = batch->generation;

	cpumask_set_cpu(cpu, &batch->cpus);
	luf_batch_put(batch);
	return generation;
}

static void a_batch_gathers_until_it_is_drained(void)
{
	begin();
	EXPECT_EQ(unmap(&reclaim, 1), 1);
	EXPECT_EQ(unmap(&reclaim, 5), 1);
	EXPECT_EQ(luf_is_drained(&all, 0), true);
	EXPECT_EQ(luf_is_drained(&all, 1), false);
	EXPECT_EQ(luf_is_flushed(&all, 1), false);
	luf_drain(&all, 1);
	EXPECT_EQ(asked.bits, 1 << 1 | 1 << 5);
	EXPECT_EQ(asked_completed, 1);
	EXPECT_EQ(luf_is_drained(&all, 1), true);
	EXPECT_EQ(luf_is_flushed(&all, 1), true);
	EXPECT_EQ(unmap(&reclaim, 2), 2);
	luf_drain(&all, 2);
	EXPECT_EQ(asked.bits, 1 << 2);
	EXPECT_EQ(asked_completed, 2);
	EXPECT_EQ(flushes, 2);
}

static void what_is_drained_is_not_flushed_again(void)
{
	begin();
	unmap(&reclaim, 1);
	luf_drain(&all, 1);
	luf_drain(&all, 1);
	luf_flush_batch(&all, 1);
	EXPECT_EQ(flushes, 1);
}

static void newer_batches_stay_open(void)
{
	begin();
	EXPECT_EQ(unmap(&compaction, 1), 1);
	EXPECT_EQ(unmap(&reclaim, 2), 2);
	luf_drain(&all, 1);
	EXPECT_EQ(asked.bits, 1 << 1);
	EXPECT_EQ(unmap(&reclaim, 3), 2);
	EXPECT_EQ(unmap(&compaction, 4), 3);
}

static void a_batch_is_flushed_without_the_older_ones(void)
{
	begin();
	unmap(&reclaim, 1);
	unmap(&compaction, 2);
	luf_flush_batch(&all, 2);
	EXPECT_EQ(asked.bits, 1 << 2);
	EXPECT_EQ(luf_is_flushed(&all, 2), true);
	EXPECT_EQ(luf_is_flushed(&all, 1), false);
	/* A stamp does not cover earlier batches. */
	EXPECT_EQ(luf_is_drained(&all, 2), false);
	luf_drain(&all, 2);
	EXPECT_EQ(luf_is_drained(&all, 2), true);
	EXPECT_EQ(flushes, 2);
}

static void the_cpus_of_pending_batches_can_be_had(void)
{
	struct cpumask cpus = { .bits = 1 << 7 };

	begin();
	unmap(&compaction, 1);
	unmap(&reclaim, 2);
	luf_flush_batch(&all, 2);
	unmap(&reclaim, 3);
	EXPECT_EQ(luf_add_cpus(&all, 2, 2, &cpus), false);
	EXPECT_EQ(cpus.bits, 1 << 7);
	EXPECT_EQ(luf_add_cpus(&all, 2, 3, &cpus), true);
	EXPECT_EQ(cpus.bits, 1 << 7 | 1 << 3);
	EXPECT_EQ(luf_add_cpus(&all, 1, 2, &cpus), true);
	EXPECT_EQ(cpus.bits, 1 << 7 | 1 << 3 | 1 << 1);
	EXPECT_EQ(luf_drain(&all, 3), 2);
}

static void drain_again(void)
{
	while_flushing = NULL;
	luf_drain(&all, 1);
	/* The slot is not free before the first flusher is done. */
	for (u64 more = 0; more < LUF_BATCHES - 1; more++) {
		unmap(&reclaim, 3);
		assert(reclaim.open != &all.slots[0]);
		reclaim.open->state = LUF_BATCH_CLOSED;
		reclaim.open = NULL;
	}
	EXPECT_EQ(!luf_batch_get(&all, &reclaim), true);
}

static void a_batch_is_flushed_by_two_at_a_time(void)
{
	begin();
	unmap(&reclaim, 1);
	while_flushing = drain_again;
	luf_drain(&all, 1);
	EXPECT_EQ(flushes, 2);
	EXPECT_EQ(all.slots[0].state, LUF_BATCH_FREE);
}

static void without_a_free_batch_unmaps_are_eager(void)
{
	static struct luf_stream streams[LUF_BATCHES + 1];

	begin();
	memset(streams, 0, sizeof(streams));
	for (int i = 0; i < LUF_BATCHES; i++)
		unmap(&streams[i], 1);
	EXPECT_EQ(!luf_batch_get(&all, &streams[LUF_BATCHES]), true);
	luf_drain(&all, 1);
	EXPECT_EQ(unmap(&streams[LUF_BATCHES], 1), LUF_BATCHES + 1);
}

static void recycle(void)
{
	luf_drain(&all, 1);
	unmap(&compaction, 6);
}

static void a_batch_that_became_another_streams_is_left_alone(void)
{
	begin();
	unmap(&reclaim, 1);
	meanwhile = recycle;
	EXPECT_EQ(unmap(&reclaim, 7), 3);
	EXPECT_EQ(all.slots[0].generation, 2);
	EXPECT_EQ(all.slots[0].cpus.bits, 1 << 6);
}

/* Counters are per CPU, and a flush reads all of them. */
static void *drain_first(void *unused)
{
	test_cpu = 2;
	luf_drain(&all, 1);
	return unused;
}

static void a_flush_waits_for_what_is_in_flight(void)
{
	struct luf_batch *batch;
	pthread_t thread;

	begin();
	test_cpu = 5;
	batch = luf_batch_get(&all, &reclaim);
	pthread_create(&thread, NULL, drain_first, NULL);
	while (__atomic_load_n(&reclaim.open, __ATOMIC_SEQ_CST))
		sched_yield();
	/* Longer than without waiting. */
	usleep(20000);
	EXPECT_EQ(__atomic_load_n(&flushes, __ATOMIC_SEQ_CST), 0);
	cpumask_set_cpu(3, &batch->cpus);
	luf_batch_put(batch);
	pthread_join(thread, NULL);
	test_cpu = 0;
	EXPECT_EQ(asked.bits, 1 << 3);
}

/* Compaction uses a generation for each of its blocks. */
static void many_generations_cost_no_more_than_those_that_are_pending(void)
{
	struct luf_stream other = {};
	u64 first, last, more;
	unsigned long before;

	begin();
	first = unmap(&reclaim, 1);
	for (more = 0; more < 10000; more++)
		luf_flush_batch(&all, unmap(&compaction, 2));
	unmap(&compaction, 3);
	last = unmap(&other, 4);
	flushes = 0;
	before = locks_taken;
	EXPECT_EQ(luf_flush_range(&all, first, last), 3);
	EXPECT_EQ(flushes, 3);
	/* Once to pin all, and for each batch to number and to unpin it. */
	EXPECT_EQ(locks_taken - before <= 1 + 2 * 3, true);
	EXPECT_EQ(luf_is_drained(&all, last), true);
}

static void a_range_ends_where_it_says(void)
{
	struct luf_stream third = {};

	begin();
	EXPECT_EQ(unmap(&reclaim, 1), 1);
	EXPECT_EQ(unmap(&compaction, 2), 2);
	EXPECT_EQ(unmap(&third, 3), 3);
	EXPECT_EQ(luf_flush_range(&all, 0, 0), 0);
	EXPECT_EQ(luf_flush_range(&all, 2, 2), 1);
	EXPECT_EQ(luf_is_flushed(&all, 1), false);
	EXPECT_EQ(luf_is_flushed(&all, 2), true);
	EXPECT_EQ(luf_is_flushed(&all, 3), false);
	EXPECT_EQ(luf_flush_range(&all, 1, 3), 2);
	EXPECT_EQ(luf_is_drained(&all, 3), true);
}

static unsigned int wrong;

/* Unmap, and sometimes check that flushed batches were flushed. */
static void *unmap_much(void *number)
{
	struct luf_stream *stream = number == (void *)1 ? &compaction : &reclaim;
	u64 seed = 88172645463325252ULL + (size_t)number;

	test_cpu = (size_t)number;
	for (int i = 0; i < ROUNDS; i++) {
		struct luf_batch *batch;
		unsigned int cpu;
		u64 generation, when;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		cpu = seed % CPUS;
		batch = luf_batch_get(&all, stream);
		if (!batch)
			continue;
		cpumask_set_cpu(cpu, &batch->cpus);
		generation = batch->generation;
		when = tick();
		luf_batch_put(batch);
		if (seed >> 40 & 3)
			continue;
		if (seed >> 42 & 1)
			luf_drain(&all, generation);
		else
			luf_flush_batch(&all, generation);
		if (!luf_is_flushed(&all, generation) ||
		    __atomic_load_n(&flush_began[cpu], __ATOMIC_SEQ_CST) < when)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void threads_never_see_an_early_flush(void)
{
	pthread_t threads[4];

	begin();
	wrong = 0;
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, unmap_much, (void *)i);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(wrong, 0);
	luf_drain(&all, all.newest);
	EXPECT_EQ(all.drained, all.newest);
	for (int i = 0; i < LUF_BATCHES; i++)
		EXPECT_EQ(all.slots[i].state, LUF_BATCH_FREE);
	printf("# %llu batches, %u flushes\n", (unsigned long long)all.newest, flushes);
}

int main(void)
{
	RUN(a_batch_gathers_until_it_is_drained);
	RUN(what_is_drained_is_not_flushed_again);
	RUN(newer_batches_stay_open);
	RUN(a_batch_is_flushed_without_the_older_ones);
	RUN(the_cpus_of_pending_batches_can_be_had);
	RUN(a_batch_is_flushed_by_two_at_a_time);
	RUN(without_a_free_batch_unmaps_are_eager);
	RUN(a_batch_that_became_another_streams_is_left_alone);
	RUN(a_flush_waits_for_what_is_in_flight);
	RUN(many_generations_cost_no_more_than_those_that_are_pending);
	RUN(a_range_ends_where_it_says);
	RUN(threads_never_see_an_early_flush);
	return tap_end();
}
