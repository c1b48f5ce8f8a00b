// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mm/tollfree/histogram.c. */

#include "tollfree/histogram.c"

#include "tap.h"

#include <string.h>

static u64 counts[TOLLFREE_HISTOGRAM_BUCKETS];

static void buckets_are_exact_when_small(void)
{
	for (u64 value = 0; value < 16; value++) {
		EXPECT_EQ(tollfree_histogram_bucket(value), value);
		EXPECT_EQ(tollfree_histogram_low(value), value);
	}
	EXPECT_EQ(tollfree_histogram_bucket(16), tollfree_histogram_bucket(17));
}

static void every_value_is_in_its_bucket(void)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int step = -1; step <= 1; step++) {
			u64 value = (1ULL << bit) + step;
			unsigned int bucket = tollfree_histogram_bucket(value);
			u64 low = tollfree_histogram_low(bucket);
			u64 high = tollfree_histogram_high(bucket);

			EXPECT_EQ(bucket < TOLLFREE_HISTOGRAM_BUCKETS, true);
			EXPECT_EQ(low <= value, true);
			EXPECT_EQ(value <= high, true);
			/* The resolution is an eighth. */
			EXPECT_EQ(high - low <= value / 8, true);
		}
	}
}

static void buckets_follow_each_other(void)
{
	for (unsigned int bucket = 1; bucket < TOLLFREE_HISTOGRAM_BUCKETS; bucket++) {
		u64 low = tollfree_histogram_low(bucket);

		EXPECT_EQ(tollfree_histogram_bucket(low), bucket);
		EXPECT_EQ(tollfree_histogram_bucket(low - 1), bucket - 1);
	}
	EXPECT_EQ(tollfree_histogram_bucket(U64_MAX), TOLLFREE_HISTOGRAM_BUCKETS - 1);
}

static void quantiles_round_up(void)
{
	memset(counts, 0, sizeof(counts));
	EXPECT_EQ(tollfree_histogram_quantile(counts, 9999), 0);
	counts[tollfree_histogram_bucket(3)] = 9899;
	counts[tollfree_histogram_bucket(100)] = 100;
	counts[tollfree_histogram_bucket(U64_MAX)] = 1;
	EXPECT_EQ(tollfree_histogram_quantile(counts, 5000), 3);
	EXPECT_EQ(tollfree_histogram_quantile(counts, 9899), 3);
	EXPECT_EQ(tollfree_histogram_quantile(counts, 9900), 103);
	EXPECT_EQ(tollfree_histogram_quantile(counts, 9999), 103);
	EXPECT_EQ(tollfree_histogram_quantile(counts, 10000), U64_MAX);
}

int main(void)
{
	RUN(buckets_are_exact_when_small);
	RUN(every_value_is_in_its_bucket);
	RUN(buckets_follow_each_other);
	RUN(quantiles_round_up);
	return tap_end();
}
