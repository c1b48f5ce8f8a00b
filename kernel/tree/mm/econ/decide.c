// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decisions: what is known of an address, what the models make of it, and what is
 * remembered of that.
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
struct econ_prices econ_prices;
/* Of the whole machine. */
struct econ_account econ_ledger[ECON_KINDS];

static enum econ_mode mode_of(const struct econ_mm *econ)
{
	enum econ_mode mode = READ_ONCE(econ->mode);

	return mode == ECON_AS_MACHINE ? READ_ONCE(econ_mode) : mode;
}

/* What is known */

/* What is left of a range, in a region. */
static u64 bytes_in(unsigned long region, unsigned long begin,
		    unsigned long end)
{
	begin = max(begin, region);
	end = min(end, region + HPAGE_PMD_SIZE);
	return begin < end ? end - begin : 0;
}

/* What an action is about: an address, and what is known of it. */
struct place {
	struct econ_region region;
	const struct econ_row *row;
	u64 most;
};

static void add(struct place *place, const struct econ_row *row, u64 bytes)
{
	if (!bytes)
		return;
	econ_region_add(&place->region, row, bytes);
	if (bytes > place->most) {
		place->most = bytes;
		place->row = row;
	}
}

/* The rows of something that began at an address and is not in the tree. */
static void look_at_anchor(const struct econ_mm *econ, enum econ_anchor anchor,
			   unsigned long base, unsigned long region,
			   struct place *place)
{
	struct econ_anchor_key key = { .anchor = anchor };
	const struct econ_row *row;
	u32 nr, low = 0, high;

	row = econ_rows_of(&econ->holder->profile, &key, &nr);
	high = nr;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (base + row[middle].end <= region)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < nr && base + row[low].begin < region + HPAGE_PMD_SIZE;
	     low++)
		add(place, &row[low], bytes_in(region, base + row[low].begin,
					       base + row[low].end));
}

/* RCU is locked. */
static void look(struct econ_mm *econ, const struct vm_area_struct *vma,
		 unsigned long region, struct place *place)
{
	const struct mm_struct *mm = vma->vm_mm;
	unsigned long bss = PAGE_ALIGN(mm->end_data);

	*place = (struct place){};
	if (region + HPAGE_PMD_SIZE > mm->start_brk && region < mm->brk) {
		look_at_anchor(econ, ECON_HEAP, mm->start_brk, region, place);
	} else if (vma->vm_start == bss) {
		look_at_anchor(econ, ECON_BSS, bss, region, place);
	} else {
		const struct econ_row *row;
		struct ma_state mas;

		mas_init(&mas, &econ->ranges, region);
		mas_for_each(&mas, row, region + HPAGE_PMD_SIZE - 1)
			add(place, row,
			    bytes_in(region, mas.index, mas.last + 1));
	}
}

/**
 * econ_free_blocks - how many huge pages a node has free
 * @nid: the node
 *
 * Return: those above the low watermark, where an allocation that does not wait
 * stops.
 */
unsigned long econ_free_blocks(int nid)
{
	struct zone *zones = NODE_DATA(nid)->node_zones, *zone;
	unsigned long blocks = 0;
	unsigned int order;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++) {
		unsigned long in_zone = 0;

		if (!populated_zone(zone) ||
		    !zone_watermark_ok(zone, HPAGE_PMD_ORDER,
				       low_wmark_pages(zone),
				       zone_idx(zone), 0))
			continue;
		for (order = HPAGE_PMD_ORDER; order < NR_PAGE_ORDERS; order++)
			in_zone += READ_ONCE(zone->free_area[order].nr_free)
				   << (order - HPAGE_PMD_ORDER);
		blocks += in_zone;
	}
	return blocks;
}

/* What is decided */

static void book(struct econ_account *account, struct econ_estimate it, bool go)
{
	atomic64_inc(&account->asked);
	if (go) {
		atomic64_inc(&account->gone);
		atomic64_add(it.cost, &account->cost);
		atomic64_add(it.benefit, &account->benefit);
	} else {
		atomic64_add(it.benefit, &account->refused);
	}
}

static bool decide(struct econ_mm *econ, const struct econ_action *action,
		   unsigned long address)
{
	struct econ_estimate it = econ_estimate(action, &econ_prices);
	bool go = econ_pays(it);

	book(&econ->ledger[action->kind], it, go);
	book(&econ_ledger[action->kind], it, go);
	trace_econ_decision(econ_models[action->kind]->name, action->order,
			    address, it.cost, it.benefit, go,
			    mode_of(econ) == ECON_ON);
	return go;
}

/* The region is waited for no longer. */
static void touched(struct econ_mm *econ, const struct place *place,
		    unsigned int rank, bool is_huge)
{
	u32 waiting = READ_ONCE(econ->waiting[rank]);

	if (place->row)
		atomic_inc(&econ->regions[place->row - econ->holder->rows][is_huge]);
	/* Races make it wrong by one, and it is a guess. */
	if (waiting)
		WRITE_ONCE(econ->waiting[rank], waiting - 1);
}

/* Fills in what is known, for the time that is left. */
static void describe(const struct econ_mm *econ, const struct place *place,
		     struct econ_action *action)
{
	action->walks_ns = econ_left_ns(place->region.walks_ns,
					econ->holder->profile.run_ns,
					ktime_get_ns() - econ->begin_ns);
	action->touched = min(place->region.touched, ECON_REGION_PAGES);
}

static void find_block(const struct econ_mm *econ, unsigned int rank,
		       struct econ_action *action)
{
	unsigned long blocks = econ_free_blocks(numa_mem_id());

	action->supply = blocks ? ECON_FREE_BLOCK : ECON_NO_BLOCK;
	action->block_ns = econ_block_price(econ->waiting, rank, blocks);
}

/* The user has decided, or there is nothing to decide. */
static bool is_decided(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_HUGEPAGE || !vma_is_anonymous(vma);
}

/* The sites */

/* Locks RCU if there is somebody to ask. */
static struct econ_mm *ask(const struct mm_struct *mm)
{
	struct econ_mm *econ;

	rcu_read_lock();
	econ = rcu_dereference(mm->econ);
	if (econ && mode_of(econ) != ECON_OFF)
		return econ;
	rcu_read_unlock();
	return NULL;
}

/* What is observed only happens as it would without econ. */
static bool answer(const struct econ_mm *econ, bool go)
{
	go |= mode_of(econ) != ECON_ON;
	rcu_read_unlock();
	return go;
}

/*
 * A region that stays small is one for khugepaged, which else hears of an address
 * space only when a huge page was tried.
 */
static void leave_to_khugepaged(struct mm_struct *mm)
{
	if (!test_bit(MMF_VM_HUGEPAGE, &mm->flags))
		__khugepaged_enter(mm);
}

bool __econ_may_be_huge(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long region = vmf->address & HPAGE_PMD_MASK;
	struct econ_action action = {
		.kind = ECON_HUGE, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct place place;
	unsigned int rank;
	bool go;

	/* What is read first is mapped to zeros, which takes no block. */
	if (is_decided(vma) || !(vmf->flags & FAULT_FLAG_WRITE) ||
	    !thp_vma_suitable_order(vma, region, HPAGE_PMD_ORDER))
		return true;
	econ = ask(vma->vm_mm);
	if (!econ)
		return true;
	look(econ, vma, region, &place);
	describe(econ, &place, &action);
	rank = econ_rank(place.region.walks_ns);
	find_block(econ, rank, &action);
	go = decide(econ, &action, region);
	touched(econ, &place, rank, go);
	go = answer(econ, go);
	if (!go)
		leave_to_khugepaged(vma->vm_mm);
	return go;
}

unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders)
{
	struct vm_area_struct *vma = vmf->vma;
	struct econ_action action = { .kind = ECON_LARGE };
	unsigned long pays = 0;
	struct econ_mm *econ;
	struct place place;

	if (is_decided(vma))
		return orders;
	econ = ask(vma->vm_mm);
	if (!econ)
		return orders;
	look(econ, vma, vmf->address & HPAGE_PMD_MASK, &place);
	describe(econ, &place, &action);
	action.supply = ECON_FREE_BLOCK;
	for_each_set_bit(action.order, &orders, HPAGE_PMD_ORDER) {
		if (decide(econ, &action, vmf->address))
			pays |= BIT(action.order);
	}
	return answer(econ, false) ? orders : pays;
}

gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp)
{
	struct econ_action action = {
		.kind = ECON_DIRECT, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct place place;

	if (is_decided(vma) || !(gfp & __GFP_RECLAIM))
		return gfp;
	econ = ask(vma->vm_mm);
	if (!econ)
		return gfp;
	look(econ, vma, address & HPAGE_PMD_MASK, &place);
	describe(econ, &place, &action);
	if (answer(econ, decide(econ, &action, address)))
		return gfp;
	/* The background is paid from the ledger, not asked for by each fault. */
	return gfp & ~__GFP_RECLAIM;
}

bool __econ_may_promote(struct vm_area_struct *vma, unsigned long address)
{
	struct econ_action action = {
		.kind = ECON_PROMOTE, .order = HPAGE_PMD_ORDER,
	};
	struct econ_mm *econ;
	struct place place;

	if (is_decided(vma))
		return true;
	econ = ask(vma->vm_mm);
	if (!econ)
		return true;
	look(econ, vma, address, &place);
	describe(econ, &place, &action);
	find_block(econ, econ_rank(place.region.walks_ns), &action);
	return answer(econ, decide(econ, &action, address));
}
