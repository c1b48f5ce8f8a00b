// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables of sealed morsels in persistent memory.
 *
 * The tables in the range are relative to it, and input: those that are attached to
 * processes are in memory. They are built from faults, each entry after its words were
 * checked, and stay until the unmount, because nothing changes what is sealed. Their
 * leaves are those of DAX: they hold no reference, and pins take one.
 *
 * One task at a time builds. Others read and attach the tables meanwhile, so an entry is
 * set by one store, to what is complete. page_table_check is not told: the pages are
 * never freed.
 */

#include <linux/dax.h>
#include <linux/mm.h>
#include <linux/pfn_t.h>
#include <linux/xarray.h>
#include <asm/pgalloc.h>

#include <trace/events/morsel.h>

#include "pmem.h"

/* Number of entries for 2 MiB that one fault sets. */
#define PMDS_AROUND	16

static pgprot_t morsel_pmem_prot(void)
{
	return vm_get_page_prot(VM_READ | VM_SHARED);
}

static pud_t morsel_pmem_pud(pfn_t pfn)
{
	pud_t leaf = pud_mkhuge(pfn_pud(pfn_t_to_pfn(pfn), morsel_pmem_prot()));

	return pud_mkyoung(pud_mkdevmap(leaf));
}

static pmd_t morsel_pmem_pmd(pfn_t pfn)
{
	pmd_t leaf = pmd_mkhuge(pfn_pmd(pfn_t_to_pfn(pfn), morsel_pmem_prot()));

	return pmd_mkyoung(pmd_mkdevmap(leaf));
}

/* Entries */

/* The PUD entry of a page. Return: NULL without memory for a table. */
static pud_t *morsel_pmem_add_puds(struct morsel *morsel, pgoff_t index)
{
	pud_t *table, *pud = morsel_pud(morsel, index);

	if (pud)
		return pud;
	table = pud_alloc_one(current->mm, 0);
	if (!table)
		return NULL;
	if (xa_err(xa_store(&morsel->regions, index / REGION_PAGES, table,
			    GFP_KERNEL_ACCOUNT))) {
		pud_free(current->mm, table);
		return NULL;
	}
	morsel_count_tables(1);
	return morsel_pud(morsel, index);
}

static pmd_t *morsel_pmem_add_pmds(struct morsel *morsel, pgoff_t index, pud_t *pud)
{
	if (pud_none(*pud)) {
		pmd_t *table = pmd_alloc_one(current->mm, 0);

		if (!table)
			return NULL;
		/* A table of zeros, before what leads to it. */
		smp_store_release(&pud->pud, __pa(table) | _PAGE_TABLE);
		morsel_count_tables(1);
	}
	return morsel_pmd(morsel, index);
}

/* Map 1 GiB by one leaf. Return: whether it can be. */
static bool morsel_pmem_set_pud(struct morsel *morsel, pgoff_t index, pud_t *pud)
{
	pfn_t pfn;

	if (!morsel_pmem_find_block(&morsel->inode, round_down(index, PUD_PAGES), PUD_PAGES,
				    &pfn))
		return false;
	WRITE_ONCE(*pud, morsel_pmem_pud(pfn));
	return true;
}

/* Map the blocks of 2 MiB around that of a page, @pmd. */
static void morsel_pmem_set_pmds(struct morsel *morsel, pgoff_t index, pmd_t *pmd)
{
	pgoff_t at = round_down(index, PMDS_AROUND * PMD_PAGES);
	pgoff_t end = at + PMDS_AROUND * PMD_PAGES;

	pmd -= (index - at) / PMD_PAGES;
	for (; at < end; at += PMD_PAGES, pmd++) {
		pfn_t pfn;

		if (pmd_none(*pmd) &&
		    morsel_pmem_find_block(&morsel->inode, at, PMD_PAGES, &pfn))
			WRITE_ONCE(*pmd, morsel_pmem_pmd(pfn));
	}
}

/* The leaf of a single page. Return: an empty entry for a page that cannot be mapped. */
static pte_t morsel_pmem_pte(struct morsel *morsel, pgoff_t index)
{
	const struct morsel_pmem *pmem = morsel_sb_of(morsel->inode.i_sb)->pmem;
	struct morsel_run run;
	pfn_t pfn;

	if (morsel_pmem_find(&morsel->inode, index, &run))
		return __pte(0);
	if (!run.page)
		return pte_mkyoung(pte_mkspecial(pfn_pte(my_zero_pfn(0), morsel_pmem_prot())));
	if (morsel_pmem_pfn(pmem, run.page, 1, &pfn) < 1)
		return __pte(0);
	return pte_mkyoung(pte_mkdevmap(pfn_pte(pfn_t_to_pfn(pfn), morsel_pmem_prot())));
}

/* Map the single pages of 2 MiB that are in the file. */
static void morsel_pmem_set_ptes(struct morsel *morsel, pgoff_t index, pte_t *ptes)
{
	pgoff_t at = round_down(index, PMD_PAGES);
	pgoff_t end = min_t(pgoff_t, at + PMD_PAGES,
			    DIV_ROUND_UP(i_size_read(&morsel->inode), PAGE_SIZE));

	for (; at < end; at++, ptes++)
		if (pte_none(*ptes))
			WRITE_ONCE(*ptes, morsel_pmem_pte(morsel, at));
}

static int morsel_pmem_add_ptes(struct morsel *morsel, pgoff_t index, pmd_t *pmd)
{
	struct page *table;

	if (!pmd_none(*pmd)) {
		morsel_pmem_set_ptes(morsel, index, (pte_t *)pmd_page_vaddr(*pmd));
		return 0;
	}
	table = __pte_alloc_one(current->mm, GFP_PGTABLE_USER | __GFP_RETRY_MAYFAIL);
	if (!table)
		return -ENOMEM;
	morsel_pmem_set_ptes(morsel, index, page_address(table));
	/* The entries, before what leads to them. */
	smp_store_release(&pmd->pmd, PFN_PHYS(page_to_pfn(table)) | _PAGE_TABLE);
	morsel_count_tables(1);
	return 0;
}

/* Filling */

static int morsel_pmem_build(struct morsel *morsel, pgoff_t index)
{
	pud_t *pud = morsel_pmem_add_puds(morsel, index);
	pmd_t *pmd;

	morsel_count(MORSEL_BUILT);
	if (!pud)
		return -ENOMEM;
	if (pud_none(*pud) && morsel_pmem_set_pud(morsel, index, pud))
		return 0;
	pmd = morsel_pmem_add_pmds(morsel, index, pud);
	if (!pmd)
		return -ENOMEM;
	morsel_pmem_set_pmds(morsel, index, pmd);
	return pmd_leaf(*pmd) ? 0 : morsel_pmem_add_ptes(morsel, index, pmd);
}

/* Why a page cannot be mapped. */
static int morsel_pmem_why_missing(const struct inode *inode, pgoff_t index)
{
	struct morsel_run run;
	long pages;
	pfn_t pfn;
	int err = morsel_pmem_find(inode, index, &run);

	if (err)
		return err;
	pages = morsel_pmem_pfn(morsel_pmem_of(inode), run.page, 1, &pfn);
	return pages < 0 ? pages : -EIO;
}

/**
 * morsel_pmem_fill - build what leads to a page of a sealed morsel
 * @morsel: the morsel
 * @index: index of the page
 *
 * Context: may sleep.
 * Return: 0, -EFBIG beyond the end, -ENOMEM, -EHWPOISON for a broken page, -EUCLEAN for a
 * damaged word, or -EIO.
 */
int morsel_pmem_fill(struct morsel *morsel, pgoff_t index)
{
	struct morsel_pmem *pmem = morsel_sb_of(morsel->inode.i_sb)->pmem;
	int err;

	if (index >= DIV_ROUND_UP(i_size_read(&morsel->inode), PAGE_SIZE))
		return -EFBIG;
	guard(mutex)(&pmem->building);
	/* Another task may have built it. */
	if (morsel_peek(morsel, index))
		return 0;
	err = morsel_pmem_build(morsel, index);
	if (!err && !morsel_peek(morsel, index))
		err = morsel_pmem_why_missing(&morsel->inode, index);
	trace_morsel_build(&morsel->inode, index, err);
	return err;
}
