// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cost of the samples of an operation.
 *
 * A cost is the median of its samples: one block that the host had to find first would
 * spoil a mean. The weight of a sample halves with time and with the samples after it,
 * so that costs follow changes of the machine, however rare an operation is.
 *
 * This file contains arithmetic only: tools/testing/tollfree builds and tests it in user
 * space.
 */

#include <linux/minmax.h>

#include "model.h"
#include "samples.h"

/* Weight of a new sample. It is 0 after 8 half-lives, unless newer samples are missing. */
#define WEIGHT			256
/* Half-life of a sample. */
#define HALF_LIFE_NS		10000000000ULL
/* Sum of weights at which they are halved: 4096 samples in a half-life. */
#define WEIGHT_KEPT		(4096 * WEIGHT)
/* The first samples update the cost each, then every SAMPLES_A_COST. */
#define SAMPLES_AT_FIRST	16
#define SAMPLES_A_COST		256

static void econ_samples_halve(struct econ_samples *all, unsigned int times)
{
	unsigned int i;

	all->kept = 0;
	for (i = 0; i < TOLLFREE_HISTOGRAM_BUCKETS; i++) {
		all->buckets[i] >>= times;
		all->kept += all->buckets[i];
	}
}

/* Return: whether a half-life is over. */
static bool econ_samples_age(struct econ_samples *all, u64 now)
{
	u64 times = now > all->aged_ns ? (now - all->aged_ns) / HALF_LIFE_NS : 0;

	if (!times)
		return false;
	all->aged_ns += times * HALF_LIFE_NS;
	econ_samples_halve(all, min_t(u64, times, 63));
	return true;
}

/**
 * econ_samples_add - add a sample
 * @all: the samples
 * @ns: the sample, in nanoseconds
 * @now: time, in nanoseconds
 *
 * Context: any; callers are serialised.
 * Return: true if econ_samples_cost() should be read again: it is not after each of many
 * samples.
 */
bool econ_samples_add(struct econ_samples *all, u64 ns, u64 now)
{
	bool is_due = econ_samples_age(all, now);

	all->buckets[tollfree_histogram_bucket(ns)] += WEIGHT;
	all->kept += WEIGHT;
	if (all->kept >= WEIGHT_KEPT)
		econ_samples_halve(all, 1);
	all->seen++;
	return is_due || all->seen <= SAMPLES_AT_FIRST || !(all->seen % SAMPLES_A_COST);
}

/**
 * econ_samples_cost - cost of the operation
 * @all: the samples
 *
 * Context: any.
 * Return: median of the samples by weight, in nanoseconds; 0 without any.
 */
u64 econ_samples_cost(const struct econ_samples *all)
{
	return tollfree_histogram_quantile(all->buckets, 5000);
}

/**
 * econ_samples_charge - charge successful attempts with those that failed before
 * @all: the samples
 * @ns: duration of the attempt; set to the sample
 * @is_made: whether the attempt succeeded
 * @cost: cost of a success so far
 *
 * A sample is the time of a success and of all failures since the last sample. Failures
 * are a sample by themselves once they took longer than the cost of a success:
 * otherwise an operation that always fails would keep its cost.
 *
 * Context: any; callers are serialised.
 * Return: true if @ns is a sample, for econ_samples_add().
 */
bool econ_samples_charge(struct econ_samples *all, u64 *ns, bool is_made, u64 cost)
{
	u64 total = econ_sum(all->failed_ns, *ns);

	if (!is_made && total <= cost) {
		all->failed_ns = total;
		return false;
	}
	all->failed_ns = 0;
	*ns = total;
	return true;
}
