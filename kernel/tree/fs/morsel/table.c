// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page tables of a morsel. The pages that they map are its content, and they are
 * attached to the tables of processes that map the morsel.
 *
 * Many CPUs may fill them concurrently: one compare-and-exchange sets an empty entry to
 * a table or a leaf, which stays. Entries are removed or changed only with the lock of
 * the inode held and the morsel closed, see linux/morsel.h. Tables are freed only while
 * the file is not mapped.
 */

#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_table_check.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>
#include <asm/pgalloc.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/morsel.h>

DEFINE_PER_CPU(unsigned long[MORSEL_COUNTS], morsel_counts);

/* Number of pages and of tables of all morsels. */
struct percpu_counter morsel_all_pages, morsel_all_tables;

#define REGION_PAGES	((pgoff_t)PTRS_PER_PUD << (PUD_SHIFT - PAGE_SHIFT))
#define PUD_PAGES	((pgoff_t)1 << (PUD_SHIFT - PAGE_SHIFT))
#define PMD_PAGES	((pgoff_t)1 << PMD_ORDER)

/* Exclusion */

/**
 * morsel_try_enter - morsel_enter() without waiting
 * @morsel: the morsel
 *
 * Context: any; on success RCU is locked until morsel_leave().
 * Return: false while the morsel is closed.
 */
bool morsel_try_enter(struct morsel *morsel)
{
	rcu_read_lock();
	/* Pairs with synchronize_rcu() in morsel_close(). */
	if (likely(!READ_ONCE(morsel->closed)))
		return true;
	rcu_read_unlock();
	return false;
}

/**
 * morsel_enter - begin a section that reads or fills the tables
 * @morsel: the morsel
 *
 * Waits while the morsel is closed.
 *
 * Context: may sleep; then RCU is locked until morsel_leave().
 */
void morsel_enter(struct morsel *morsel)
{
	while (!morsel_try_enter(morsel))
		wait_var_event(&morsel->closed, !READ_ONCE(morsel->closed));
}

/**
 * morsel_leave - end the section of morsel_enter()
 *
 * Context: any; unlocks RCU.
 */
void morsel_leave(void)
{
	rcu_read_unlock();
}

/**
 * morsel_close - exclude reading and filling the tables until morsel_open()
 * @morsel: the morsel
 *
 * Context: may sleep; the lock of the inode is held for writing.
 */
void morsel_close(struct morsel *morsel)
{
	lockdep_assert_held_write(&morsel->inode.i_rwsem);
	WRITE_ONCE(morsel->closed, true);
	synchronize_rcu();
	morsel_count(MORSEL_CLOSED);
}

/**
 * morsel_open - end morsel_close()
 * @morsel: the morsel
 *
 * Context: the lock of the inode is held for writing.
 */
void morsel_open(struct morsel *morsel)
{
	/* Sections that begin after this see the changes. */
	store_release_wake_up(&morsel->closed, false);
}

/* Entries */

static unsigned long morsel_index_address(pgoff_t index)
{
	return index << PAGE_SHIFT;
}

/**
 * morsel_pud - PUD entry of a morsel's own tables
 * @morsel: the morsel
 * @index: index of a page of the GiB
 *
 * Context: any; the entry stays while the morsel is entered, closed or mapped.
 * Return: the entry, or NULL if there is no table.
 */
pud_t *morsel_pud(struct morsel *morsel, pgoff_t index)
{
	pud_t *region = xa_load(&morsel->regions, index / REGION_PAGES);

	return region ? region + pud_index(morsel_index_address(index)) : NULL;
}

/**
 * morsel_pmd - PMD entry of a morsel's own tables
 * @morsel: the morsel
 * @index: index of a page of the 2 MiB
 *
 * Context: the morsel is entered or closed.
 * Return: the entry, or NULL if there is no table, or a leaf of 1 GiB.
 */
pmd_t *morsel_pmd(struct morsel *morsel, pgoff_t index)
{
	pud_t *own = morsel_pud(morsel, index), pud;

	if (!own)
		return NULL;
	pud = READ_ONCE(*own);
	if (pud_none(pud) || pud_leaf(pud))
		return NULL;
	return pmd_offset(&pud, morsel_index_address(index));
}

/* Entries of the tables for a page, as far as they exist, and the page. */
struct morsel_place {
	pud_t *pud;
	pmd_t *pmd;
	pte_t *pte;
	struct page *page;
};

static void morsel_lookup(struct morsel *morsel, pgoff_t index, struct morsel_place *place)
{
	pud_t pud;
	pmd_t pmd;
	pte_t pte;

	*place = (struct morsel_place){ .pud = morsel_pud(morsel, index) };
	if (!place->pud)
		return;
	pud = READ_ONCE(*place->pud);
	if (pud_none(pud))
		return;
	if (pud_leaf(pud)) {
		place->page = pud_page(pud) + (index & (PUD_PAGES - 1));
		return;
	}
	place->pmd = pmd_offset(&pud, morsel_index_address(index));
	pmd = pmdp_get_lockless(place->pmd);
	if (pmd_none(pmd))
		return;
	if (pmd_leaf(pmd)) {
		place->page = pmd_page(pmd) + (index & (PMD_PAGES - 1));
		return;
	}
	place->pte = pte_offset_kernel(&pmd, morsel_index_address(index));
	pte = ptep_get_lockless(place->pte);
	if (!pte_none(pte))
		place->page = pte_page(pte);
}

/**
 * morsel_peek - page of a morsel, without a reference
 * @morsel: the morsel
 * @index: index of the page
 *
 * Context: the morsel is entered or closed, and the page is valid until then.
 * Return: the page, or NULL if there is none yet.
 */
struct page *morsel_peek(struct morsel *morsel, pgoff_t index)
{
	struct morsel_place place;

	morsel_lookup(morsel, index, &place);
	return place.page;
}

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

/* Filling */

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

/* In a process with threads: wait until another one has filled the entry, or 200 ms. */
static unsigned long morsel_wait_for_other(const unsigned long *entry)
{
	int ms;

	for (ms = 0; ms < 200 && !READ_ONCE(*entry); ms++) {
		if (thread_group_empty(current))
			break;
		mdelay(1);
	}
	return READ_ONCE(*entry);
}

static bool morsel_install_entry(unsigned long *entry, unsigned long value)
{
	unsigned long none = 0;

	if (morsel_is_planted(PLANT_LAST_FILL_WINS))
		none = morsel_wait_for_other(entry);
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

static void morsel_count_pages(struct morsel *morsel, long pages)
{
	percpu_counter_add(&morsel->pages, pages);
	percpu_counter_add(&morsel_all_pages, pages);
}

static void morsel_count_tables(long tables)
{
	percpu_counter_add(&morsel_all_tables, tables);
}

static bool morsel_charge(struct morsel *morsel, long pages)
{
	struct morsel_sb *sb = morsel_sb_of(morsel->inode.i_sb);

	if (sb->limit)
		return percpu_counter_limited_add(&sb->used, sb->limit, pages);
	percpu_counter_add(&sb->used, pages);
	return true;
}

static void morsel_uncharge(struct morsel *morsel, long pages)
{
	percpu_counter_sub(&morsel_sb_of(morsel->inode.i_sb)->used, pages);
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

static void morsel_free_unused(struct folio *folio)
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

/* Free a folio that a concurrent fault may have mapped. */
static void morsel_free_mapped(struct folio *folio)
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

/* The buddy allocator has no blocks of 1 GiB: compaction makes one, which is slow. */
static struct folio *morsel_alloc_giant(struct morsel *morsel, pgoff_t index)
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

static struct folio *morsel_alloc_large(struct morsel *morsel, pgoff_t index,
					struct vm_area_struct *vma,
					unsigned long address)
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

static int morsel_alloc_small(struct morsel *morsel, pgoff_t index,
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

/* Allocate the next missing table or page. */
static int morsel_provide(struct morsel *morsel, pgoff_t index, pgoff_t end,
			  struct vm_area_struct *vma, unsigned long address,
			  const struct morsel_place *place, struct morsel_supply *supply)
{
	if (!place->pud)
		return morsel_add_region(morsel, index);
	if (!place->pmd && !supply->has_no_giant &&
	    morsel_may_use_order(morsel, PUD_ORDER, index, end)) {
		supply->giant = morsel_alloc_giant(morsel, index);
		if (supply->giant)
			return 0;
		supply->has_no_giant = true;
		morsel_count(MORSEL_NO_GIANT);
	}
	if (!place->pmd)
		return morsel_add_pmds(morsel, supply);
	if (!place->pte && !supply->has_no_large &&
	    morsel_may_use_order(morsel, PMD_ORDER, index, end)) {
		supply->large = morsel_alloc_large(morsel, index, vma, address);
		if (supply->large)
			return 0;
		supply->has_no_large = true;
		morsel_count(MORSEL_NO_LARGE);
	}
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

/* Out of line, so that the common case needs no struct morsel_supply. */
static noinline int morsel_fill_slow(struct morsel *morsel, pgoff_t index, pgoff_t end,
				     struct vm_area_struct *vma, unsigned long address,
				     struct page **page)
{
	struct morsel_supply supply = {};
	struct morsel_place place;
	int err = 0;

	for (;;) {
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
		err = index < limit ? morsel_provide(morsel, index, limit, vma, address,
						     &place, &supply) : -EFBIG;
		if (err)
			break;
	}
	morsel_free_supply(morsel, &supply);
	return err;
}

/**
 * morsel_fill - allocate a page unless it exists
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
 * Return: 0, -EFBIG beyond the end, -ENOSPC or -ENOMEM.
 */
int morsel_fill(struct morsel *morsel, pgoff_t index, pgoff_t end,
		struct vm_area_struct *vma, unsigned long address,
		struct page **page)
{
	if (morsel_is_present(morsel, index, end, page))
		return 0;
	return morsel_fill_slow(morsel, index, end, vma, address, page);
}

/* Walks of a range */

/* A leaf: its entry, first page and number of pages. */
struct morsel_leaf {
	unsigned long *entry;
	enum morsel_level level;
	pgoff_t index;
	unsigned long pages;
	struct folio *folio;
};

typedef bool (*morsel_leaf_fn)(struct morsel *morsel, const struct morsel_leaf *leaf,
			       void *arg);

static void morsel_set_leaf(struct morsel_leaf *leaf, const struct morsel_place *place,
			    pgoff_t index)
{
	if (place->pte) {
		leaf->entry = &place->pte->pte;
		leaf->level = MORSEL_PAGE;
	} else if (place->pmd) {
		leaf->entry = &place->pmd->pmd;
		leaf->level = MORSEL_PMD;
	} else {
		leaf->entry = &place->pud->pud;
		leaf->level = MORSEL_PUD;
	}
	leaf->pages = morsel_slot_size(leaf->level) >> PAGE_SHIFT;
	leaf->index = index & ~(leaf->pages - 1);
	leaf->folio = page_folio(place->page);
}

/*
 * Return: the first page of the next entry of a table that is not empty, or the end of
 * the table. An entry maps @pages pages, and @entry is that of @index.
 */
static pgoff_t morsel_next_used(const unsigned long *entry, pgoff_t index, pgoff_t pages)
{
	index &= ~(pages - 1);
	do
		index += pages;
	while (index & (pages * PTRS_PER_PTE - 1) && !READ_ONCE(*++entry));
	return index;
}

/*
 * Call @call for each leaf that has a page of the range, until it returns true. Set
 * @index to where to continue, or @end. The morsel is entered or closed.
 */
static void morsel_walk_leaves(struct morsel *morsel, pgoff_t *index, pgoff_t end,
			       morsel_leaf_fn call, void *arg)
{
	while (*index < end) {
		struct morsel_place place;
		struct morsel_leaf leaf;

		morsel_lookup(morsel, *index, &place);
		if (!place.pud) {
			unsigned long region = *index / REGION_PAGES;

			if (!xa_find_after(&morsel->regions, &region, ULONG_MAX,
					   XA_PRESENT))
				break;
			*index = region * REGION_PAGES;
			continue;
		}
		if (!place.page) {
			*index = place.pte ? morsel_next_used(&place.pte->pte, *index, 1) :
				 place.pmd ? morsel_next_used(&place.pmd->pmd, *index,
							      PMD_PAGES) :
					     morsel_next_used(&place.pud->pud, *index,
							      PUD_PAGES);
			continue;
		}
		morsel_set_leaf(&leaf, &place, *index);
		*index = leaf.index + leaf.pages;
		if (call(morsel, &leaf, arg))
			return;
	}
	*index = end;
}

/* Walk all leaves of a closed morsel, and reschedule in between. */
static void morsel_change_leaves(struct morsel *morsel, pgoff_t first, pgoff_t end,
				 morsel_leaf_fn call, void *arg)
{
	while (first < end) {
		morsel_walk_leaves(morsel, &first, end, call, arg);
		cond_resched();
	}
}

/* Walk all leaves of an open morsel: pages that are filled meanwhile may be missed. */
static void morsel_visit_leaves(struct morsel *morsel, pgoff_t first, pgoff_t end,
				morsel_leaf_fn call, void *arg)
{
	while (first < end) {
		morsel_enter(morsel);
		morsel_walk_leaves(morsel, &first, end, call, arg);
		morsel_leave();
		cond_resched();
	}
}

struct morsel_leaf_range {
	pgoff_t first;
	pgoff_t end;
	unsigned long pages;
	unsigned long until;
};

static void morsel_clear_leaf(const struct morsel_leaf *leaf)
{
	switch (leaf->level) {
	case MORSEL_PAGE:
		page_table_check_pte_clear(NULL, __pte(*leaf->entry));
		break;
	case MORSEL_PMD:
		page_table_check_pmd_clear(NULL, __pmd(*leaf->entry));
		break;
	case MORSEL_PUD:
		page_table_check_pud_clear(NULL, __pud(*leaf->entry));
		break;
	}
	WRITE_ONCE(*leaf->entry, 0);
}

/* Remove a leaf. Zero the part of a block that is only partly in the range. */
static bool morsel_remove_leaf(struct morsel *morsel, const struct morsel_leaf *leaf,
			       void *arg)
{
	const struct morsel_leaf_range *range = arg;
	pgoff_t from = max(leaf->index, range->first);
	pgoff_t to = min(leaf->index + leaf->pages, range->end);

	if (to - from < leaf->pages) {
		for (; from < to; from++) {
			struct page *page = folio_page(leaf->folio,
						       from - leaf->index);

			if (!PageHWPoison(page))
				clear_highpage(page);
			cond_resched();
		}
	} else {
		morsel_clear_leaf(leaf);
		morsel_free_mapped(leaf->folio);
		morsel_uncharge(morsel, leaf->pages);
		morsel_count_pages(morsel, -(long)leaf->pages);
	}
	morsel_stop_at(STOP_IN_REMOVE);
	return need_resched() || time_after_eq(jiffies, range->until);
}

/**
 * morsel_remove - remove pages
 * @morsel: the morsel
 * @first: first page of the range
 * @end: end of the range
 * @ms: time in ms after which to stop, after at least one leaf
 *
 * Blocks that are partly in the range stay, and read as zeros there.
 *
 * Context: may sleep; the morsel is closed, and the range is neither attached nor
 * mapped.
 * Return: index of the page to continue with, or @end.
 */
pgoff_t morsel_remove(struct morsel *morsel, pgoff_t first, pgoff_t end,
		      unsigned int ms)
{
	struct morsel_leaf_range range = {
		.first = first,
		.end = end,
		.until = jiffies + msecs_to_jiffies(ms),
	};

	while (first < end) {
		morsel_walk_leaves(morsel, &first, end, morsel_remove_leaf, &range);
		if (time_after_eq(jiffies, range.until))
			break;
		cond_resched();
	}
	return first;
}

static bool morsel_protect_leaf(struct morsel *morsel, const struct morsel_leaf *leaf,
				void *arg)
{
	switch (leaf->level) {
	case MORSEL_PAGE:
		WRITE_ONCE(*leaf->entry,
			   pte_val(pte_wrprotect(__pte(*leaf->entry))));
		break;
	case MORSEL_PMD:
		WRITE_ONCE(*leaf->entry,
			   pmd_val(pmd_wrprotect(__pmd(*leaf->entry))));
		break;
	case MORSEL_PUD:
		WRITE_ONCE(*leaf->entry,
			   pud_val(pud_wrprotect(__pud(*leaf->entry))));
		break;
	}
	return need_resched();
}

/**
 * morsel_protect - make all leaves read-only
 * @morsel: the morsel
 *
 * Context: may sleep; the morsel is closed, and attached nowhere.
 */
void morsel_protect(struct morsel *morsel)
{
	morsel_change_leaves(morsel, 0, ULONG_MAX, morsel_protect_leaf, NULL);
}

/* The table has one reference, and each mapping of a single page another. */
static bool morsel_check_holder(struct morsel *morsel, const struct morsel_leaf *leaf, void *arg)
{
	bool *is_held = arg;

	if (folio_ref_count(leaf->folio) != 1 + folio_mapcount(leaf->folio))
		*is_held = true;
	return need_resched();
}

/**
 * morsel_is_pinned - whether a page of a morsel seems to be pinned
 * @morsel: the morsel
 *
 * An estimate, because single pages are mapped and unmapped concurrently. Unlike
 * morsel_is_held() it works on an open morsel.
 *
 * Context: may sleep.
 * Return: true if a page seems to have further references.
 */
bool morsel_is_pinned(struct morsel *morsel)
{
	bool is_held = false;

	morsel_visit_leaves(morsel, 0, ULONG_MAX, morsel_check_holder, &is_held);
	return is_held;
}

static bool morsel_check_reference(struct morsel *morsel, const struct morsel_leaf *leaf,
				   void *arg)
{
	bool *is_held = arg;

	if (folio_ref_count(leaf->folio) != 1)
		*is_held = true;
	return need_resched();
}

/**
 * morsel_is_held - whether a page of a morsel has further references
 * @morsel: the morsel
 *
 * Each page has one reference of the table. A fault that found its page before the
 * close has another one, which its mapping keeps.
 *
 * Context: may sleep; the morsel is closed, and no single page is mapped since then.
 * Return: true if a page may have further references; false is certain.
 */
bool morsel_is_held(struct morsel *morsel)
{
	bool is_held = false;

	morsel_change_leaves(morsel, 0, ULONG_MAX, morsel_check_reference, &is_held);
	return is_held;
}

struct morsel_found {
	pgoff_t first;
	struct page *page;
};

static bool morsel_get_first(struct morsel *morsel, const struct morsel_leaf *leaf, void *arg)
{
	struct morsel_found *found = arg;

	found->first = max(leaf->index, found->first);
	found->page = folio_page(leaf->folio, found->first - leaf->index);
	get_page(found->page);
	return true;
}

/**
 * morsel_find_next - get the first existing page of a range
 * @morsel: the morsel
 * @index: first page of the range; set to the index of the page
 * @end: end of the range
 *
 * Context: may sleep.
 * Return: the page, with a reference, or NULL if there is none.
 */
struct page *morsel_find_next(struct morsel *morsel, pgoff_t *index,
			      pgoff_t end)
{
	struct morsel_found found = { .first = *index };

	morsel_enter(morsel);
	morsel_walk_leaves(morsel, index, end, morsel_get_first, &found);
	morsel_leave();
	*index = found.first;
	return found.page;
}

static bool morsel_count_leaf(struct morsel *morsel, const struct morsel_leaf *leaf, void *arg)
{
	struct morsel_leaf_range *range = arg;

	range->pages += min(leaf->index + leaf->pages, range->end) -
			max(leaf->index, range->first);
	return need_resched();
}

/**
 * morsel_resident - count the existing pages of a range
 * @morsel: the morsel
 * @first: first page of the range
 * @end: end of the range
 *
 * Context: may sleep.
 * Return: number of pages.
 */
unsigned long morsel_resident(struct morsel *morsel, pgoff_t first, pgoff_t end)
{
	struct morsel_leaf_range range = { .first = first, .end = end };

	morsel_visit_leaves(morsel, first, end, morsel_count_leaf, &range);
	return range.pages;
}

/* Freeing tables */

/* Unreachable tables that lockless walks may still read, until a grace period. */
struct morsel_old_tables {
	struct rcu_work work;
	struct list_head puds, pmds, ptes;
	long tables;
};

static void morsel_free_old_tables(struct work_struct *work)
{
	struct morsel_old_tables *old =
		container_of(to_rcu_work(work), struct morsel_old_tables, work);
	struct ptdesc *table, *next;

	list_for_each_entry_safe(table, next, &old->ptes, pt_list)
		pte_free(NULL, ptdesc_page(table));
	list_for_each_entry_safe(table, next, &old->pmds, pt_list) {
		/* Shares memory with pt_list. */
		table->pmd_huge_pte = NULL;
		pmd_free(NULL, ptdesc_address(table));
	}
	list_for_each_entry_safe(table, next, &old->puds, pt_list)
		pud_free(NULL, ptdesc_address(table));
	kfree(old);
}

static bool morsel_is_empty(const void *table)
{
	return !memchr_inv(table, 0, PAGE_SIZE);
}

/* Collect the empty tables of a GiB. Return: whether its PMD table is empty. */
static bool morsel_collect_pmds(pmd_t *pmds, pgoff_t index, pgoff_t first,
				pgoff_t end, struct morsel_old_tables *old)
{
	int i;

	for (i = 0; i < PTRS_PER_PMD; i++, index += PMD_PAGES) {
		struct ptdesc *ptes;

		if (index + PMD_PAGES <= first || index >= end ||
		    pmd_none(pmds[i]) || pmd_leaf(pmds[i]) ||
		    !morsel_is_empty((void *)pmd_page_vaddr(pmds[i])))
			continue;
		ptes = page_ptdesc(pmd_page(pmds[i]));
		WRITE_ONCE(pmds[i], __pmd(0));
		list_add(&ptes->pt_list, &old->ptes);
		old->tables++;
	}
	return morsel_is_empty(pmds);
}

/* Collect the empty tables of a region. Return: whether its PUD table is empty. */
static bool morsel_collect_puds(pud_t *puds, pgoff_t index, pgoff_t first,
				pgoff_t end, struct morsel_old_tables *old)
{
	int i;

	for (i = 0; i < PTRS_PER_PUD; i++, index += PUD_PAGES) {
		pmd_t *pmds;

		if (index + PUD_PAGES <= first || index >= end ||
		    pud_none(puds[i]) || pud_leaf(puds[i]))
			continue;
		pmds = pud_pgtable(puds[i]);
		if (!morsel_collect_pmds(pmds, index, first, end, old))
			continue;
		WRITE_ONCE(puds[i], __pud(0));
		list_add(&virt_to_ptdesc(pmds)->pt_list, &old->pmds);
		old->tables++;
	}
	return morsel_is_empty(puds);
}

static void morsel_free_tables_by(struct morsel *morsel, pgoff_t first,
				  pgoff_t end, gfp_t gfp)
{
	struct morsel_old_tables *old;
	unsigned long at;
	pud_t *puds;

	if (xa_empty(&morsel->regions))
		return;
	old = kmalloc(sizeof(*old), gfp);
	if (!old)
		return;
	INIT_LIST_HEAD(&old->puds);
	INIT_LIST_HEAD(&old->pmds);
	INIT_LIST_HEAD(&old->ptes);
	old->tables = 0;
	xa_for_each_range(&morsel->regions, at, puds, first / REGION_PAGES,
			  (end - 1) / REGION_PAGES) {
		if (!morsel_collect_puds(puds, at * REGION_PAGES, first, end, old))
			continue;
		xa_erase(&morsel->regions, at);
		list_add(&virt_to_ptdesc(puds)->pt_list, &old->puds);
		old->tables++;
	}
	morsel_count_tables(-old->tables);
	morsel_uncharge(morsel, old->tables);
	INIT_RCU_WORK(&old->work, morsel_free_old_tables);
	if (morsel_is_planted(PLANT_TLB_TABLES_GO_AT_ONCE))
		morsel_free_old_tables(&old->work.work);
	else
		queue_rcu_work(system_unbound_wq, &old->work);
}

/**
 * morsel_free_tables - free empty tables
 * @morsel: the morsel
 * @first: first page of a range from which pages were removed
 * @end: end of the range
 *
 * Walks of the tables of processes hold no lock that would keep them, so they stay
 * while the file is mapped. Without memory for the list they stay, too.
 *
 * Context: may sleep; the morsel is closed and not mapped.
 */
void morsel_free_tables(struct morsel *morsel, pgoff_t first, pgoff_t end)
{
	morsel_free_tables_by(morsel, first, end, GFP_KERNEL | __GFP_NOWARN);
}

/**
 * morsel_destroy - free all pages and tables of a morsel
 * @morsel: the morsel, which is not in use any more
 *
 * Context: may sleep.
 */
void morsel_destroy(struct morsel *morsel)
{
	pgoff_t first = 0;

	while (first < ULONG_MAX)
		first = morsel_remove(morsel, first, ULONG_MAX, 1000);
	morsel_free_tables_by(morsel, 0, ULONG_MAX, GFP_KERNEL | __GFP_NOFAIL);
	xa_destroy(&morsel->regions);
}
