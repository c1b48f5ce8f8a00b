// SPDX-License-Identifier: MIT OR Apache-2.0
/* A helper of the cases: a child on another CPU that acts once in each round. */
#ifndef STALE_HELPER_H
#define STALE_HELPER_H

#include "stale_memory.h"

#include <sys/prctl.h>

/* A child, which acts once in each round. */
static struct helper {
	atomic_uint order, obeyed;
} *helper;

static void helper_new(void)
{
	helper = mmap(NULL, sizeof(*helper), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (helper == MAP_FAILED)
		fail("mmap");
}

static void helper_order(void)
{
	atomic_store(&helper->order, turn + 1);
}

static void helper_await(atomic_uint *value, unsigned int wanted)
{
	while (atomic_load(value) != wanted)
		usleep(200);
}

/* A little later than the order, on that CPU. */
static void helper_start(unsigned int cpu, void (*act)(void))
{
	helper_new();
	if (new_child())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	for (unsigned int order = 1;; order++) {
		helper_await(&helper->order, order);
		usleep(4000);
		act();
		atomic_store(&helper->obeyed, order);
	}
}

static void need_third_cpu(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		not_possible("this needs CPU 2");
}

static void helper_on_third_cpu(void (*act)(void))
{
	need_third_cpu();
	helper_start(2, act);
}

#endif
