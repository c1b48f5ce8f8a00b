// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroed blocks that a node keeps, or would keep in mode observe: adding, taking and
 * freeing them.
 */

#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/spinlock.h>

#include <trace/events/econ.h>

#include "internal.h"
#include "prezero.h"

unsigned long econ_zeroed_limit;
atomic64_t econ_zeroed_counts[ECON_ZEROED_COUNTS];

const char *const econ_zeroed_names[ECON_ZEROED_COUNTS] = {
	[ECON_ZEROED_MADE] = "made",
	[ECON_ZEROED_ABANDONED] = "abandoned",
	[ECON_ZEROED_TAKEN] = "taken",
	[ECON_ZEROED_PUT_BACK] = "put_back",
	[ECON_ZEROED_GIVEN_BACK] = "given_back",
	[ECON_ZEROED_MISSED] = "missed",
	[ECON_ZEROED_LEFT] = "left",
	[ECON_ZEROED_WOULD_MAKE] = "would_make",
	[ECON_ZEROED_WOULD_HIT] = "would_hit",
	[ECON_ZEROED_WOULD_SAVE_NS] = "would_save_ns",
};

struct econ_prezero *econ_prezero_nodes[MAX_NUMNODES];

/**
 * econ_prezero_trace - trace an event
 * @prezero: blocks of a node
 * @what: the event
 *
 * Context: any.
 */
void econ_prezero_trace(const struct econ_prezero *prezero, enum econ_zeroed_count what)
{
	trace_econ_zeroed(prezero->nid, econ_zeroed_names[what],
			  READ_ONCE(prezero->kept), READ_ONCE(prezero->supposed));
}

/* Watermark that one more block leaves: a stock that pays for its memory may fill it. */
static unsigned long econ_prezero_mark(const struct econ_prezero *prezero, struct zone *zone)
{
	return econ_prezero_pays_memory(prezero, econ_prezero_stock(prezero) + 1) ?
	       low_wmark_pages(zone) : high_wmark_pages(zone);
}

/**
 * econ_zone_has_spare - whether a zone stays above a watermark without blocks
 * @prezero: blocks of its node
 * @zone: the zone
 * @blocks: number of blocks
 *
 * Context: any.
 * Return: true if it stays above the high watermark, or the low one if the blocks are used
 * so often that they pay for the memory.
 */
bool econ_zone_has_spare(const struct econ_prezero *prezero, struct zone *zone,
			 unsigned long blocks)
{
	return managed_zone(zone) &&
	       zone_watermark_ok(zone, blocks ? HPAGE_PMD_ORDER : 0,
				 econ_prezero_mark(prezero, zone) + blocks * HPAGE_PMD_NR,
				 gfp_zone(ECON_BLOCK_GFP), 0);
}

/**
 * econ_prezero_has_room - whether a node stays above a watermark without blocks
 * @prezero: blocks of a node
 * @blocks: number of blocks
 *
 * Context: any.
 * Return: true if so, in one of its zones.
 */
bool econ_prezero_has_room(const struct econ_prezero *prezero, unsigned long blocks)
{
	struct zone *zones = NODE_DATA(prezero->nid)->node_zones;
	int i;

	for (i = gfp_zone(ECON_BLOCK_GFP); i >= 0; i--)
		if (econ_zone_has_spare(prezero, &zones[i], blocks))
			return true;
	return false;
}

/**
 * econ_prezero_may_add - whether one more block may be kept, or supposed
 * @prezero: blocks of a node
 * @mode: ECON_ON to keep one, ECON_OBSERVE to suppose one
 *
 * Context: the lock of @prezero is held.
 * Return: true if so.
 */
bool econ_prezero_may_add(const struct econ_prezero *prezero, enum econ_mode mode)
{
	lockdep_assert_held(&prezero->lock);
	return READ_ONCE(econ_mode) == mode && !prezero->blocked &&
	       econ_prezero_stock(prezero) < READ_ONCE(econ_zeroed_limit);
}

/**
 * econ_prezero_add - keep a block
 * @prezero: blocks of a node
 * @folio: the block
 * @what: event to count
 *
 * Context: any; takes a spinlock.
 * Return: false if it may not be kept any more.
 */
bool econ_prezero_add(struct econ_prezero *prezero, struct folio *folio,
		      enum econ_zeroed_count what)
{
	scoped_guard(spinlock_irqsave, &prezero->lock) {
		if (!econ_prezero_may_add(prezero, ECON_ON))
			return false;
		folio->private = prezero;
		list_add(&folio->lru, &prezero->blocks[folio_zonenum(folio)]);
		WRITE_ONCE(prezero->kept, prezero->kept + 1);
		econ_prezero_count(what);
	}
	econ_prezero_trace(prezero, what);
	return true;
}

static struct folio *econ_prezero_remove(struct econ_prezero *prezero, unsigned int zone,
					 enum econ_zeroed_count what)
{
	struct folio *folio;

	lockdep_assert_held(&prezero->lock);
	folio = list_first_entry_or_null(&prezero->blocks[zone], struct folio,
					 lru);
	if (folio) {
		list_del(&folio->lru);
		WRITE_ONCE(prezero->kept, prezero->kept - 1);
		econ_prezero_count(what);
	}
	return folio;
}

static void econ_prezero_free_block(struct folio *folio)
{
	folio->private = NULL;
	folio_put(folio);
}

/**
 * econ_prezero_give_back - free a block of a zone
 * @prezero: blocks of a node
 * @zone: index of the zone
 *
 * Context: any; takes a spinlock.
 * Return: false if none is kept.
 */
bool econ_prezero_give_back(struct econ_prezero *prezero, unsigned int zone)
{
	struct folio *folio;

	if (!READ_ONCE(prezero->kept))
		return false;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		folio = econ_prezero_remove(prezero, zone, ECON_ZEROED_GIVEN_BACK);
	if (!folio)
		return false;
	econ_prezero_trace(prezero, ECON_ZEROED_GIVEN_BACK);
	econ_prezero_free_block(folio);
	return true;
}

/**
 * econ_prezero_give_back_any - free a block of the highest zone that has one
 * @prezero: blocks of a node
 *
 * Context: any; takes a spinlock.
 * Return: false if none is kept.
 */
bool econ_prezero_give_back_any(struct econ_prezero *prezero)
{
	unsigned int zone = MAX_NR_ZONES;

	while (zone--)
		if (econ_prezero_give_back(prezero, zone))
			return true;
	return false;
}

/**
 * econ_prezero_shrink_to - free blocks until no more than a limit are kept
 * @prezero: blocks of a node
 * @limit: number of blocks
 *
 * Context: any; takes a spinlock.
 */
void econ_prezero_shrink_to(struct econ_prezero *prezero, unsigned long limit)
{
	while (READ_ONCE(prezero->kept) > limit && econ_prezero_give_back_any(prezero))
		;
}

/**
 * econ_prezero_suppose_taken - count a fault that would have taken a zeroed block
 * @nid: node of the block
 *
 * Context: a page fault; takes a spinlock.
 */
void econ_prezero_suppose_taken(int nid)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);

	if (!prezero)
		return;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		if (prezero->supposed)
			WRITE_ONCE(prezero->supposed, prezero->supposed - 1);
	econ_prezero_count(ECON_ZEROED_WOULD_HIT);
	econ_prezero_trace(prezero, ECON_ZEROED_WOULD_HIT);
	econ_count_ns(&econ_zeroed_counts[ECON_ZEROED_WOULD_SAVE_NS],
		      READ_ONCE(econ_costs.ns[ECON_CLEAR_HUGE]));
}

/**
 * econ_prezero_take_block - take a zeroed block for a fault
 * @nid: node of the block
 * @weight: weight of the program
 *
 * Context: a page fault; takes a spinlock.
 * Return: the block, like that of vma_alloc_folio() except for its mark, or NULL.
 */
struct folio *econ_prezero_take_block(int nid, unsigned int weight)
{
	struct econ_prezero *prezero = econ_prezero_of_node(nid);
	struct folio *folio = NULL;
	unsigned int zone = MAX_NR_ZONES;

	if (!prezero || !READ_ONCE(prezero->kept))
		return NULL;
	scoped_guard(spinlock_irqsave, &prezero->lock)
		while (!folio && zone-- &&
		       prezero->kept > econ_prezero_left(prezero, weight))
			folio = econ_prezero_remove(prezero, zone, ECON_ZEROED_TAKEN);
	if (folio)
		econ_prezero_trace(prezero, ECON_ZEROED_TAKEN);
	return folio;
}

void __econ_was_zeroed(struct folio *folio)
{
	folio->private = NULL;
	econ_fault_saw(ECON_SAW_ZEROED);
}

/* The block was not written to. */
void __econ_put_block(struct folio *folio)
{
	struct econ_prezero *prezero = folio->private;

	if (!econ_prezero_add(prezero, folio, ECON_ZEROED_PUT_BACK))
		econ_prezero_free_block(folio);
}

/**
 * econ_zeroed_blocks - number of kept blocks of all nodes
 *
 * Context: any.
 * Return: the number.
 */
unsigned long econ_zeroed_blocks(void)
{
	unsigned long blocks = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		const struct econ_prezero *prezero = econ_prezero_of_node(nid);

		if (prezero)
			blocks += READ_ONCE(prezero->kept);
	}
	return blocks;
}
