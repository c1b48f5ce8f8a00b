/* SPDX-License-Identifier: GPL-2.0-only */
/* A histogram of 64-bit values: see histogram.h. */
#include "histogram.h"

unsigned int histogram_bucket(uint64_t value)
{
	unsigned int power;

	if (value < HISTOGRAM_STEPS)
		return value;
	power = 63 - __builtin_clzll(value);
	return (power - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS +
	       (value >> (power - HISTOGRAM_BITS) & (HISTOGRAM_STEPS - 1));
}

uint64_t histogram_low(unsigned int bucket)
{
	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	return (uint64_t)(HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS)
	       << (bucket / HISTOGRAM_STEPS - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->counts[histogram_bucket(value)]++;
	if (value > histogram->max)
		histogram->max = value;
}
