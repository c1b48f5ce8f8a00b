// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks of the leaves of a morsel: remove, protect, count, find pages, and check for
 * references.
 */

#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/page_table_check.h>
#include <linux/sched.h>
#include <linux/xarray.h>

#include "internal.h"

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

/* As above, for the next entry that does not have the bit @leaf, which leaves have. */
static pgoff_t morsel_next_missing(const unsigned long *entry, pgoff_t index,
				   pgoff_t pages, unsigned long leaf)
{
	index &= ~(pages - 1);
	do
		index += pages;
	while (index & (pages * PTRS_PER_PTE - 1) && READ_ONCE(*++entry) & leaf);
	return index;
}

/* Skip the existing pages of one table. Return: false if the page does not exist. */
static bool morsel_skip_pages(struct morsel *morsel, pgoff_t *index)
{
	struct morsel_place place;

	morsel_lookup(morsel, *index, &place);
	if (!place.page)
		return false;
	*index = place.pte ? morsel_next_missing(&place.pte->pte, *index, 1,
						 _PAGE_PRESENT) :
		 place.pmd ? morsel_next_missing(&place.pmd->pmd, *index, PMD_PAGES,
						 _PAGE_PSE) :
			     morsel_next_missing(&place.pud->pud, *index, PUD_PAGES,
						 _PAGE_PSE);
	return true;
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

/* Removing and protecting */

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

static bool morsel_forget_leaf(struct morsel *morsel, const struct morsel_leaf *leaf, void *arg)
{
	WRITE_ONCE(*leaf->entry, 0);
	return need_resched();
}

/**
 * morsel_forget - remove all leaves, and keep their pages
 * @morsel: the morsel, which is not in use any more
 *
 * Context: may sleep.
 */
void morsel_forget(struct morsel *morsel)
{
	morsel_change_leaves(morsel, 0, ULONG_MAX, morsel_forget_leaf, NULL);
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

/* Checking for references */

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

/* Finding and counting */

/**
 * morsel_find_hole - find the first missing page of a range
 * @morsel: the morsel
 * @index: first page of the range
 * @end: end of the range
 *
 * Context: may sleep.
 * Return: index of the page, or @end if none is missing.
 */
pgoff_t morsel_find_hole(struct morsel *morsel, pgoff_t index, pgoff_t end)
{
	bool is_there = true;

	while (is_there && index < end) {
		morsel_enter(morsel);
		do
			is_there = morsel_skip_pages(morsel, &index);
		while (is_there && index < end && !need_resched());
		morsel_leave();
		cond_resched();
	}
	return min(index, end);
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
