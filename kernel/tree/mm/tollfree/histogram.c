// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histograms of 64-bit values: pages per drain, cycles per fault.
 *
 * The resolution is an eighth of the value; small values are exact. This file contains
 * arithmetic only: tools/testing/tollfree builds and tests it in user space.
 */

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/math.h>

#include "histogram.h"

#define SUB_BUCKETS	BIT(TOLLFREE_HISTOGRAM_SHIFT)
#define PERMYRIAD	10000U

/**
 * tollfree_histogram_bucket - bucket of a value
 * @value: any value
 *
 * Context: any.
 * Return: a number below %TOLLFREE_HISTOGRAM_BUCKETS that does not fall as
 * @value grows.
 */
unsigned int tollfree_histogram_bucket(u64 value)
{
	unsigned int shift;

	if (value < SUB_BUCKETS)
		return value;
	/* The bits below the TOLLFREE_HISTOGRAM_SHIFT + 1 highest ones. */
	shift = fls64(value) - 1 - TOLLFREE_HISTOGRAM_SHIFT;
	return (shift << TOLLFREE_HISTOGRAM_SHIFT) + (value >> shift);
}

/**
 * tollfree_histogram_low - smallest value of a bucket
 * @bucket: number below %TOLLFREE_HISTOGRAM_BUCKETS
 *
 * Context: any.
 * Return: the smallest value for which tollfree_histogram_bucket() returns @bucket.
 */
u64 tollfree_histogram_low(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < SUB_BUCKETS)
		return bucket;
	shift = (bucket >> TOLLFREE_HISTOGRAM_SHIFT) - 1;
	return (u64)(SUB_BUCKETS + bucket % SUB_BUCKETS) << shift;
}

static u64 tollfree_histogram_high(unsigned int bucket)
{
	if (bucket == TOLLFREE_HISTOGRAM_BUCKETS - 1)
		return U64_MAX;
	return tollfree_histogram_low(bucket + 1) - 1;
}

/**
 * tollfree_histogram_quantile - quantile of a histogram
 * @counts: count of each bucket; their sum is below 2^50
 * @permyriad: number of values in 10,000 that do not exceed it: 9,999 for p99.99
 *
 * Context: any.
 * Return: largest value of the bucket that contains the quantile, 0 if the histogram is
 * empty.
 */
u64 tollfree_histogram_quantile(const u64 *counts, unsigned int permyriad)
{
	u64 total = 0, wanted, seen = 0;
	unsigned int bucket;

	for (bucket = 0; bucket < TOLLFREE_HISTOGRAM_BUCKETS; bucket++)
		total += counts[bucket];
	wanted = DIV_ROUND_UP(total * permyriad, PERMYRIAD);
	if (!wanted)
		return 0;
	for (bucket = 0; seen + counts[bucket] < wanted; bucket++)
		seen += counts[bucket];
	return tollfree_histogram_high(bucket);
}
