/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which pages a lazy flush could have waited for, judged in the same way on
 * every kernel: the old entry was read-only and clean, and the page's content
 * cannot change before a flush.
 */
#ifndef _LINUX_TOLL_LAB_MM_H
#define _LINUX_TOLL_LAB_MM_H

#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <asm/toll_lab.h>

/* Page cache of a regular file without writers, on a file system that counts them. */
static inline bool toll_lab_is_quiet(struct address_space *mapping)
{
	const struct inode *inode = mapping ? mapping->host : NULL;

	if (!inode || !S_ISREG(inode->i_mode) || inode_is_open_for_write(inode))
		return false;
	switch (inode->i_sb->s_magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static inline bool toll_lab_is_eligible(struct folio *folio, pte_t pte)
{
	if (pte_write(pte) || pte_dirty(pte) || folio_test_hugetlb(folio) ||
	    folio_is_zone_device(folio))
		return false;
	if (folio_test_anon(folio))
		return folio_test_swapbacked(folio);
	return !folio_test_swapbacked(folio) && toll_lab_is_quiet(folio->mapping);
}

/* The flush for a page was put off to the end of the running task's batch. */
static inline void toll_lab_batch_add(struct folio *folio, pte_t pte)
{
	toll_lab_say(TOLL_LAB_BATCH_ADD, pte_val(pte), toll_lab_is_eligible(folio, pte));
}

#endif /* _LINUX_TOLL_LAB_MM_H */
