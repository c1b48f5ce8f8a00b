/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets of time: the benefit that was lost for lack of a block, and the time that
 * background work may use for the processes that lost it.
 *
 * A pot holds at most ECON_NEVER_NS, and its content halves every 17 seconds: a profile
 * is only a claim, and must not keep the machine busy for longer. The duration of work
 * is known at its end: an overdraft becomes a debt that later additions repay.
 * tools/testing/tollfree tests this in user space.
 */
#ifndef _MM_ECON_POT_H
#define _MM_ECON_POT_H

#include <linux/minmax.h>

#include "model.h"

/* Half-life: binary logarithm of nanoseconds. */
#define ECON_POT_HALF_LIFE	34

/**
 * struct econ_pot - budget of time
 * @ns: content as of @faded_ns
 * @owed_ns: debt as of @faded_ns; one of both is 0
 * @faded_ns: time up to which decay was applied
 *
 * The user serialises accesses.
 */
struct econ_pot {
	u64 ns;
	u64 owed_ns;
	u64 faded_ns;
};

/**
 * econ_pot_fade - apply the decay of a pot
 * @pot: the pot
 * @now_ns: current time
 *
 * Context: any; the caller serialises.
 */
static inline void econ_pot_fade(struct econ_pot *pot, u64 now_ns)
{
	u64 lives = (now_ns - pot->faded_ns) >> ECON_POT_HALF_LIFE;

	/* Two CPUs may read their clocks and get here in another order. */
	if (now_ns < pot->faded_ns)
		return;
	lives = min(lives, 63ULL);
	pot->ns >>= lives;
	pot->owed_ns >>= lives;
	pot->faded_ns += lives << ECON_POT_HALF_LIFE;
}

/**
 * econ_pot_add - add time to a pot, and repay its debt first
 * @pot: the pot
 * @ns: time to add
 * @now_ns: current time
 *
 * Context: any; the caller serialises.
 */
static inline void econ_pot_add(struct econ_pot *pot, u64 ns, u64 now_ns)
{
	u64 repaid;

	econ_pot_fade(pot, now_ns);
	repaid = min(ns, pot->owed_ns);
	pot->owed_ns -= repaid;
	pot->ns = min(econ_sum(pot->ns, ns - repaid), ECON_NEVER_NS);
}

/**
 * econ_pot_take - spend time of a pot, or add to its debt
 * @pot: the pot
 * @ns: time to spend
 * @now_ns: current time
 *
 * Context: any; the caller serialises.
 */
static inline void econ_pot_take(struct econ_pot *pot, u64 ns, u64 now_ns)
{
	u64 had;

	econ_pot_fade(pot, now_ns);
	had = min(pot->ns, ns);
	pot->ns -= had;
	pot->owed_ns = min(econ_sum(pot->owed_ns, ns - had), ECON_NEVER_NS);
}

/**
 * econ_pot_forget - empty a pot and cancel its debt
 * @pot: the pot
 *
 * Context: any; the caller serialises.
 */
static inline void econ_pot_forget(struct econ_pot *pot)
{
	pot->ns = 0;
	pot->owed_ns = 0;
}

/**
 * econ_pot_read - read the content of a pot
 * @pot: the pot
 * @now_ns: current time
 *
 * Context: any; the caller serialises.
 * Return: nanoseconds, 0 if the pot has a debt.
 */
static inline u64 econ_pot_read(struct econ_pot *pot, u64 now_ns)
{
	econ_pot_fade(pot, now_ns);
	return pot->ns;
}

#endif /* _MM_ECON_POT_H */
