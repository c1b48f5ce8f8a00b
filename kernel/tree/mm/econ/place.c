// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decisions about a region of an mm: look up its profile, and describe it to the model.
 */

#include <linux/maple_tree.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "internal.h"

/* Return: number of bytes of a range in a region. */
static u64 econ_bytes_in_region(unsigned long region, unsigned long begin,
				unsigned long end)
{
	begin = max(begin, region);
	end = min(end, region + HPAGE_PMD_SIZE);
	return begin < end ? end - begin : 0;
}

static void econ_place_add_row(struct econ_place *place, const struct econ_row *row,
			       unsigned long begin, u64 bytes)
{
	if (!bytes)
		return;
	econ_region_add(&place->region, row, bytes);
	if (bytes > place->most) {
		place->most = bytes;
		place->row = row;
		place->begin = begin;
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
		econ_place_add_row(place, &row[at], base + row[at].begin,
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
		econ_place_add_row(place, row, mas.index,
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
 * econ_begin_decision - begin a decision about a region
 * @vma: the mapping
 * @region: the region
 * @place: set to the profile of the region
 *
 * Context: any; on success RCU is locked until econ_end_decision().
 * Return: the profile of the mm, or NULL if there is none for the region.
 */
struct econ_mm *econ_begin_decision(const struct vm_area_struct *vma,
				    unsigned long region, struct econ_place *place)
{
	struct econ_mm *econ;

	rcu_read_lock();
	econ = rcu_dereference(vma->vm_mm->econ);
	if (econ && econ_effective_mode(econ) != ECON_OFF &&
	    econ_read_place(econ, vma, region, place)) {
		place->age_ns = econ_age(econ, vma->vm_mm);
		return econ;
	}
	rcu_read_unlock();
	return NULL;
}

/**
 * econ_end_decision - end econ_begin_decision()
 * @econ: its return value
 * @go: the decision
 *
 * Context: any; unlocks RCU.
 * Return: @go. In mode observe everything is approved, as without econ.
 */
bool econ_end_decision(const struct econ_mm *econ, bool go)
{
	go |= econ_effective_mode(econ) != ECON_ON;
	rcu_read_unlock();
	return go;
}

/**
 * econ_describe_place - fill in the profile of a region
 * @econ: profile of its mm
 * @place: profile of the region
 * @action: action to fill in, for the rest of the run
 *
 * Context: between econ_begin_decision() and econ_end_decision().
 */
void econ_describe_place(const struct econ_mm *econ, const struct econ_place *place,
			 struct econ_action *action)
{
	action->walks_ns = econ_left_ns(place->region.walks_ns,
					econ->holder->profile.run_ns,
					place->age_ns);
	if (place->row) {
		const struct econ_row_state *state = econ_row_state(econ, place->row);

		action->walks_ns = econ_believed_ns(action->walks_ns,
						    READ_ONCE(state->observed),
						    READ_ONCE(state->used));
	}
	action->touched = min(place->region.touched, ECON_REGION_PAGES);
}

/**
 * econ_block_value - benefit that a block would have in another region
 * @econ: profile of the mm
 * @place: profile of the region that would take the block
 * @blocks: number of free blocks
 *
 * Context: between econ_begin_decision() and econ_end_decision().
 * Return: nanoseconds.
 */
u64 econ_block_value(const struct econ_mm *econ, const struct econ_place *place,
		     unsigned long blocks)
{
	const struct econ_profile *profile = &econ->holder->profile;
	unsigned int rank = 0;

	if (place->row)
		rank = econ->waiting->rows[place->row - profile->rows].rank;
	return econ_waiting_value(econ->waiting, rank, blocks, profile->run_ns,
				  place->age_ns, &econ_costs);
}

/**
 * econ_find_supply - fill in the supply of blocks
 * @econ: profile of the mm
 * @place: profile of the region
 * @nid: node of the block. If it is not known, the allocator is assumed to find one
 * @zeroed: number of zeroed blocks of the node that may be used
 * @action: action to fill in
 *
 * A block that has to be made is kept in current->econ.block.
 *
 * Context: a page fault, between econ_begin_decision() and econ_end_decision().
 */
void econ_find_supply(const struct econ_mm *econ, const struct econ_place *place,
		      int nid, unsigned long zeroed, struct econ_action *action)
{
	struct econ_block made[ECON_BLOCKS];
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
	if (!blocks && READ_ONCE(econ_make_in_faults) &&
	    econ_choose_in_node(nid, made)) {
		action->in_way = econ_paid_pages(made[0].in_way);
		action->supply = ECON_MADE_BLOCK;
		current->econ.block = made[0].begin;
	}
	action->block_ns = econ_block_value(econ, place, blocks);
}
