// SPDX-License-Identifier: GPL-2.0-only
/* Pages of morsels: counters, charges, allocating and freeing folios. */

#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "internal.h"

DEFINE_PER_CPU(unsigned long[MORSEL_COUNTS], morsel_counts);

/* Number of pages and of tables of all morsels. */
struct percpu_counter morsel_all_pages, morsel_all_tables;

/**
 * morsel_count_pages - count pages that were added or removed
 * @morsel: the morsel
 * @pages: number of pages, negative for removed ones
 *
 * Context: any.
 */
void morsel_count_pages(struct morsel *morsel, long pages)
{
	percpu_counter_add(&morsel->pages, pages);
	percpu_counter_add(&morsel_all_pages, pages);
}

/**
 * morsel_count_tables - count tables that were added or removed
 * @tables: number of tables, negative for removed ones
 *
 * Context: any.
 */
void morsel_count_tables(long tables)
{
	percpu_counter_add(&morsel_all_tables, tables);
}

/**
 * morsel_charge - charge pages or tables to the mount
 * @morsel: the morsel
 * @pages: number of pages
 *
 * Context: any.
 * Return: false if the mount is full.
 */
bool morsel_charge(struct morsel *morsel, long pages)
{
	struct morsel_sb *sb = morsel_sb_of(morsel->inode.i_sb);

	if (sb->limit)
		return percpu_counter_limited_add(&sb->used, sb->limit, pages);
	percpu_counter_add(&sb->used, pages);
	return true;
}

/**
 * morsel_uncharge - return a charge of morsel_charge()
 * @morsel: the morsel
 * @pages: number of pages
 *
 * Context: any.
 */
void morsel_uncharge(struct morsel *morsel, long pages)
{
	struct morsel_sb *sb = morsel_sb_of(morsel->inode.i_sb);

	/* What is freed there are tables, which are not in the range. */
	if (!sb->pmem)
		percpu_counter_sub(&sb->used, pages);
}

static struct folio *morsel_init_folio(struct morsel *morsel, pgoff_t index,
				       struct folio *folio)
{
	folio->mapping = morsel->inode.i_mapping;
	folio->index = index & ~(folio_nr_pages(folio) - 1);
	__folio_mark_uptodate(folio);
	return folio;
}

static struct folio *morsel_alloc_folio(struct morsel *morsel, pgoff_t index, gfp_t gfp,
					unsigned int order, struct vm_area_struct *vma,
					unsigned long address)
{
	struct folio *folio;

	if (vma)
		folio = vma_alloc_folio(gfp, order, vma, address, order > 0);
	else
		folio = folio_alloc(gfp, order);
	if (!folio)
		return NULL;
	if (order)
		folio_zero_user(folio, address);
	return morsel_init_folio(morsel, index, folio);
}

/**
 * morsel_free_unused - free a folio that was not installed
 * @folio: the folio
 *
 * Context: any.
 */
void morsel_free_unused(struct folio *folio)
{
	folio->mapping = NULL;
	folio_put(folio);
}

/*
 * Whether a page of a block is broken. The allocator itself does not reuse a broken
 * page of 4 KiB. A machine check marks only the page, and not its folio.
 */
#ifdef CONFIG_MEMORY_FAILURE
static bool morsel_is_broken(struct folio *folio)
{
	unsigned long i, pages = folio_nr_pages(folio);

	if (pages == 1 || !atomic_long_read(&num_poisoned_pages))
		return false;
	for (i = 0; i < pages && !PageHWPoison(folio_page(folio, i)); i++)
		;
	return i < pages;
}
#else
static bool morsel_is_broken(struct folio *folio)
{
	return false;
}
#endif

/* Free a folio. A block with a broken page is leaked. */
static void morsel_put_folio(struct folio *folio)
{
	if (!morsel_is_broken(folio)) {
		folio_put(folio);
		return;
	}
	memcg_kmem_uncharge_page(&folio->page, folio_order(folio));
	morsel_count_many(MORSEL_BROKEN, folio_nr_pages(folio));
}

/**
 * morsel_free_mapped - free a folio that a concurrent fault may have mapped
 * @folio: the folio, which the tables do not reach any more
 *
 * Context: may sleep; the morsel is closed.
 */
void morsel_free_mapped(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	folio_lock(folio);
	if (folio_mapped(folio))
		unmap_mapping_pages(mapping, folio->index, folio_nr_pages(folio),
				    false);
	/* From here on such a fault is retried. */
	folio->mapping = NULL;
	folio_unlock(folio);
	morsel_put_folio(folio);
}

/**
 * morsel_alloc_giant - allocate a block of 1 GiB
 * @morsel: the morsel
 * @index: index of a page of the block
 *
 * The buddy allocator has no blocks of 1 GiB: compaction makes one, which is slow.
 *
 * Context: may sleep.
 * Return: the charged folio, filled with zeros, or NULL.
 */
struct folio *morsel_alloc_giant(struct morsel *morsel, pgoff_t index)
{
	gfp_t gfp = GFP_USER | __GFP_COMP | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	struct folio *folio;

	if (!morsel_charge(morsel, PUD_PAGES))
		return NULL;
	folio = folio_alloc_gigantic(PUD_ORDER, gfp, numa_mem_id(), NULL);
	if (folio && memcg_kmem_charge_page(&folio->page, gfp, PUD_ORDER)) {
		folio_put(folio);
		folio = NULL;
	}
	if (!folio) {
		morsel_uncharge(morsel, PUD_PAGES);
		return NULL;
	}
	folio_zero_user(folio, 0);
	return morsel_init_folio(morsel, index, folio);
}

/**
 * morsel_alloc_large - allocate a block of 2 MiB
 * @morsel: the morsel
 * @index: index of a page of the block
 * @vma: mapping with the memory policy, NULL for that of the task
 * @address: address of the page in @vma
 *
 * Context: may sleep.
 * Return: the charged folio, filled with zeros, or NULL.
 */
struct folio *morsel_alloc_large(struct morsel *morsel, pgoff_t index,
				 struct vm_area_struct *vma, unsigned long address)
{
	/* A fault uses only free blocks, and does not compact. */
	gfp_t gfp = vma ? GFP_TRANSHUGE_LIGHT | __GFP_KSWAPD_RECLAIM :
			  GFP_TRANSHUGE | __GFP_NORETRY;
	struct folio *folio;

	if (!morsel_charge(morsel, PMD_PAGES))
		return NULL;
	gfp = (gfp & ~__GFP_MOVABLE) | __GFP_ACCOUNT;
	folio = morsel_alloc_folio(morsel, index, gfp, PMD_ORDER, vma, address);
	if (!folio)
		morsel_uncharge(morsel, PMD_PAGES);
	return folio;
}

/**
 * morsel_alloc_small - allocate a page of 4 KiB
 * @morsel: the morsel
 * @index: index of the page
 * @vma: mapping with the memory policy, NULL for that of the task
 * @address: address of the page in @vma
 * @folio: set to the charged folio, filled with zeros
 *
 * Context: may sleep.
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int morsel_alloc_small(struct morsel *morsel, pgoff_t index,
		       struct vm_area_struct *vma, unsigned long address,
		       struct folio **folio)
{
	if (!morsel_charge(morsel, 1))
		return -ENOSPC;
	/* The OOM killer would not free the memory of morsels. */
	*folio = morsel_alloc_folio(morsel, index,
				    (GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT |
				     __GFP_RETRY_MAYFAIL | __GFP_NOWARN), 0, vma,
				    address);
	if (*folio)
		return 0;
	morsel_uncharge(morsel, 1);
	return -ENOMEM;
}
