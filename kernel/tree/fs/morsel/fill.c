// SPDX-License-Identifier: GPL-2.0-only
/*
 * Find and fill the pages of a morsel.
 *
 * Tables and pages are allocated first, and installed afterwards: this needs no lock,
 * because only an empty entry is set. Blocks of 2 MiB and 1 GiB are allocated by one task
 * at a time: the others wait for it, rather than clear a block in vain.
 */

#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/page_table_check.h>
#include <linux/sched.h>
#include <asm/pgalloc.h>

#include "internal.h"
#include "pmem.h"

/* Finding */

/* Return: end of the pages that may exist. */
static pgoff_t morsel_limit(const struct morsel *morsel, pgoff_t end)
{
	return end ?: DIV_ROUND_UP(i_size_read(&morsel->inode), PAGE_SIZE);
}

static void morsel_return_page(struct page *found, struct page **page)
{
	if (!page)
		return;
	get_page(found);
	*page = found;
}

static bool morsel_is_present(struct morsel *morsel, pgoff_t index, pgoff_t end,
			      struct page **page)
{
	struct page *found = NULL;

	morsel_enter(morsel);
	if (index < morsel_limit(morsel, end))
		found = morsel_peek(morsel, index);
	if (found)
		morsel_return_page(found, page);
	morsel_leave();
	return found;
}

/**
 * morsel_find - get a page of a morsel
 * @morsel: the morsel
 * @index: index of the page
 *
 * Context: may sleep.
 * Return: the page, with a reference, or NULL if there is none yet.
 */
struct page *morsel_find(struct morsel *morsel, pgoff_t index)
{
	struct page *page = NULL;

	morsel_is_present(morsel, index, ULONG_MAX, &page);
	return page;
}

/**
 * morsel_has_page - whether a page of a mapped file exists
 * @mapping: address_space of a morsel
 * @index: index of the page
 *
 * Context: any; the file is mapped, so that its tables stay.
 * Return: true if it exists now.
 */
bool morsel_has_page(const struct address_space *mapping, pgoff_t index)
{
	guard(rcu)();
	return morsel_peek(morsel_of(mapping->host), index);
}

/* Installing */

/* Tables and pages to install, allocated outside of the section. */
struct morsel_supply {
	pmd_t *pmds;
	struct page *ptes;
	struct folio *giant;
	struct folio *large;
	struct folio *small;
	bool has_no_giant;
	bool has_no_large;
};

static bool morsel_install_entry(unsigned long *entry, unsigned long value)
{
	unsigned long none = 0;

	/* A full barrier: the table or page is initialised before. */
	return try_cmpxchg(entry, &none, value);
}

static bool morsel_install_pmd_table(pud_t *pud, pmd_t *table)
{
	return morsel_install_entry(&pud->pud, __pa(table) | _PAGE_TABLE);
}

static bool morsel_install_pte_table(pmd_t *pmd, struct page *table)
{
	return morsel_install_entry(&pmd->pmd, PFN_PHYS(page_to_pfn(table)) | _PAGE_TABLE);
}

/* Leaves have the access rights for all mappings, and are never aged. */
static pgprot_t morsel_leaf_prot(const struct morsel *morsel)
{
	return vm_get_page_prot(VM_READ | VM_SHARED |
				(morsel->seals & F_SEAL_WRITE ? 0 : VM_WRITE));
}

/*
 * Notify page_table_check after the entry was set, with an empty old entry: the entry
 * that it would read may already be another one's. The entry is not removed meanwhile,
 * because the morsel is entered.
 */

static bool morsel_install_giant(struct morsel *morsel, pud_t *pud,
				 struct folio *folio)
{
	pud_t leaf = pud_mkyoung(pud_mkhuge(pfn_pud(folio_pfn(folio),
						    morsel_leaf_prot(morsel))));
	pud_t none = __pud(0);

	if (pud_write(leaf))
		leaf = pud_mkdirty(leaf);
	if (!morsel_install_entry(&pud->pud, pud_val(leaf)))
		return false;
	page_table_check_pud_set(NULL, &none, leaf);
	return true;
}

static bool morsel_install_large(struct morsel *morsel, pmd_t *pmd,
				 struct folio *folio)
{
	pmd_t leaf = pmd_mkyoung(pmd_mkhuge(mk_pmd(&folio->page, morsel_leaf_prot(morsel))));
	pmd_t none = __pmd(0);

	if (pmd_write(leaf))
		leaf = pmd_mkdirty(leaf);
	if (!morsel_install_entry(&pmd->pmd, pmd_val(leaf)))
		return false;
	page_table_check_pmd_set(NULL, &none, leaf);
	return true;
}

static bool morsel_install_small(struct morsel *morsel, pte_t *pte,
				 struct folio *folio)
{
	pte_t leaf = pte_mkyoung(mk_pte(&folio->page, morsel_leaf_prot(morsel)));
	pte_t none = __pte(0);

	if (pte_write(leaf))
		leaf = pte_mkdirty(leaf);
	if (!morsel_install_entry(&pte->pte, pte_val(leaf)))
		return false;
	page_table_check_ptes_set(NULL, &none, leaf, 1);
	return true;
}

/* Install tables and pages. Return: whether the page exists now. */
static bool morsel_install_supply(struct morsel *morsel, pgoff_t index,
				  struct morsel_supply *supply,
				  struct morsel_place *place)
{
	morsel_lookup(morsel, index, place);
	if (place->page || !place->pud)
		return place->page;
	if (!place->pmd) {
		if (supply->giant &&
		    morsel_install_giant(morsel, place->pud, supply->giant)) {
			supply->giant = NULL;
			morsel_count_pages(morsel, PUD_PAGES);
			morsel_count(MORSEL_FILLED_GIANT);
			goto filled;
		}
		if (supply->pmds && morsel_install_pmd_table(place->pud, supply->pmds)) {
			supply->pmds = NULL;
			morsel_count_tables(1);
		}
		morsel_lookup(morsel, index, place);
	}
	if (place->pmd && !place->pte && !place->page) {
		if (supply->large &&
		    morsel_install_large(morsel, place->pmd, supply->large)) {
			supply->large = NULL;
			morsel_count_pages(morsel, PMD_PAGES);
			morsel_count(MORSEL_FILLED_LARGE);
			goto filled;
		}
		if (supply->ptes &&
		    morsel_install_pte_table(place->pmd, supply->ptes)) {
			supply->ptes = NULL;
			morsel_count_tables(1);
		}
		morsel_lookup(morsel, index, place);
	}
	if (place->pte && !place->page && supply->small &&
	    morsel_install_small(morsel, place->pte, supply->small)) {
		supply->small = NULL;
		morsel_count_pages(morsel, 1);
		morsel_count(MORSEL_FILLED_SMALL);
	}
filled:
	morsel_lookup(morsel, index, place);
	return place->page;
}

/* Filling */

static int morsel_add_region(struct morsel *morsel, pgoff_t index)
{
	pud_t *region;
	void *other;

	if (!morsel_charge(morsel, 1))
		return -ENOSPC;
	region = pud_alloc_one(current->mm, 0);
	if (!region) {
		morsel_uncharge(morsel, 1);
		return -ENOMEM;
	}
	other = xa_cmpxchg(&morsel->regions, index / REGION_PAGES, NULL, region,
			   GFP_KERNEL_ACCOUNT);
	if (other) {
		pud_free(current->mm, region);
		morsel_uncharge(morsel, 1);
		return xa_err(other);
	}
	morsel_count_tables(1);
	return 0;
}

static bool morsel_may_use_order(const struct morsel *morsel, unsigned int order,
				 pgoff_t index, pgoff_t end)
{
	return morsel_sb_of(morsel->inode.i_sb)->order >= order &&
	       round_up(index + 1, 1UL << order) <= end;
}

static int morsel_add_pmds(struct morsel *morsel, struct morsel_supply *supply)
{
	if (!morsel_charge(morsel, 1))
		return -ENOSPC;
	supply->pmds = pmd_alloc_one(current->mm, 0);
	if (supply->pmds)
		return 0;
	morsel_uncharge(morsel, 1);
	return -ENOMEM;
}

static int morsel_add_ptes(struct morsel *morsel, struct morsel_supply *supply)
{
	if (!morsel_charge(morsel, 1))
		return -ENOSPC;
	supply->ptes = __pte_alloc_one(current->mm, GFP_PGTABLE_USER |
						    __GFP_RETRY_MAYFAIL);
	if (supply->ptes)
		return 0;
	morsel_uncharge(morsel, 1);
	return -ENOMEM;
}

/* Return: order of the block to try next, 0 for none. */
static unsigned int morsel_block_order(const struct morsel *morsel, pgoff_t index, pgoff_t end,
				       const struct morsel_place *place,
				       const struct morsel_supply *supply)
{
	if (!place->pud || place->pte)
		return 0;
	if (place->pmd)
		return !supply->has_no_large &&
		       morsel_may_use_order(morsel, PMD_ORDER, index, end) ? PMD_ORDER : 0;
	return !supply->has_no_giant && morsel_may_use_order(morsel, PUD_ORDER, index, end) ?
		       PUD_ORDER : 0;
}

/* Allocate a block, or note that there is none. */
static void morsel_add_block(struct morsel *morsel, unsigned int order, pgoff_t index,
			     struct vm_area_struct *vma, unsigned long address,
			     struct morsel_supply *supply)
{
	if (order == PUD_ORDER) {
		supply->giant = morsel_alloc_giant(morsel, index);
		supply->has_no_giant = !supply->giant;
		morsel_count_many(MORSEL_NO_GIANT, supply->has_no_giant);
	} else {
		supply->large = morsel_alloc_large(morsel, index, vma, address);
		supply->has_no_large = !supply->large;
		morsel_count_many(MORSEL_NO_LARGE, supply->has_no_large);
	}
}

/* Allocate the next missing table, or a single page. */
static int morsel_provide(struct morsel *morsel, pgoff_t index,
			  struct vm_area_struct *vma, unsigned long address,
			  const struct morsel_place *place, struct morsel_supply *supply)
{
	if (!place->pud)
		return morsel_add_region(morsel, index);
	if (!place->pmd)
		return morsel_add_pmds(morsel, supply);
	if (!place->pte && !supply->ptes) {
		int err = morsel_add_ptes(morsel, supply);

		if (err)
			return err;
	}
	return supply->small ? 0 : morsel_alloc_small(morsel, index, vma, address,
						      &supply->small);
}

static void morsel_free_supply(struct morsel *morsel, struct morsel_supply *supply)
{
	if (supply->pmds) {
		pmd_free(current->mm, supply->pmds);
		morsel_uncharge(morsel, 1);
	}
	if (supply->ptes) {
		pte_free(current->mm, supply->ptes);
		morsel_uncharge(morsel, 1);
	}
	if (supply->giant) {
		morsel_free_unused(supply->giant);
		morsel_uncharge(morsel, PUD_PAGES);
	}
	if (supply->large) {
		morsel_free_unused(supply->large);
		morsel_uncharge(morsel, PMD_PAGES);
	}
	if (supply->small) {
		morsel_free_unused(supply->small);
		morsel_uncharge(morsel, 1);
	}
}

/* Locks of blocks that are being allocated. */
static struct mutex morsel_block_locks[64];

static int __init morsel_init_block_locks(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(morsel_block_locks); i++)
		mutex_init(&morsel_block_locks[i]);
	return 0;
}
core_initcall(morsel_init_block_locks);

static struct mutex *morsel_block_lock(const struct morsel *morsel, pgoff_t index,
				       unsigned int order)
{
	unsigned long block = (unsigned long)morsel ^ (index >> order);

	return &morsel_block_locks[hash_long(block, ilog2(ARRAY_SIZE(morsel_block_locks)))];
}

/* Out of line, so that the common case needs no struct morsel_supply. */
static noinline int morsel_fill_slow(struct morsel *morsel, pgoff_t index, pgoff_t end,
				     struct vm_area_struct *vma, unsigned long address,
				     struct page **page)
{
	struct morsel_supply supply = {};
	struct mutex *lock = NULL;
	unsigned int locked = 0;
	struct morsel_place place;
	int err = 0;

	for (;;) {
		unsigned int order;
		pgoff_t limit;
		bool there;

		morsel_enter(morsel);
		limit = morsel_limit(morsel, end);
		there = index < limit && morsel_install_supply(morsel, index, &supply, &place);
		if (there)
			morsel_return_page(place.page, page);
		morsel_leave();
		if (there)
			break;
		err = index < limit ? 0 : -EFBIG;
		if (err)
			break;
		order = morsel_block_order(morsel, index, limit, &place, &supply);
		if (order && order != locked) {
			if (lock)
				mutex_unlock(lock);
			lock = morsel_block_lock(morsel, index, order);
			mutex_lock(lock);
			locked = order;
			/* Another task may have filled it. */
			continue;
		}
		if (order)
			morsel_add_block(morsel, order, index, vma, address, &supply);
		else
			err = morsel_provide(morsel, index, vma, address, &place, &supply);
		if (err)
			break;
	}
	if (lock)
		mutex_unlock(lock);
	morsel_free_supply(morsel, &supply);
	return err;
}

/**
 * morsel_fill - allocate a page unless it exists, or map one of persistent memory
 * @morsel: the morsel
 * @index: index of the page
 * @end: end of the pages that may exist, 0 for the size of the file
 * @vma: mapping with the memory policy, NULL for that of the task
 * @address: address of the page in @vma
 * @page: set to the page, with a reference, unless NULL
 *
 * Any number of tasks may fill the same morsel concurrently.
 *
 * Context: may sleep.
 * Return: 0, -EFBIG beyond the end, -ENOSPC, -ENOMEM, or -EIO for persistent memory that
 * cannot be mapped.
 */
int morsel_fill(struct morsel *morsel, pgoff_t index, pgoff_t end,
		struct vm_area_struct *vma, unsigned long address,
		struct page **page)
{
	if (morsel_is_present(morsel, index, end, page))
		return 0;
	if (morsel_sb_of(morsel->inode.i_sb)->pmem)
		return morsel_pmem_fill(morsel, index);
	return morsel_fill_slow(morsel, index, end, vma, address, page);
}
