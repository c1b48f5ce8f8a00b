// SPDX-License-Identifier: GPL-2.0-only
/* Tests of histogram.c with the kernel's own arithmetic. */

#include <kunit/test.h>
#include <linux/limits.h>

#include "histogram.h"

static void tollfree_test_bucket_inverts_low(struct kunit *test)
{
	unsigned int bucket;

	for (bucket = 0; bucket < TOLLFREE_HISTOGRAM_BUCKETS; bucket++) {
		u64 low = tollfree_histogram_low(bucket);

		KUNIT_EXPECT_EQ(test, tollfree_histogram_bucket(low), bucket);
		if (bucket)
			KUNIT_EXPECT_EQ(test, tollfree_histogram_bucket(low - 1), bucket - 1);
	}
	KUNIT_EXPECT_EQ(test, tollfree_histogram_bucket(U64_MAX), TOLLFREE_HISTOGRAM_BUCKETS - 1);
}

static void tollfree_test_quantile_of_one_value(struct kunit *test)
{
	static u64 counts[TOLLFREE_HISTOGRAM_BUCKETS];

	KUNIT_EXPECT_EQ(test, tollfree_histogram_quantile(counts, 5000), 0ULL);
	counts[tollfree_histogram_bucket(5)] = 1;
	KUNIT_EXPECT_EQ(test, tollfree_histogram_quantile(counts, 9999), 5ULL);
}

static struct kunit_case histogram_cases[] = {
	KUNIT_CASE(tollfree_test_bucket_inverts_low),
	KUNIT_CASE(tollfree_test_quantile_of_one_value),
	{}
};

static struct kunit_suite histogram_suite = {
	.name = "tollfree-histogram",
	.test_cases = histogram_cases,
};

kunit_test_suite(histogram_suite);
