// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decisions in page faults: huge pages, blocks of several pages, and how much a fault
 * may do to get one.
 */

#include <linux/gfp.h>
#include <linux/khugepaged.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "../internal.h"
#include "internal.h"

bool econ_decide_all_stalls = true;
bool econ_make_in_faults = true;

/* Whether blocks are kept, and the process may use them. */
static bool econ_acts(const struct econ_mm *econ)
{
	return econ_effective_mode(econ) == ECON_ON && READ_ONCE(econ_mode) == ECON_ON;
}

/* The region waits for no block any more. */
static void econ_touch(struct econ_mm *econ, const struct econ_place *place,
		       unsigned long region)
{
	if (place->row)
		econ_waiting_touch(econ->waiting, &econ->holder->profile, place->row,
				   region > place->begin ? region - place->begin : 0);
}

/* Count a touch of a region without memory. */
static void econ_count_touched(struct econ_mm *econ, const struct econ_place *place,
			       unsigned long region, bool is_huge)
{
	if (place->row) {
		struct econ_row_state *state = econ_row_state(econ, place->row);

		atomic_inc(is_huge ? &state->huge : &state->small);
	}
	econ_touch(econ, place, region);
}

static bool econ_pays_with(struct econ_action action, enum econ_supply supply)
{
	action.supply = supply;
	return econ_pays(econ_estimate(&action, &econ_costs));
}

/*
 * khugepaged may collapse the region later. Without this it learns of an address
 * space only when a huge page was tried.
 */
static void econ_leave_to_khugepaged(struct mm_struct *mm)
{
	if (!test_bit(MMF_VM_HUGEPAGE, &mm->flags))
		__khugepaged_enter(mm);
}

/*
 * A read fault maps the huge zero page, which takes no block, unless use_zero_page is
 * 0, as on machines below 512 MiB.
 */
static bool econ_maps_zero_page(const struct vm_fault *vmf)
{
	return !(vmf->flags & FAULT_FLAG_WRITE) &&
	       !mm_forbids_zeropage(vmf->vma->vm_mm) &&
	       transparent_hugepage_use_zero_page();
}

static bool econ_may_take_block(struct econ_mm *econ, struct vm_area_struct *vma,
				unsigned long region, const struct econ_place *place,
				struct econ_action *action)
{
	int nid = econ_node_of(vma, region);
	bool go;

	/* Look for a block only if the best one would pay. */
	action->supply = ECON_FREE_BLOCK;
	action->page_ns = econ_page_ns(vma->vm_mm, nid);
	if (econ_pays_with(*action, ECON_ZEROED_BLOCK))
		econ_find_supply(econ, place, nid,
				 econ_prezero_want(nid, econ_earned(econ, vma->vm_mm,
								    ECON_WORK_ZERO),
						   econ_weight(vma->vm_mm)),
				 action);
	go = econ_decide_for_mm(econ, action, region);
	econ_count_touched(econ, place, region, go);
	if (go)
		econ_begin_use(econ, place, region);
	if (!go && (action->supply == ECON_NO_BLOCK || action->supply == ECON_MADE_BLOCK))
		econ_want_block(nid, econ, vma->vm_mm, action);
	if (go && action->supply == ECON_ZEROED_BLOCK && !econ_acts(econ))
		econ_prezero_suppose_taken(nid);
	return go;
}

/* The huge zero page is cleared already, and shared. */
static bool econ_may_map_zero_page(struct econ_mm *econ, unsigned long region,
				   const struct econ_place *place,
				   struct econ_action *action)
{
	action->supply = ECON_ZEROED_BLOCK;
	econ_touch(econ, place, region);
	return econ_decide_for_mm(econ, action, region);
}

bool __econ_may_be_huge(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long region = vmf->address & HPAGE_PMD_MASK;
	struct econ_action action = {
		.kind = ECON_HUGE, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct econ_place place;
	bool go;

	current->econ.block = 0;
	if (econ_user_decided(vma) ||
	    !thp_vma_suitable_order(vma, region, HPAGE_PMD_ORDER))
		return true;
	econ = econ_begin_decision(vma, region, &place);
	if (!econ)
		return true;
	econ_test_use(econ, vma, &place);
	econ_describe_place(econ, &place, &action);
	if (econ_maps_zero_page(vmf))
		go = econ_may_map_zero_page(econ, region, &place, &action);
	else
		go = econ_may_take_block(econ, vma, region, &place, &action);
	go = econ_end_decision(econ, go);
	if (!go)
		econ_leave_to_khugepaged(vma->vm_mm);
	return go;
}

/*
 * Blocks of each order that are free cost nothing; a smaller one may be cut from a huge
 * block that another region waits for.
 */
static u64 econ_piece_cost(const struct econ_mm *econ, const struct econ_place *place,
			   int nid, unsigned int order)
{
	if (nid == NUMA_NO_NODE || econ_has_piece(nid, order))
		return 0;
	return econ_piece_value(econ_block_value(econ, place, econ_free_blocks(nid)),
				order);
}

unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders,
			    enum econ_kind kind)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long region = vmf->address & HPAGE_PMD_MASK, pays = 0;
	struct econ_action action = { .kind = kind };
	struct econ_mm *econ;
	struct econ_place place;
	int nid;

	if (econ_user_decided(vma))
		return orders;
	econ = econ_begin_decision(vma, region, &place);
	if (!econ)
		return orders;
	econ_describe_place(econ, &place, &action);
	action.supply = ECON_FREE_BLOCK;
	nid = econ_node_of(vma, vmf->address);
	action.page_ns = econ_page_ns(vma->vm_mm, nid);
	for_each_set_bit(action.order, &orders, HPAGE_PMD_ORDER) {
		action.block_ns = econ_piece_cost(econ, &place, nid, action.order);
		if (econ_decide_for_mm(econ, &action, vmf->address))
			pays |= BIT(action.order);
	}
	return econ_end_decision(econ, false) ? orders : pays;
}

/* Mode of the decisions about an mm, with a profile or without. */
static enum econ_mode econ_mode_of(const struct mm_struct *mm)
{
	const struct econ_mm *econ;

	guard(rcu)();
	econ = rcu_dereference(mm->econ);
	return econ ? econ_effective_mode(econ) : READ_ONCE(econ_mode);
}

/*
 * No row describes the region: there is no evidence that a huge page saves more than
 * the faults of its pages.
 */
static bool econ_may_stall_unknown(const struct vm_area_struct *vma,
				   unsigned long address,
				   const struct econ_action *action)
{
	enum econ_mode mode = econ_mode_of(vma->vm_mm);

	if (mode == ECON_OFF)
		return true;
	return econ_decide(action, address, NULL, mode == ECON_ON) || mode != ECON_ON;
}

gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp)
{
	struct econ_action action = {
		.kind = ECON_DIRECT, .order = HPAGE_PMD_ORDER,
	};
	bool is_advised = vma->vm_flags & VM_HUGEPAGE;
	bool decides_all = READ_ONCE(econ_decide_all_stalls);
	struct econ_place place;
	struct econ_mm *econ;

	if (!(gfp & __GFP_RECLAIM) || !vma_is_anonymous(vma) ||
	    (is_advised && !decides_all))
		return gfp;
	econ = econ_begin_decision(vma, address & HPAGE_PMD_MASK, &place);
	if (econ)
		econ_describe_place(econ, &place, &action);
	/* The user expects to use all of it. */
	if (is_advised)
		action.touched = ECON_REGION_PAGES;
	if (econ && econ_end_decision(econ, econ_decide_for_mm(econ, &action, address)))
		return gfp;
	/* The ledger pays for background work; faults do not request it. */
	if (econ)
		return gfp & ~__GFP_RECLAIM;
	if (!(gfp & __GFP_DIRECT_RECLAIM) || !decides_all ||
	    econ_may_stall_unknown(vma, address, &action))
		return gfp;
	/* No ledger pays: stock code works in the background, as with defrag=defer. */
	return (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_KSWAPD_RECLAIM;
}

static struct folio *econ_take_zeroed(struct vm_area_struct *vma,
				      unsigned long address)
{
	struct econ_mm *econ;
	struct econ_place place;
	unsigned int weight;

	if (econ_user_decided(vma))
		return NULL;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ)
		return NULL;
	weight = econ_weight(vma->vm_mm);
	if (econ_end_decision(econ, false))
		return NULL;
	return econ_prezero_take_block(econ_node_of(vma, address), weight);
}

/*
 * A fault took the last block, so that the next one would lack one, or memory that the
 * user advised got none. Any other region that lacks a block was refused before.
 */
static void econ_lack_block(struct vm_area_struct *vma, unsigned long region, int nid,
			    enum econ_supply supply)
{
	struct econ_action action = {
		.kind = ECON_HUGE, .order = HPAGE_PMD_ORDER, .supply = supply,
	};
	struct econ_place place;
	struct econ_mm *econ = econ_begin_decision(vma, region, &place);

	if (!econ)
		return;
	econ_describe_place(econ, &place, &action);
	/* The user expects to use all of it. */
	if (econ_user_decided(vma))
		action.touched = ECON_REGION_PAGES;
	action.page_ns = econ_page_ns(vma->vm_mm, nid);
	econ_want_block(nid, econ, vma->vm_mm, &action);
	econ_end_decision(econ, true);
}

/* Choose the block to make for a huge page about which econ did not decide before. */
static bool econ_choose_if_pays(struct econ_mm *econ, struct vm_area_struct *vma, int nid,
				const struct econ_place *place, struct econ_block *blocks)
{
	struct econ_action action = {
		.kind = ECON_HUGE, .order = HPAGE_PMD_ORDER, .supply = ECON_MADE_BLOCK,
	};

	if (!econ_choose_in_node(nid, blocks))
		return false;
	econ_describe_place(econ, place, &action);
	/* The user expects to use all of it. */
	if (econ_user_decided(vma))
		action.touched = ECON_REGION_PAGES;
	action.in_way = econ_paid_pages(blocks[0].in_way);
	return econ_pays(econ_estimate(&action, &econ_costs));
}

/*
 * There is no free block. Make one, if it is known which pages are in its way, and the
 * huge page pays for moving them.
 */
static bool econ_make_for_fault(struct vm_area_struct *vma, unsigned long address, int nid)
{
	struct econ_block blocks[ECON_BLOCKS];
	struct econ_watch watch;
	struct econ_place place;
	struct econ_mm *econ;
	unsigned int made;
	bool go;

	if (!READ_ONCE(econ_make_in_faults) || nid == NUMA_NO_NODE)
		return false;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ)
		return false;
	go = econ_acts(econ);
	if (go && current->econ.block)
		go = econ_recall_block(blocks);
	else if (go)
		go = econ_choose_if_pays(econ, vma, nid, &place, blocks);
	econ_end_decision(econ, go);
	if (!go)
		return false;
	econ_fault_saw(ECON_SAW_COMPACTION);
	econ_watch_begin(&watch);
	made = econ_make_blocks(page_zone(pfn_to_page(blocks[0].begin)), blocks, 1);
	if (watch.is_on)
		__econ_compacted(&watch, HPAGE_PMD_ORDER, econ_paid_pages(blocks[0].in_way), made);
	return made;
}

struct folio *__econ_alloc_huge(gfp_t gfp, struct vm_area_struct *vma,
				unsigned long address)
{
	struct folio *folio = econ_take_zeroed(vma, address);
	int nid;

	if (!folio)
		folio = vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address, true);
	if (!folio) {
		nid = econ_node_of(vma, address);
		if (econ_make_for_fault(vma, address, nid))
			folio = vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address, true);
	}
	nid = folio ? folio_nid(folio) : econ_node_of(vma, address);
	if (folio && !econ_free_blocks(nid))
		econ_lack_block(vma, address, nid, ECON_FREE_BLOCK);
	else if (!folio && nid != NUMA_NO_NODE && econ_user_decided(vma))
		econ_lack_block(vma, address, nid, ECON_NO_BLOCK);
	return folio;
}
