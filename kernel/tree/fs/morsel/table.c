// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page tables of a morsel. The pages that they map are its content, and they are
 * attached to the tables of processes that map the morsel.
 *
 * Many CPUs may fill them concurrently: one compare-and-exchange sets an empty entry to
 * a table or a leaf, which stays. Entries are removed or changed only with the lock of
 * the inode held and the morsel closed, see linux/morsel.h. Tables are freed only while
 * the file is not mapped.
 *
 * This file has the exclusion of readers and changes, and lookups of entries.
 */

#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>

#include "internal.h"

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

/**
 * morsel_lookup - find the entries that lead to a page
 * @morsel: the morsel
 * @index: index of the page
 * @place: set to the entries and the page, as far as they exist
 *
 * Context: the morsel is entered or closed, and @place is valid until then.
 */
void morsel_lookup(struct morsel *morsel, pgoff_t index, struct morsel_place *place)
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
