// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a program uses what its profile says: huge pages that were made for a row are
 * observed by their accessed bits. If they are not accessed, the row is believed less.
 *
 * One region of each row is observed at a time, by the faults of other regions of the row,
 * because only these need the answer. The first fault after an interval clears the accessed
 * bit, and the first one after another interval tests it. An interval is a small share of the
 * profiled run, in CPU time of the program: a program that first fills its memory and
 * uses it afterwards is given time.
 */

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/page_idle.h>
#include <linux/pgtable.h>

#include <trace/events/econ.h>

#include "../internal.h"
#include "internal.h"

/* Number of intervals of a profiled run. */
#define INTERVALS_A_RUN	32

bool econ_observe_use = true;
atomic_long_t econ_observed[2];

/*
 * Test and clear the accessed bit of a huge page.
 *
 * Return: -1 if the address is in another mapping, or has no huge page any more.
 */
static int econ_test_accessed(struct vm_area_struct *vma, unsigned long address)
{
	spinlock_t *lock; /* of the page table */
	int young = -1;
	pmd_t *pmd;

	if (address < vma->vm_start || address + HPAGE_PMD_SIZE > vma->vm_end)
		return -1;
	pmd = mm_find_pmd(vma->vm_mm, address);
	if (!pmd)
		return -1;
	lock = pmd_lock(vma->vm_mm, pmd);
	if (pmd_trans_huge(*pmd)) {
		young = pmdp_clear_flush_young_notify(vma, address, pmd);
		/* Reclaim must not take the page for an unused one. */
		if (young)
			folio_set_young(pmd_folio(*pmd));
	}
	spin_unlock(lock);
	return young;
}

static void econ_count_use(struct econ_row_state *state, unsigned long region, bool is_used)
{
	WRITE_ONCE(state->observed, state->observed + 1);
	WRITE_ONCE(state->used, state->used + is_used);
	atomic_long_inc(&econ_observed[is_used]);
	trace_econ_observed(region, is_used);
}

/* The first look clears the accessed bit, and the second one tests it. */
static void econ_look_at_witness(struct econ_row_state *state, struct vm_area_struct *vma,
				 u64 age_ns)
{
	int young = econ_test_accessed(vma, state->witness);

	state->since_ns = age_ns;
	if (young >= 0 && !state->is_cleared) {
		state->is_cleared = true;
		return;
	}
	if (young >= 0)
		econ_count_use(state, state->witness, young);
	WRITE_ONCE(state->witness, 0);
}

/**
 * econ_test_use - test whether a region of a row is used
 * @econ: profile of the mm
 * @vma: the mapping that is about to get another region of the row
 * @place: profile of that region
 *
 * Context: a page fault, between econ_begin_decision() and econ_end_decision(); takes the
 * lock of a page table, may flush the TLB for a huge page.
 */
void econ_test_use(struct econ_mm *econ, struct vm_area_struct *vma,
		   const struct econ_place *place)
{
	struct econ_row_state *state;

	if (!place->row || !READ_ONCE(econ_observe_use))
		return;
	state = econ_row_state(econ, place->row);
	if (!READ_ONCE(state->witness) || atomic_xchg_acquire(&state->is_busy, 1))
		return;
	if (state->witness && place->age_ns - state->since_ns >=
	    econ->holder->profile.run_ns / INTERVALS_A_RUN)
		econ_look_at_witness(state, vma, place->age_ns);
	atomic_set_release(&state->is_busy, 0);
}

/**
 * econ_begin_use - observe a region that is about to become huge
 * @econ: profile of the mm
 * @place: profile of the region
 * @region: the region
 *
 * Nothing changes if another region of the row is observed already.
 *
 * Context: a page fault, between econ_begin_decision() and econ_end_decision().
 */
void econ_begin_use(struct econ_mm *econ, const struct econ_place *place,
		    unsigned long region)
{
	struct econ_row_state *state;

	if (!place->row || !READ_ONCE(econ_observe_use))
		return;
	state = econ_row_state(econ, place->row);
	if (READ_ONCE(state->witness) || atomic_xchg_acquire(&state->is_busy, 1))
		return;
	if (!state->witness) {
		state->since_ns = place->age_ns;
		state->is_cleared = false;
		WRITE_ONCE(state->witness, region);
	}
	atomic_set_release(&state->is_busy, 0);
}
