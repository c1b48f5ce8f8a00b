// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decisions: look up the profile of an address, ask the model, and count the result.
 */

#include <linux/khugepaged.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "../internal.h"
#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/econ.h>

DEFINE_STATIC_KEY_FALSE(econ_key);

enum econ_mode econ_mode;
struct econ_costs econ_costs;
/* Decisions of the whole machine. */
struct econ_account econ_ledger[ECON_KINDS];

static enum econ_mode econ_effective_mode(const struct econ_mm *econ)
{
	enum econ_mode mode = READ_ONCE(econ->mode);

	return mode == ECON_AS_MACHINE ? READ_ONCE(econ_mode) : mode;
}

/* Whether blocks are kept, and the process may use them. */
static bool econ_acts(const struct econ_mm *econ)
{
	return econ_effective_mode(econ) == ECON_ON && READ_ONCE(econ_mode) == ECON_ON;
}

/* Profile */

/* Return: number of bytes of a range in a region. */
static u64 econ_bytes_in_region(unsigned long region, unsigned long begin,
				unsigned long end)
{
	begin = max(begin, region);
	end = min(end, region + HPAGE_PMD_SIZE);
	return begin < end ? end - begin : 0;
}

/* Profile of the region that an action is about. */
struct econ_place {
	struct econ_region region;
	const struct econ_row *row;
	u64 most;
};

static void econ_place_add_row(struct econ_place *place, const struct econ_row *row, u64 bytes)
{
	if (!bytes)
		return;
	econ_region_add(&place->region, row, bytes);
	if (bytes > place->most) {
		place->most = bytes;
		place->row = row;
	}
}

/*
 * Add the rows of a site that is not in the tree and begins at @base.
 *
 * Return: false if it has none at all.
 */
static bool econ_place_add_site(const struct econ_mm *econ, enum econ_site site,
				unsigned long base, unsigned long region,
				struct econ_place *place)
{
	struct econ_site_key key = { .site = site };
	const struct econ_row *row;
	u32 nr, at;

	row = econ_rows_of(&econ->holder->profile, &key, &nr);
	at = econ_row_from(row, nr, region > base ? region - base : 0);
	for (; at < nr && base + row[at].begin < region + HPAGE_PMD_SIZE; at++)
		econ_place_add_row(place, &row[at],
				   econ_bytes_in_region(region, base + row[at].begin,
							base + row[at].end));
	return nr;
}

/* Add the rows of mappings. Return: false if no mapping in the region has rows. */
static bool econ_place_add_mappings(struct econ_mm *econ, unsigned long region,
				    struct econ_place *place)
{
	unsigned long last = region + HPAGE_PMD_SIZE - 1;
	const struct econ_row *row;
	struct ma_state mas;

	mas_init(&mas, &econ->ranges, region);
	mas_for_each(&mas, row, last)
		econ_place_add_row(place, row,
				   econ_bytes_in_region(region, mas.index, mas.last + 1));
	if (place->row)
		return true;
	mas_init(&mas, &econ->mappings, region);
	return mas_find(&mas, last);
}

/*
 * Look up the profile of a region. RCU is locked.
 *
 * Return: false if the profile has no row for any site mapped there. Then it is of
 * another version or use of the program, and does not say that the mapping is worth
 * nothing.
 */
static bool econ_read_place(struct econ_mm *econ, const struct vm_area_struct *vma,
			    unsigned long region, struct econ_place *place)
{
	const struct mm_struct *mm = vma->vm_mm;
	unsigned long bss = PAGE_ALIGN(mm->end_data);
	bool is_known;

	*place = (struct econ_place){};
	if (region + HPAGE_PMD_SIZE > mm->start_brk && region < mm->brk)
		is_known = econ_place_add_site(econ, ECON_HEAP, mm->start_brk, region,
					       place);
	else if (vma->vm_start == bss)
		is_known = econ_place_add_site(econ, ECON_BSS, bss, region, place);
	else
		is_known = econ_place_add_mappings(econ, region, place);
	econ_region_fill(&place->region);
	return is_known;
}

/**
 * econ_free_blocks - number of free huge pages of a node
 * @nid: the node
 *
 * Context: any.
 * Return: number of blocks in zones above the low watermark, at which allocations
 * that do not wait stop.
 */
unsigned long econ_free_blocks(int nid)
{
	struct zone *zones = NODE_DATA(nid)->node_zones, *zone;
	unsigned long blocks = 0;
	unsigned int order;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++) {
		unsigned long in_zone = 0;

		/* Part of a low zone is reserved. */
		if (!populated_zone(zone) ||
		    !zone_watermark_ok(zone, HPAGE_PMD_ORDER,
				       low_wmark_pages(zone),
				       gfp_zone(GFP_TRANSHUGE_LIGHT), 0))
			continue;
		for (order = HPAGE_PMD_ORDER; order < NR_PAGE_ORDERS; order++)
			in_zone += READ_ONCE(zone->free_area[order].nr_free)
				   << (order - HPAGE_PMD_ORDER);
		blocks += in_zone;
	}
	return blocks;
}

/* Decisions */

/**
 * econ_count_ns - add to a saturating sum of nanoseconds
 * @sum: the sum
 * @ns: any number
 *
 * Context: any.
 */
void econ_count_ns(atomic64_t *sum, u64 ns)
{
	s64 old = atomic64_read(sum), new;

	do {
		new = min_t(u64, econ_sum(old, ns), S64_MAX);
	} while (!atomic64_try_cmpxchg(sum, &old, new));
}

static void econ_account_add(struct econ_account *account, struct econ_estimate it, bool go)
{
	atomic64_inc(&account->asked);
	if (go) {
		atomic64_inc(&account->approved);
		econ_count_ns(&account->cost, it.cost);
		econ_count_ns(&account->benefit, it.benefit);
	} else {
		econ_count_ns(&account->refused, it.benefit);
	}
}

static void econ_book(unsigned int kind, unsigned int order,
		      unsigned long address, struct econ_account *own,
		      struct econ_estimate it, bool acts)
{
	bool go = econ_pays(it);

	if (own)
		econ_account_add(own, it, go);
	econ_account_add(&econ_ledger[kind], it, go);
	trace_econ_decision(econ_models[kind]->name, order, address, it.cost,
			    it.benefit, go, acts);
}

/**
 * econ_decide - decide whether an action pays, and count the decision
 * @action: the action
 * @address: address of the action, or 0
 * @own: account of the process, or NULL
 * @acts: whether the decision takes effect, or is only observed
 *
 * Context: any.
 * Return: true if it pays.
 */
bool econ_decide(const struct econ_action *action, unsigned long address,
		 struct econ_account *own, bool acts)
{
	struct econ_estimate it = econ_estimate(action, &econ_costs);

	econ_book(action->kind, action->order, address, own, it, acts);
	return econ_pays(it);
}

static bool econ_decide_for_mm(struct econ_mm *econ, const struct econ_action *action,
			       unsigned long address)
{
	return econ_decide(action, address, &econ->ledger[action->kind],
			   econ_effective_mode(econ) == ECON_ON);
}

/* Count the first touch of a region. */
static void econ_count_touched(struct econ_mm *econ, const struct econ_place *place,
			       unsigned int rank, bool is_huge)
{
	u32 waiting = READ_ONCE(econ->waiting[rank]);

	if (place->row)
		atomic_inc(&econ->regions[place->row - econ->holder->rows][is_huge]);
	/* A race makes it wrong by one, but it is an estimate. */
	if (waiting)
		WRITE_ONCE(econ->waiting[rank], waiting - 1);
}

/* Fill in the profile, for the rest of the run. */
static void econ_describe_place(const struct econ_mm *econ, const struct econ_place *place,
				struct econ_action *action)
{
	action->walks_ns = econ_left_ns(place->region.walks_ns,
					econ->holder->profile.run_ns,
					ktime_get_ns() - econ->begin_ns);
	action->touched = min(place->region.touched, ECON_REGION_PAGES);
}

/* If the node is not known, assume that the allocator finds a block. */
static void econ_find_supply(const struct econ_mm *econ, unsigned int rank, int nid,
			     unsigned long zeroed, struct econ_action *action)
{
	unsigned long blocks;

	if (nid == NUMA_NO_NODE) {
		action->supply = ECON_FREE_BLOCK;
		return;
	}
	blocks = econ_free_blocks(nid) + zeroed;
	if (zeroed)
		action->supply = ECON_ZEROED_BLOCK;
	else
		action->supply = blocks ? ECON_FREE_BLOCK : ECON_NO_BLOCK;
	action->block_ns = econ_block_cost(econ->waiting, rank, blocks);
}

static bool econ_pays_with(struct econ_action action, enum econ_supply supply)
{
	action.supply = supply;
	return econ_pays(econ_estimate(&action, &econ_costs));
}

/* Whether the user has decided, or there is nothing to decide. */
static bool econ_user_decided(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_HUGEPAGE || !vma_is_anonymous(vma);
}

/* Decision points */

/* Return: the profile, with RCU locked, or NULL if there is none for the region. */
static struct econ_mm *econ_begin_decision(const struct vm_area_struct *vma,
					   unsigned long region, struct econ_place *place)
{
	struct econ_mm *econ;

	rcu_read_lock();
	econ = rcu_dereference(vma->vm_mm->econ);
	if (econ && econ_effective_mode(econ) != ECON_OFF &&
	    econ_read_place(econ, vma, region, place))
		return econ;
	rcu_read_unlock();
	return NULL;
}

/* In mode observe approve everything, as without econ. Unlocks RCU. */
static bool econ_end_decision(const struct econ_mm *econ, bool go)
{
	go |= econ_effective_mode(econ) != ECON_ON;
	rcu_read_unlock();
	return go;
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
	unsigned int rank = econ_rank(place->region.walks_ns);
	int nid = econ_node_of(vma, region);
	bool go;

	/* Look for a block only if the best one would pay. */
	action->supply = ECON_FREE_BLOCK;
	if (econ_pays_with(*action, ECON_ZEROED_BLOCK))
		econ_find_supply(econ, rank, nid,
				 econ_prezero_want(nid, econ_earned(econ, vma->vm_mm,
								    ECON_WORK_ZERO)),
				 action);
	go = econ_decide_for_mm(econ, action, region);
	econ_count_touched(econ, place, rank, go);
	if (!go && action->supply == ECON_NO_BLOCK)
		econ_lack_block(nid, econ_earned(econ, vma->vm_mm,
						 ECON_WORK_COMPACT), action,
				econ_effective_mode(econ) == ECON_ON);
	if (go && action->supply == ECON_ZEROED_BLOCK && !econ_acts(econ))
		econ_prezero_suppose_taken(nid);
	return go;
}

/* The huge zero page is cleared already, and shared. */
static bool econ_may_map_zero_page(struct econ_mm *econ, unsigned long region,
				   struct econ_action *action)
{
	action->supply = ECON_ZEROED_BLOCK;
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

	if (econ_user_decided(vma) ||
	    !thp_vma_suitable_order(vma, region, HPAGE_PMD_ORDER))
		return true;
	econ = econ_begin_decision(vma, region, &place);
	if (!econ)
		return true;
	econ_describe_place(econ, &place, &action);
	if (econ_maps_zero_page(vmf))
		go = econ_may_map_zero_page(econ, region, &action);
	else
		go = econ_may_take_block(econ, vma, region, &place, &action);
	go = econ_end_decision(econ, go);
	if (!go)
		econ_leave_to_khugepaged(vma->vm_mm);
	return go;
}

unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders,
			    enum econ_kind kind)
{
	struct vm_area_struct *vma = vmf->vma;
	struct econ_action action = { .kind = kind };
	unsigned long pays = 0;
	struct econ_mm *econ;
	struct econ_place place;

	if (econ_user_decided(vma))
		return orders;
	econ = econ_begin_decision(vma, vmf->address & HPAGE_PMD_MASK, &place);
	if (!econ)
		return orders;
	econ_describe_place(econ, &place, &action);
	action.supply = ECON_FREE_BLOCK;
	for_each_set_bit(action.order, &orders, HPAGE_PMD_ORDER) {
		if (econ_decide_for_mm(econ, &action, vmf->address))
			pays |= BIT(action.order);
	}
	return econ_end_decision(econ, false) ? orders : pays;
}

gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp)
{
	struct econ_action action = {
		.kind = ECON_DIRECT, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct econ_place place;

	if (econ_user_decided(vma) || !(gfp & __GFP_RECLAIM))
		return gfp;
	econ = econ_begin_decision(vma, address & HPAGE_PMD_MASK, &place);
	if (!econ)
		return gfp;
	econ_describe_place(econ, &place, &action);
	if (econ_end_decision(econ, econ_decide_for_mm(econ, &action, address)))
		return gfp;
	/* The ledger pays for background work; faults do not request it. */
	return gfp & ~__GFP_RECLAIM;
}

bool __econ_may_promote(struct econ_promotion *it, struct vm_area_struct *vma,
			unsigned long address, int nid)
{
	struct econ_action action = {
		.kind = ECON_PROMOTE, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct econ_place place;

	if (econ_user_decided(vma))
		return true;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ)
		return true;
	econ_describe_place(econ, &place, &action);
	econ_find_supply(econ, econ_rank(place.region.walks_ns), nid, 0, &action);
	it->estimate = econ_estimate(&action, &econ_costs);
	/* An approved collapse is counted when it is done. */
	it->is_due = econ_pays(it->estimate);
	if (!it->is_due)
		econ_book(ECON_PROMOTE, HPAGE_PMD_ORDER, address,
			  &econ->ledger[ECON_PROMOTE], it->estimate,
			  econ_effective_mode(econ) == ECON_ON);
	return econ_end_decision(econ, it->is_due);
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
			  &econ->ledger[ECON_PROMOTE], it->estimate,
			  econ_effective_mode(econ) == ECON_ON);
}

/**
 * econ_demotion_pays - whether to split a huge page
 * @vma: the mapping
 * @address: the region
 * @empty: number of its pages that contain only zeros
 *
 * Context: the anon_vma of @vma is locked; does not sleep.
 * Return: false if the split does not pay.
 */
bool econ_demotion_pays(struct vm_area_struct *vma, unsigned long address,
			unsigned int empty)
{
	struct econ_action action = {
		.kind = ECON_DEMOTE, .order = HPAGE_PMD_ORDER, .empty = empty,
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

struct folio *__econ_take_zeroed(struct vm_area_struct *vma,
				 unsigned long address)
{
	struct econ_mm *econ;
	struct econ_place place;

	if (econ_user_decided(vma))
		return NULL;
	econ = econ_begin_decision(vma, address, &place);
	if (!econ || econ_end_decision(econ, false))
		return NULL;
	return econ_prezero_take_block(econ_node_of(vma, address));
}
