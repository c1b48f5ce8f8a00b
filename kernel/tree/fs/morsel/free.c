// SPDX-License-Identifier: GPL-2.0-only
/* Free tables of a morsel that are empty, and a morsel that is not in use any more. */

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <asm/pgalloc.h>

#include "internal.h"

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
 * Pages of persistent memory stay.
 *
 * Context: may sleep.
 */
void morsel_destroy(struct morsel *morsel)
{
	pgoff_t first = 0;

	if (morsel_sb_of(morsel->inode.i_sb)->pmem) {
		morsel_forget(morsel);
		first = ULONG_MAX;
	}
	while (first < ULONG_MAX)
		first = morsel_remove(morsel, first, ULONG_MAX, 1000);
	morsel_free_tables_by(morsel, 0, ULONG_MAX, GFP_KERNEL | __GFP_NOFAIL);
	xa_destroy(&morsel->regions);
}
