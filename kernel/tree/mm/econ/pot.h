/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time that is set aside: what was lost for want of a block, and what may be spent in
 * the background for those that lost it.
 *
 * A pot holds no more than ECON_NEVER_NS, and what is not used loses half of itself
 * every 17 seconds: a profile is only a claim, and no claim of one process may keep
 * the machine at work for longer. How long work takes is known when it is done: what
 * it takes more than there was is owed, and is paid from what comes in next.
 * tools/testing/tollfree tests this in user space.
 */
#ifndef _MM_ECON_POT_H
#define _MM_ECON_POT_H

#include <linux/minmax.h>

#include "model.h"

/* As a power of two, in nanoseconds. */
#define ECON_POT_HALF_LIFE	34

/**
 * struct econ_pot - time that is set aside
 * @ns: how much, as of @faded_ns
 * @owed_ns: how much more was spent, also as of then; one of both is 0
 * @faded_ns: until when it was halved
 *
 * The owner has a lock for it.
 */
struct econ_pot {
	u64 ns;
	u64 owed_ns;
	u64 faded_ns;
};

static inline void econ_pot_fade(struct econ_pot *pot, u64 now_ns)
{
	u64 lives = (now_ns - pot->faded_ns) >> ECON_POT_HALF_LIFE;

	/* Two CPUs may read their clocks and come in another order. */
	if (now_ns < pot->faded_ns)
		return;
	lives = min(lives, 63ULL);
	pot->ns >>= lives;
	pot->owed_ns >>= lives;
	pot->faded_ns += lives << ECON_POT_HALF_LIFE;
}

static inline void econ_pot_add(struct econ_pot *pot, u64 ns, u64 now_ns)
{
	u64 repaid;

	econ_pot_fade(pot, now_ns);
	repaid = min(ns, pot->owed_ns);
	pot->owed_ns -= repaid;
	pot->ns = min(econ_sum(pot->ns, ns - repaid), ECON_NEVER_NS);
}

static inline void econ_pot_take(struct econ_pot *pot, u64 ns, u64 now_ns)
{
	u64 had;

	econ_pot_fade(pot, now_ns);
	had = min(pot->ns, ns);
	pot->ns -= had;
	pot->owed_ns = min(econ_sum(pot->owed_ns, ns - had), ECON_NEVER_NS);
}

static inline void econ_pot_forget(struct econ_pot *pot)
{
	pot->ns = 0;
	pot->owed_ns = 0;
}

static inline u64 econ_pot_read(struct econ_pot *pot, u64 now_ns)
{
	econ_pot_fade(pot, now_ns);
	return pot->ns;
}

#endif /* _MM_ECON_POT_H */
