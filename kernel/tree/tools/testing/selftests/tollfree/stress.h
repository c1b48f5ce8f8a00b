/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the stress tests. */
#ifndef TOLLFREE_STRESS_H
#define TOLLFREE_STRESS_H

#include <stdint.h>
#include <stdio.h>

#include "test.h"

/* Different in each process. */
static uint64_t seed = 88172645463325252ULL;

static inline uint32_t any(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) % below;
}

#endif
