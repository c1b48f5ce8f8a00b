/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Published bugs of Linux that tests bring back, one at a time. The debug-only seams (96x)
 * call these where the fixes are.
 */
#ifndef _LINUX_TOLL_BUGS_H
#define _LINUX_TOLL_BUGS_H

#include <linux/compiler.h>
#include <linux/pgtable.h>
#include <linux/types.h>

struct folio;
struct mmu_gather;
struct vm_area_struct;

/* In the order of the names in sysfs. */
enum toll_bug {
	TOLL_BUG_NONE,
	/* mremap() flushes after the page-table lock was dropped. */
	TOLL_BUG_CVE_2018_18281,
	/* mremap() does not look again at an entry once it is locked. */
	TOLL_BUG_CVE_2024_50066,
	/* A split of a mapping gives up shared hugetlb tables before it is locked. */
	TOLL_BUG_CVE_2025_38084,
	/* A table of hugetlb pages is given up while other CPUs may walk it by software. */
	TOLL_BUG_CVE_2025_38085,
	/* Entries that are restored together get the rights of the first one. */
	TOLL_BUG_CVE_2026_31398,
	TOLL_BUGS,
};

extern unsigned int toll_bug_planted;

/**
 * toll_bug - whether a test brings a bug back
 * @bug: the bug
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool toll_bug(enum toll_bug bug)
{
	return READ_ONCE(toll_bug_planted) == bug;
}

void toll_bug_await_collapse(const pmd_t *entry);
void toll_bug_flush_moved(struct vm_area_struct *vma, unsigned long start,
			  unsigned long end);
void toll_bug_unshare_early(struct vm_area_struct *vma);
void toll_bug_spare_walkers(struct mmu_gather *tlb);
void toll_bug_restore_batch(struct folio *folio, struct vm_area_struct *vma,
			    unsigned long address, pte_t *ptep, pte_t entry);

#endif /* _LINUX_TOLL_BUGS_H */
