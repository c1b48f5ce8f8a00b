// SPDX-License-Identifier: GPL-2.0-only
/*
 * Free blocks, made by moving the few pages that are in use in them.
 *
 * Compaction goes through a zone and moves what it meets, until a block is free. Here the
 * block is chosen first: among those with the largest free pieces, the ones with the
 * fewest pages in use. So the cost of a block is known before: it is that of moving
 * these pages. The pageblock is isolated meanwhile, so that nobody takes its free pages,
 * the moved pages included. Pages are moved only if that needs no wait (MIGRATE_ASYNC).
 *
 * A fault makes one block for itself, if that pays, and kcompactd several for the ledger.
 */

#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/memory_hotplug.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page-isolation.h>
#include <linux/pageblock-flags.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
/* Needs the headers above. */
#include <linux/compaction.h>

#include "../internal.h"
#include "internal.h"

/* Smallest free piece of a block that is worth a look: a sixteenth of it. */
#define LEAST_ORDER	(HPAGE_PMD_ORDER - 4)

/* Free pieces of an order that are looked at: several may be of one block. */
#define MOST_PIECES	(8 * ECON_BLOCKS)

/* Pages are allocated without reclaim, and neither wait nor wake kswapd. */
#define TARGET_GFP	((GFP_HIGHUSER_MOVABLE | __GFP_NOWARN) & ~__GFP_RECLAIM)

#ifdef CONFIG_MEMORY_ISOLATION
/* Whether a folio has references beside those of its mappings and of a cache. */
static bool econ_is_pinned(struct folio *folio)
{
	bool is_cached = !folio_test_anon(folio) || folio_test_swapcache(folio);

	return folio_ref_count(folio) >
	       folio_mapcount(folio) + (is_cached ? folio_nr_pages(folio) : 0);
}

/*
 * Whether a page in use can be moved without a wait, and without interrupting other CPUs
 * for its own sake, which the buffers of a file's page need. Unevictable pages are left to
 * compaction, which vm.compact_unevictable_allowed may keep from them. Reads without locks.
 */
static bool econ_can_be_moved(struct page *page)
{
	struct folio *folio = page_folio(page);

	return folio_test_lru(folio) && !folio_test_locked(folio) &&
	       !folio_test_writeback(folio) && !folio_test_private(folio) &&
	       !folio_test_unevictable(folio) && !econ_is_pinned(folio);
}

/*
 * The number of pages in use of a block; ECON_REGION_PAGES if one of them cannot be
 * moved. Reads without locks: the result may be wrong.
 */
static unsigned int econ_count_in_way(unsigned long begin)
{
	unsigned long pfn = begin, end = begin + HPAGE_PMD_NR;
	unsigned int used = 0;

	while (pfn < end) {
		struct page *page = pfn_to_page(pfn);

		if (PageBuddy(page)) {
			unsigned int order = buddy_order_unsafe(page);

			pfn += 1UL << (order < HPAGE_PMD_ORDER ? order : 0);
			continue;
		}
		if (!econ_can_be_moved(page))
			return ECON_REGION_PAGES;
		used++;
		pfn++;
	}
	return used;
}

static int econ_compare_blocks(const void *left, const void *right)
{
	const struct econ_block *one = left, *other = right;

	return one->in_way - other->in_way;
}

static bool econ_has_block(const struct econ_block *blocks, unsigned int count,
			   unsigned long begin)
{
	for (unsigned int i = 0; i < count; i++)
		if (blocks[i].begin == begin)
			return true;
	return false;
}

/*
 * Blocks of the free pieces of an order. The next search begins with other pieces.
 * zone->lock is held.
 */
static unsigned int econ_add_blocks(struct zone *zone, unsigned int order,
				    struct econ_block *blocks, unsigned int count)
{
	struct list_head *pieces = &zone->free_area[order].free_list[MIGRATE_MOVABLE];
	unsigned int left = MOST_PIECES;
	struct page *page;

	list_for_each_entry(page, pieces, buddy_list) {
		unsigned long begin = ALIGN_DOWN(page_to_pfn(page), HPAGE_PMD_NR);

		if (count == ECON_BLOCKS || !left--) {
			list_rotate_to_front(&page->buddy_list, pieces);
			break;
		}
		if (begin >= zone->zone_start_pfn &&
		    begin + HPAGE_PMD_NR <= zone_end_pfn(zone) &&
		    !econ_has_block(blocks, count, begin))
			blocks[count++].begin = begin;
	}
	return count;
}

/* Blocks with free pieces up to an order, the largest first, be they movable or not. */
static unsigned int econ_find_blocks(struct zone *zone, unsigned int order,
				     struct econ_block *blocks)
{
	unsigned int count = 0;

	guard(spinlock_irqsave)(&zone->lock);
	for (; order >= LEAST_ORDER; order--)
		count = econ_add_blocks(zone, order, blocks, count);
	return count;
}

/* Keep the blocks that can be made. */
static unsigned int econ_keep_blocks(struct econ_block *blocks, unsigned int count)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < count; i++) {
		blocks[kept].begin = blocks[i].begin;
		blocks[kept].in_way = econ_count_in_way(blocks[i].begin);
		kept += blocks[kept].in_way < ECON_REGION_PAGES;
	}
	return kept;
}

/**
 * econ_choose_blocks - find the blocks of a zone that are cheapest to make
 * @zone: the zone
 * @blocks: set to at most ECON_BLOCKS blocks, the cheapest first
 *
 * Context: any; takes the lock of @zone.
 * Return: number of blocks.
 */
unsigned int econ_choose_blocks(struct zone *zone, struct econ_block *blocks)
{
	unsigned int order = HPAGE_PMD_ORDER, count, kept;

	/* Isolation is that of pageblocks. */
	if (pageblock_order != HPAGE_PMD_ORDER)
		return 0;
	do {
		count = econ_find_blocks(zone, --order, blocks);
		kept = econ_keep_blocks(blocks, count);
		/* If the largest pieces are of blocks that cannot be made, others may be. */
	} while (!kept && count == ECON_BLOCKS && order > LEAST_ORDER);
	sort(blocks, kept, sizeof(*blocks), econ_compare_blocks, NULL);
	return kept;
}

/**
 * econ_recall_block - recall the block that the decision about a fault chose
 * @block: set to the block
 *
 * Context: a page fault.
 * Return: false if it cannot be made any more.
 */
bool econ_recall_block(struct econ_block *block)
{
	block->begin = current->econ.block;
	current->econ.block = 0;
	/* The memory may have been removed. */
	if (!pfn_to_online_page(block->begin))
		return false;
	block->in_way = econ_count_in_way(block->begin);
	return block->in_way < ECON_REGION_PAGES;
}

/*
 * Isolate a block, and add its pages in use to those that are moved. Pages that cannot be
 * isolated show when the block is tested.
 */
static bool econ_isolate_block(struct compact_control *cc, const struct econ_block *block)
{
	unsigned long end = block->begin + HPAGE_PMD_NR;

	if (get_pageblock_migratetype(pfn_to_page(block->begin)) != MIGRATE_MOVABLE ||
	    start_isolate_page_range(block->begin, end, MIGRATE_MOVABLE, 0, TARGET_GFP))
		return false;
	cc->migrate_pfn = block->begin;
	do {
		cc->nr_migratepages = 0;
		if (isolate_migratepages_range(cc, cc->migrate_pfn, end))
			break;
	} while (cc->migrate_pfn < end);
	return true;
}

/* End the isolation of a block. Return: whether it is free. */
static bool econ_release_block(const struct econ_block *block)
{
	unsigned long end = block->begin + HPAGE_PMD_NR;
	bool is_free = !test_pages_isolated(block->begin, end, 0);

	undo_isolate_page_range(block->begin, end, MIGRATE_MOVABLE);
	return is_free;
}

/**
 * econ_make_blocks - make free blocks
 * @zone: their zone
 * @blocks: the blocks
 * @count: number of them
 *
 * The pages of all blocks are moved at once: other CPUs are interrupted once for that,
 * to flush their TLBs.
 *
 * Context: may sleep, and does not wait for pages.
 * Return: number of blocks that are free then.
 */
unsigned int econ_make_blocks(struct zone *zone, struct econ_block *blocks,
			      unsigned int count)
{
	struct migration_target_control target = {
		.nid = zone_to_nid(zone),
		.gfp_mask = TARGET_GFP,
		.reason = MR_COMPACTION,
	};
	struct compact_control cc = {
		.zone = zone,
		.order = HPAGE_PMD_ORDER,
		.mode = MIGRATE_ASYNC,
		.ignore_skip_hint = true,
		.no_set_skip_hint = true,
		.gfp_mask = TARGET_GFP,
	};
	unsigned int made = 0;

	INIT_LIST_HEAD(&cc.migratepages);
	for (unsigned int i = 0; i < count; i++)
		blocks[i].is_isolated = econ_isolate_block(&cc, &blocks[i]);
	if (!list_empty(&cc.migratepages))
		migrate_pages(&cc.migratepages, alloc_migration_target, NULL,
			      (unsigned long)&target, MIGRATE_ASYNC, MR_COMPACTION, NULL);
	putback_movable_pages(&cc.migratepages);
	for (unsigned int i = 0; i < count; i++)
		made += blocks[i].is_isolated && econ_release_block(&blocks[i]);
	return made;
}
#else
unsigned int econ_choose_blocks(struct zone *zone, struct econ_block *blocks)
{
	return 0;
}

bool econ_recall_block(struct econ_block *block)
{
	return false;
}

unsigned int econ_make_blocks(struct zone *zone, struct econ_block *blocks,
			      unsigned int count)
{
	return 0;
}
#endif

/**
 * econ_has_room - whether compaction would begin with a zone
 * @zone: the zone
 *
 * Context: any.
 * Return: true if enough of it is free to move pages, and to let a fault take a block.
 */
bool econ_has_room(struct zone *zone)
{
	return compaction_suitable(zone, HPAGE_PMD_ORDER, gfp_zone(GFP_TRANSHUGE_LIGHT));
}

/**
 * econ_choose_in_node - find the blocks of a node that are cheapest to make
 * @nid: the node
 * @blocks: set to at most ECON_BLOCKS blocks of one zone, the cheapest first
 *
 * Context: any; takes the lock of a zone.
 * Return: number of blocks.
 */
unsigned int econ_choose_in_node(int nid, struct econ_block *blocks)
{
	struct zone *zones = NODE_DATA(nid)->node_zones;

	for (struct zone *zone = zones + MAX_NR_ZONES - 1; zone >= zones; zone--) {
		unsigned int count;

		if (!populated_zone(zone) || !econ_has_room(zone))
			continue;
		count = econ_choose_blocks(zone, blocks);
		if (count)
			return count;
	}
	return 0;
}
