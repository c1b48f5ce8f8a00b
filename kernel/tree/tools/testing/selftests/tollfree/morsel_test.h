/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of morsels. */
#ifndef TOLLFREE_MORSEL_TEST_H
#define TOLLFREE_MORSEL_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "test.h"

#define MIB	0x100000UL
#define SYSFS	"/sys/kernel/mm/morsel/"
#define ALL	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static inline long count(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), SYSFS "%s", name);
	return number(path);
}

/* Other threads access the same memory. */
static inline uint64_t load(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_SEQ_CST);
}

static inline void store(void *at, uint64_t word)
{
	__atomic_store_n((uint64_t *)at, word, __ATOMIC_SEQ_CST);
}

static __thread sigjmp_buf behind;

static inline void jump(int signal)
{
	(void)signal;
	siglongjmp(behind, 1);
}

/*
 * Whether an address is backed: not beyond the end, nor on a full mount. SIGBUS has
 * to call jump().
 */
static inline bool try_to_load(const void *at, uint64_t *word)
{
	if (sigsetjmp(behind, 1))
		return false;
	*word = load(at);
	return true;
}

static inline bool try_to_store(void *at, uint64_t word)
{
	if (sigsetjmp(behind, 1))
		return false;
	store(at, word);
	return true;
}

#endif
