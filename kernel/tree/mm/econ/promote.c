// SPDX-License-Identifier: GPL-2.0-only
/* Promotion: whether it pays that khugepaged collapses a region. */

#include <linux/mm.h>
#include <linux/rcupdate.h>

#include "internal.h"

bool __econ_may_promote(struct econ_promotion *it, struct vm_area_struct *vma,
			unsigned long address, int nid)
{
	struct econ_action action = {
		.kind = ECON_PROMOTE, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct econ_place place;
	bool may_explore, acts;

	if (econ_user_decided(vma))
		return true;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ)
		return true;
	econ_describe_place(econ, &place, &action);
	action.page_ns = econ_page_ns(vma->vm_mm, nid);
	econ_find_supply(econ, &place, nid, 0, &action);
	it->estimate = econ_estimate(&action, &econ_costs);
	/* An approved collapse is counted when it is done. */
	it->is_due = econ_judge(&action, it->estimate, &may_explore);
	if (it->is_due)
		return econ_end_decision(econ, true);
	acts = econ_effective_mode(econ) == ECON_ON;
	econ_book(ECON_PROMOTE, HPAGE_PMD_ORDER, address, &econ->ledger[ECON_PROMOTE],
		  it->estimate, false, acts);
	return econ_end_decision(econ, may_explore &&
				 econ_explore(&action, address, it->estimate, acts));
}

void __econ_promoted(const struct econ_promotion *it, struct mm_struct *mm,
		     unsigned long address)
{
	struct econ_mm *econ;

	guard(rcu)();
	econ = rcu_dereference(mm->econ);
	/* The profile may have been removed meanwhile. */
	if (econ)
		econ_book(ECON_PROMOTE, HPAGE_PMD_ORDER, address,
			  &econ->ledger[ECON_PROMOTE], it->estimate, true,
			  econ_effective_mode(econ) == ECON_ON);
}
