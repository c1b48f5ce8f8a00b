/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of the histogram. */
#include "../histogram.h"

#include "../../user/tests/check.h"

static void buckets(void)
{
	EXPECT("exact", histogram_bucket(63), 63);
	EXPECT("the first of two", histogram_bucket(128), histogram_bucket(129));
	EXPECT("the next two", histogram_bucket(130), histogram_bucket(129) + 1);
	EXPECT("the last of all", histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	for (unsigned int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		EXPECT("its smallest value", histogram_bucket(histogram_low(bucket)), bucket);
		if (bucket)
			EXPECT("the value before", histogram_bucket(histogram_low(bucket) - 1),
			       bucket - 1);
	}
}

static void adding(void)
{
	static struct histogram histogram;

	histogram_add(&histogram, 200);
	histogram_add(&histogram, 201);
	histogram_add(&histogram, 7);
	EXPECT("two of one", histogram.counts[histogram_bucket(200)], 2);
	EXPECT("one", histogram.counts[7], 1);
	EXPECT("max", histogram.max, 201);
}

int main(void)
{
	buckets();
	adding();
	return finish("system/histogram");
}
