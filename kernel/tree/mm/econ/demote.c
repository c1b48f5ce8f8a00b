// SPDX-License-Identifier: GPL-2.0-only
/*
 * Demotion: whether it pays to split a huge page that is mostly zeros.
 *
 * The shrinker of deferred splits knows only the page. Its mapping is found by the
 * reverse mapping: a page that several address spaces map, or that is not mapped by
 * one entry any more, is split as without econ.
 */

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "internal.h"

static unsigned int econ_count_empty_pages(struct folio *folio)
{
	unsigned int i, empty = 0;

	for (i = 0; i < folio_nr_pages(folio); i++)
		empty += pages_identical(folio_page(folio, i), ZERO_PAGE(0));
	return empty;
}

/*
 * Whether it pays to split the huge page of a region. @empty of its pages contain only
 * zeros. The anon_vma of @vma is locked.
 */
static bool econ_demotion_pays(struct vm_area_struct *vma, unsigned long address,
			       unsigned int empty)
{
	struct econ_action action = {
		.kind = ECON_DEMOTE, .order = HPAGE_PMD_ORDER, .empty = empty,
		/* Reclaim asks: memory is short. */
		.page_ns = READ_ONCE(econ_costs.ns[ECON_RECLAIM_PAGE]),
	};
	struct econ_mm *econ;
	struct econ_place place;

	if (econ_user_decided(vma))
		return true;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ)
		return true;
	econ_describe_place(econ, &place, &action);
	return econ_end_decision(econ, econ_decide_for_mm(econ, &action, address));
}

/* Stop at the first mapping: there are no others. */
static bool econ_ask_mapping(struct folio *folio, struct vm_area_struct *vma,
			     unsigned long address, void *arg)
{
	DEFINE_FOLIO_VMA_WALK(walk, folio, vma, address, 0);
	bool *go = arg, is_huge;

	if (!page_vma_mapped_walk(&walk))
		return true;
	is_huge = !walk.pte;
	page_vma_mapped_walk_done(&walk);
	if (is_huge && econ_is_asked(vma))
		*go = econ_demotion_pays(vma, address, econ_count_empty_pages(folio));
	return false;
}

bool __econ_may_demote(struct folio *folio)
{
	bool go = true;
	struct rmap_walk_control walk = {
		.arg = &go,
		.rmap_one = econ_ask_mapping,
		.try_lock = true,
	};

	if (folio_order(folio) != HPAGE_PMD_ORDER || !folio_trylock(folio))
		return true;
	if (folio_test_anon(folio) && folio_mapcount(folio) == 1)
		rmap_walk(folio, &walk);
	folio_unlock(folio);
	return go;
}
