/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of 64-bit values: each power of two has 16 buckets of equal
 * width, so that a value is known to 1/16 of itself; values below 16 are exact.
 */
#ifndef TOLL_HISTOGRAM_H
#define TOLL_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 16 + 60 * 16 };

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t max;
};

unsigned int histogram_bucket(uint64_t value);
/* The smallest value of a bucket. */
uint64_t histogram_low(unsigned int bucket);
void histogram_add(struct histogram *histogram, uint64_t value);

#endif
