/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of 64-bit values: each power of two has 64 buckets of equal width, so that
 * the relative error of a value is at most 1/64; values below 64 are exact.
 */
#ifndef TOLL_HISTOGRAM_H
#define TOLL_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BITS = 6, HISTOGRAM_STEPS = 1 << HISTOGRAM_BITS };
enum { HISTOGRAM_BUCKETS = (65 - HISTOGRAM_BITS) * HISTOGRAM_STEPS };

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t max;
};

unsigned int histogram_bucket(uint64_t value);
/* Returns the smallest value of a bucket. */
uint64_t histogram_low(unsigned int bucket);
void histogram_add(struct histogram *histogram, uint64_t value);

#endif
