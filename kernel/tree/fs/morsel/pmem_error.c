// SPDX-License-Identifier: GPL-2.0-only
/*
 * Broken pages of persistent memory.
 *
 * The driver of the device tells of a page that a machine check has found. It is noted
 * until the unmount, so that nothing maps, reads, writes or reuses it; then its mappings
 * are removed. A process that accesses it again gets SIGBUS from the fault, read() and
 * write() get EIO. All other pages stay as they are.
 */

#include <linux/dax.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/xarray.h>

#include <trace/events/morsel.h>

#include "pmem.h"

/* Excludes the end of a mount. */
static DEFINE_MUTEX(morsel_pmem_failing);

/* Remove the leaf that leads to a page from the tables that processes share. */
static void morsel_pmem_clear_leaf(struct morsel *morsel, pgoff_t index)
{
	struct morsel_place place;

	morsel_lookup(morsel, index, &place);
	if (!place.page)
		return;
	if (place.pte)
		WRITE_ONCE(*place.pte, __pte(0));
	else if (place.pmd)
		WRITE_ONCE(*place.pmd, __pmd(0));
	else
		WRITE_ONCE(*place.pud, __pud(0));
}

/*
 * Unmap a page. Faults that found it before it was noted have ended: those that map it
 * by page hold invalidate_lock, those that build tables ->building.
 */
static void morsel_pmem_unmap(struct morsel *morsel, pgoff_t index)
{
	struct address_space *mapping = morsel->inode.i_mapping;

	inode_lock(&morsel->inode);
	filemap_invalidate_lock(mapping);
	mutex_lock(&morsel_pmem_of(&morsel->inode)->building);
	morsel_close(morsel);
	unmap_mapping_pages(mapping, index, 1, false);
	morsel_pmem_clear_leaf(morsel, index);
	morsel_open(morsel);
	mutex_unlock(&morsel_pmem_of(&morsel->inode)->building);
	filemap_invalidate_unlock(mapping);
	inode_unlock(&morsel->inode);
}

/*
 * Unmap a page of the range if it is one of a file: true then. A page of a table, or one
 * that is free, is mapped nowhere.
 */
static bool morsel_pmem_unmap_from(struct inode *inode, void *arg)
{
	const u64 *page = arg;
	struct morsel *morsel = morsel_of(inode);
	bool is_found;
	u64 index;

	if (!S_ISREG(inode->i_mode))
		return false;
	/* Blocks stay meanwhile. */
	filemap_invalidate_lock_shared(inode->i_mapping);
	is_found = morsel_tree_find(&morsel_pmem_of(inode)->range, READ_ONCE(morsel->root),
				    *page, &index);
	filemap_invalidate_unlock_shared(inode->i_mapping);
	if (is_found) {
		morsel_pmem_unmap(morsel, index);
		trace_morsel_broken(inode, index);
	}
	return is_found;
}

static int morsel_pmem_break(struct super_block *super, u64 page)
{
	struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;
	void *old = xa_store(&pmem->broken, page, xa_mk_value(1), GFP_KERNEL);

	if (xa_is_err(old))
		return xa_err(old);
	if (!old)
		morsel_count(MORSEL_BROKEN);
	morsel_pmem_each_inode(super, morsel_pmem_unmap_from, &page);
	return 0;
}

static int morsel_pmem_fail(struct super_block *super, u64 page, u64 end)
{
	const struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;
	int err = 0;

	/* Before the end of the mount its survey tells of what it cannot read. */
	if (!(super->s_flags & SB_BORN) || page < pmem->first)
		return -EIO;
	page -= pmem->first;
	end = min(end - pmem->first, pmem->medium.pages);
	if (page >= end)
		return -EIO;
	for (; !err && page < end; page++)
		err = morsel_pmem_break(super, page);
	return err;
}

/* Called by the driver. The device itself goes only after the unmount. */
static int morsel_pmem_notify_failure(struct dax_device *dax, u64 offset, u64 length,
				      int flags)
{
	struct super_block *super;

	if (flags & MF_MEM_PRE_REMOVE)
		return -EOPNOTSUPP;
	guard(mutex)(&morsel_pmem_failing);
	super = dax_holder(dax);
	return super ? morsel_pmem_fail(super, offset >> PAGE_SHIFT,
					(offset + length) >> PAGE_SHIFT) : -EOPNOTSUPP;
}

const struct dax_holder_operations morsel_pmem_holder = {
	.notify_failure = morsel_pmem_notify_failure,
};

/**
 * morsel_pmem_leave_dax - give up the device, at the end of a mount
 * @pmem: the memory
 * @super: the mount
 *
 * Context: may sleep. Afterwards no failure is told.
 */
void morsel_pmem_leave_dax(struct morsel_pmem *pmem, struct super_block *super)
{
	guard(mutex)(&morsel_pmem_failing);
	fs_put_dax(pmem->dax, super);
	xa_destroy(&pmem->broken);
}

/**
 * morsel_pmem_unbroken - number of pages before the first broken one
 * @pmem: the memory
 * @page: the first page
 * @pages: number of pages
 *
 * Context: any.
 * Return: the number, @pages if none is broken.
 */
long morsel_pmem_unbroken(const struct morsel_pmem *pmem, u64 page, long pages)
{
	unsigned long at = page;

	if (likely(xa_empty(&pmem->broken)) || pages < 1 ||
	    !xa_find((struct xarray *)&pmem->broken, &at, page + pages - 1, XA_PRESENT))
		return pages;
	return at - page;
}
