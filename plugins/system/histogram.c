/* SPDX-License-Identifier: GPL-2.0-only */
/* A histogram of 64-bit values: see histogram.h. */
#include "histogram.h"

unsigned int histogram_bucket(uint64_t value)
{
	unsigned int power;

	if (value < 16)
		return value;
	power = 63 - __builtin_clzll(value);
	return (power - 3) * 16 + (value >> (power - 4) & 15);
}

uint64_t histogram_low(unsigned int bucket)
{
	if (bucket < 16)
		return bucket;
	return (uint64_t)(16 + bucket % 16) << (bucket / 16 - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->counts[histogram_bucket(value)]++;
	if (value > histogram->max)
		histogram->max = value;
}
