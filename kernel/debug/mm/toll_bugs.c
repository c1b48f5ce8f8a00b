// SPDX-License-Identifier: GPL-2.0-only
/*
 * Published bugs of Linux that tests bring back. The file /sys/kernel/mm/toll_bugs/plant:
 *
 * plant	(RW) one bug a line, the present one in brackets. Writing a name brings
 *		that bug back, "nothing" none.
 *
 * Where a bug is a race, the window is widened by a pause.
 */

#include <linux/delay.h>
#include <linux/hugetlb.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/sysfs.h>
#include <linux/toll_bugs.h>
#include <linux/toll_plant.h>
#include <asm/tlb.h>
#include <asm/tlbflush.h>

#include "internal.h"

/* How long a task waits where another one must get in between, on an emulated machine. */
#define TOLL_BUG_PAUSE_MS	1000

unsigned int toll_bug_planted;

static const char *const toll_bug_names[TOLL_BUGS] = {
	[TOLL_BUG_NONE] = "nothing",
	[TOLL_BUG_CVE_2018_18281] = "cve-2018-18281",
	[TOLL_BUG_CVE_2024_50066] = "cve-2024-50066",
	[TOLL_BUG_CVE_2025_38084] = "cve-2025-38084",
	[TOLL_BUG_CVE_2025_38085] = "cve-2025-38085",
	[TOLL_BUG_CVE_2026_31398] = "cve-2026-31398",
};

/* How often a move waits for the collapse of a file, with all of a debug kernel's checks. */
#define TOLL_BUG_PAUSES		10

/**
 * toll_bug_await_collapse - let a collapse of the file remove the table that is to be moved
 * @entry: its entry
 *
 * The move has seen that there is a table, and has not taken the lock yet.
 *
 * Context: process, sleeps; without the locks of the page tables.
 */
void toll_bug_await_collapse(const pmd_t *entry)
{
	int left = TOLL_BUG_PAUSES;

	while (toll_bug(TOLL_BUG_CVE_2024_50066) && pmd_present(READ_ONCE(*entry)) && left--)
		msleep(TOLL_BUG_PAUSE_MS);
}

/**
 * toll_bug_flush_moved - flush what was moved, without the locks of its page tables
 * @vma: the old mapping
 * @start: first address
 * @end: end of the addresses
 *
 * Before the fix, this was the only flush of a move of pages.
 *
 * Context: process, with the lock of the address space held for writing.
 */
void toll_bug_flush_moved(struct vm_area_struct *vma, unsigned long start,
			  unsigned long end)
{
	if (!toll_bug(TOLL_BUG_CVE_2018_18281))
		return;
	msleep(TOLL_BUG_PAUSE_MS);
	flush_tlb_range(vma, start, end);
}

/**
 * toll_bug_unshare_early - give up shared tables of hugetlb pages before a split is locked
 * @vma: the mapping
 *
 * Page faults can share them again before the mapping is split.
 *
 * Context: process, with the lock of the address space held for writing.
 */
void toll_bug_unshare_early(struct vm_area_struct *vma)
{
	if (!toll_bug(TOLL_BUG_CVE_2025_38084))
		return;
	hugetlb_unshare_all_pmds(vma);
	msleep(TOLL_BUG_PAUSE_MS);
}

/**
 * toll_bug_spare_walkers - do not wait for walks by software of a table that was given up
 * @tlb: what was unmapped
 *
 * The TLB is flushed; only CPUs that walk tables without a lock are not waited for.
 *
 * Context: process.
 */
void toll_bug_spare_walkers(struct mmu_gather *tlb)
{
	if (toll_bug(TOLL_BUG_CVE_2025_38085))
		tlb->fully_unshared_tables = 0;
}

/**
 * toll_bug_restore_batch - restore the entries of a large folio as a batch
 * @folio: the folio
 * @vma: its mapping
 * @address: address of the first entry, which is restored already
 * @ptep: the first entry
 * @entry: its value
 *
 * A batch ends where an entry maps something else, but not where the right to write
 * differs. All its entries get the value of the first one.
 *
 * Context: with the lock of the page table held.
 */
void toll_bug_restore_batch(struct folio *folio, struct vm_area_struct *vma,
			    unsigned long address, pte_t *ptep, pte_t entry)
{
	const fpb_t flags = FPB_IGNORE_DIRTY | FPB_IGNORE_SOFT_DIRTY;
	struct mm_struct *mm = vma->vm_mm;
	unsigned long left = (PMD_SIZE - (address & ~PMD_MASK)) >> PAGE_SHIFT;
	int count;

	if (!toll_bug(TOLL_BUG_CVE_2026_31398) || !folio_test_large(folio))
		return;
	left = min(left, (vma->vm_end - address) >> PAGE_SHIFT);
	count = folio_pte_batch(folio, address, ptep, entry, left, flags, NULL, NULL,
				NULL);
	get_and_clear_full_ptes(mm, address, ptep, count, 0);
	set_ptes(mm, address, ptep, entry, count);
}

static ssize_t toll_bug_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *text)
{
	return toll_plant_show(text, toll_bug_names, TOLL_BUGS,
			       READ_ONCE(toll_bug_planted));
}

static ssize_t toll_bug_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *text, size_t length)
{
	return toll_plant_store(text, length, toll_bug_names, TOLL_BUGS,
				&toll_bug_planted);
}

static struct kobj_attribute toll_bug_attr =
	__ATTR(plant, 0644, toll_bug_show, toll_bug_store);

static int __init toll_bug_init(void)
{
	struct kobject *kobj = kobject_create_and_add("toll_bugs", mm_kobj);
	int err;

	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_file(kobj, &toll_bug_attr.attr);
	if (err) {
		pr_err("no file in /sys/kernel/mm/toll_bugs: %d\n", err);
		kobject_put(kobj);
	}
	return err;
}
subsys_initcall(toll_bug_init);
