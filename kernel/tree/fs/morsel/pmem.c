// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mounts of persistent memory, and access to it.
 *
 * The range is that of a block device with DAX and page structures (fsdax). What is read
 * from it is copied with recovery from machine checks, and checked: the content of the
 * device is input.
 */

#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "../internal.h"
#include "pmem.h"

/**
 * morsel_pmem_access - address of pages of the range
 * @pmem: the range
 * @page: the first page
 * @pages: number of pages
 * @address: set to the address in the kernel, unless NULL
 * @pfn: set to the page frame, unless NULL
 *
 * Context: dax_read_lock() is held, and the address is valid until it is released.
 * Return: number of pages that are there, or an error, -EHWPOISON if one is broken.
 */
long morsel_pmem_access(const struct morsel_pmem *pmem, u64 page, long pages, void **address,
			pfn_t *pfn)
{
	pages = morsel_pmem_unbroken(pmem, page, pages);
	if (!pages)
		return -EHWPOISON;
	return dax_direct_access(pmem->dax, pmem->first + page, pages, DAX_ACCESS, address,
				 pfn);
}

/**
 * morsel_pmem_reach - address of pages of the range, as far as they can be copied
 * @pmem: the range
 * @page: the first page
 * @pages: number of pages
 * @address: set to the address in the kernel
 *
 * Context: as morsel_pmem_access().
 * Return: number of pages, not beyond a broken one, or an error.
 */
long morsel_pmem_reach(const struct morsel_pmem *pmem, u64 page, long pages, void **address)
{
	pages = morsel_pmem_access(pmem, page, pages, address, NULL);
	return pages < 0 ? morsel_pmem_access(pmem, page, 1, address, NULL) : pages;
}

/**
 * morsel_pmem_pfn - page frames of the range
 * @pmem: the range
 * @page: the first page
 * @pages: number of pages
 * @pfn: set to the first page frame, which stays until the unmount
 *
 * Context: any.
 * Return: as morsel_pmem_access().
 */
long morsel_pmem_pfn(const struct morsel_pmem *pmem, u64 page, long pages, pfn_t *pfn)
{
	int id = dax_read_lock();

	pages = morsel_pmem_access(pmem, page, pages, NULL, pfn);
	dax_read_unlock(id);
	return pages;
}

/* A hole: @node is the lowest node that exists there, if the root is high enough. */
static void morsel_set_hole(const struct morsel_node *node, u64 root, pgoff_t index,
			    struct morsel_run *run)
{
	struct morsel_node top;
	u64 span;

	morsel_root_node(0, root, &top);
	*run = (struct morsel_run){
		.pages = MORSEL_MOST_BYTES >> MORSEL_FORMAT_SHIFT,
		.level = MORSEL_TOP_LEVEL,
	};
	if (top.page && index < morsel_span_of(top.level)) {
		run->level = node->level - 1;
		span = morsel_span_of(run->level);
		run->pages = span - (index & (span - 1));
	} else if (top.page && !top.level && index < PMD_PAGES) {
		run->level = 0;
	}
}

/**
 * morsel_pmem_find - find where the range has a page of a file
 * @inode: the file
 * @index: index of the page
 * @run: set to the page, and to the pages behind it in the same block
 *
 * Context: may sleep.
 * Return: 0, -EUCLEAN if a word on the way is damaged, or -EIO.
 */
int morsel_pmem_find(const struct inode *inode, pgoff_t index, struct morsel_run *run)
{
	const struct morsel_medium *medium = &morsel_sb_of(inode->i_sb)->pmem->medium;
	/* A fault may add a level meanwhile. */
	u64 root = READ_ONCE(morsel_of(inode)->root);
	struct morsel_node node;
	int err = morsel_find_node(medium, root, index, &node);

	*run = (struct morsel_run){ .pages = 1 };
	if (err)
		return err;
	if (!node.page) {
		morsel_set_hole(&node, root, index, run);
		return 0;
	}
	*run = (struct morsel_run){
		.page = node.page + (index - node.index),
		.pages = morsel_node_pages(&node) - (index - node.index),
	};
	return 0;
}

/**
 * morsel_pmem_find_block - find a part of a file that one leaf can map
 * @inode: the file
 * @index: index of the first page, a multiple of @pages
 * @pages: number of pages, a power of two
 * @pfn: set to the first page frame
 *
 * Context: may sleep.
 * Return: true if all of it is in the file, in one block of the range, aligned, and not
 * broken.
 */
bool morsel_pmem_find_block(const struct inode *inode, pgoff_t index, unsigned long pages,
			    pfn_t *pfn)
{
	const struct morsel_pmem *pmem = morsel_sb_of(inode->i_sb)->pmem;
	struct morsel_run run;

	if (index + pages > DIV_ROUND_UP(i_size_read(inode), PAGE_SIZE) ||
	    morsel_pmem_find(inode, index, &run) || !run.page || run.pages < pages)
		return false;
	return morsel_pmem_pfn(pmem, run.page, pages, pfn) == (long)pages &&
	       IS_ALIGNED(pfn_t_to_pfn(*pfn), pages);
}

/* Copy bytes within one page. */
static int morsel_pmem_read(const struct morsel_medium *medium, u64 offset, void *buffer,
			    size_t length)
{
	const struct morsel_pmem *pmem = container_of(medium, struct morsel_pmem, medium);
	int err = -EIO, id = dax_read_lock();
	void *address;

	if (morsel_pmem_access(pmem, offset >> PAGE_SHIFT, 1, &address, NULL) > 0 &&
	    !copy_mc_to_kernel(buffer, address + offset_in_page(offset), length))
		err = 0;
	dax_read_unlock(id);
	return err;
}

/* Changing */

/* Store bytes within one page, and flush them. A word is one store. */
static int morsel_pmem_write(const struct morsel_medium *medium, u64 offset, const void *bytes,
			     size_t length)
{
	const struct morsel_pmem *pmem = container_of(medium, struct morsel_pmem, medium);
	int err = -EIO, id = dax_read_lock();
	void *address;

	if (morsel_pmem_access(pmem, offset >> PAGE_SHIFT, 1, &address, NULL) > 0) {
		address += offset_in_page(offset);
		if (length == sizeof(u64))
			WRITE_ONCE(*(u64 *)address, get_unaligned((const u64 *)bytes));
		else
			memcpy(address, bytes, length);
		dax_flush(pmem->dax, address, length);
		err = 0;
	}
	dax_read_unlock(id);
	return err;
}

/* Store zeros by stores that bypass the caches. */
static void morsel_clear_flushcache(void *address, size_t length)
{
	const void *zeros = page_address(ZERO_PAGE(0));

	while (length) {
		size_t part = min(length, PAGE_SIZE);

		memcpy_flushcache(address, zeros, part);
		address += part;
		length -= part;
	}
}

/**
 * morsel_pmem_zero_bytes - store zeros, and flush them
 * @pmem: the memory
 * @at: place in the range
 * @length: number of bytes, which are adjacent in the memory
 *
 * Context: may sleep; a fence follows.
 * Return: 0 or -EIO.
 */
int morsel_pmem_zero_bytes(const struct morsel_pmem *pmem, u64 at, size_t length)
{
	long pages = DIV_ROUND_UP(offset_in_page(at) + length, PAGE_SIZE);
	int err = -EIO, id = dax_read_lock();
	void *address;

	if (morsel_pmem_access(pmem, at >> PAGE_SHIFT, pages, &address, NULL) >= pages) {
		morsel_clear_flushcache(address + offset_in_page(at), length);
		err = 0;
	}
	dax_read_unlock(id);
	return err;
}

static int morsel_pmem_zero(const struct morsel_medium *medium, u64 page, u64 pages)
{
	return morsel_pmem_zero_bytes(container_of(medium, struct morsel_pmem, medium),
				      page << PAGE_SHIFT, pages << PAGE_SHIFT);
}

static void morsel_pmem_fence(const struct morsel_medium *medium)
{
	pmem_wmb();
}

/**
 * morsel_pmem_flush - write back what mappings may have stored
 * @pmem: the memory
 * @page: the first page
 * @pages: number of pages, which are adjacent in the memory
 *
 * Context: may sleep; a fence follows.
 * Return: 0 or -EIO.
 */
int morsel_pmem_flush(const struct morsel_pmem *pmem, u64 page, u64 pages)
{
	int err = -EIO, id = dax_read_lock();
	void *address;

	if (morsel_pmem_access(pmem, page, pages, &address, NULL) >= (long)pages) {
		dax_flush(pmem->dax, address, pages << PAGE_SHIFT);
		morsel_count_many(MORSEL_WRITTEN_BACK, pages << PAGE_SHIFT);
		err = 0;
	}
	dax_read_unlock(id);
	return err;
}

/* An idle page of a device has one reference. */
static bool morsel_pmem_is_held(const struct morsel_medium *medium, u64 page, u64 pages)
{
	const struct morsel_pmem *pmem = container_of(medium, struct morsel_pmem, medium);
	unsigned long frame;
	pfn_t pfn;

	if (morsel_pmem_pfn(pmem, page, pages, &pfn) < (long)pages)
		return true;
	frame = pfn_t_to_pfn(pfn);
	while (pages && page_ref_count(pfn_to_page(frame)) == 1) {
		frame++;
		pages--;
	}
	return pages;
}

/**
 * morsel_pmem_each_inode - call a function for the inodes of a mount
 * @super: the mount
 * @call: the function; it returns true to end the walk
 * @arg: its argument
 *
 * Context: may sleep; inodes that are added meanwhile may be missed.
 */
void morsel_pmem_each_inode(struct super_block *super,
			    bool (*call)(struct inode *inode, void *arg), void *arg)
{
	struct inode *inode, *last = NULL;
	bool is_end = false;

	spin_lock(&super->s_inode_list_lock);
	list_for_each_entry(inode, &super->s_inodes, i_sb_list) {
		if (is_end || !igrab(inode))
			continue;
		spin_unlock(&super->s_inode_list_lock);
		/* The one before kept its place in the list. */
		iput(last);
		last = inode;
		is_end = call(inode, arg);
		spin_lock(&super->s_inode_list_lock);
	}
	spin_unlock(&super->s_inode_list_lock);
	iput(last);
}

/* Mounting */

/* Keep the page structures, and with them the device. */
static int morsel_pmem_hold(struct morsel_pmem *pmem)
{
	int id = dax_read_lock();
	pfn_t pfn;

	if (morsel_pmem_access(pmem, 0, 1, NULL, &pfn) > 0 && pfn_t_devmap(pfn))
		pmem->pagemap = get_dev_pagemap(pfn_t_to_pfn(pfn), NULL);
	dax_read_unlock(id);
	return pmem->pagemap ? 0 : -ENXIO;
}

static int morsel_pmem_open(struct super_block *super)
{
	struct morsel_pmem *pmem = kzalloc(sizeof(*pmem), GFP_KERNEL);
	u64 begin;

	if (!pmem)
		return -ENOMEM;
	morsel_sb_of(super)->pmem = pmem;
	xa_init(&pmem->broken);
	mutex_init(&pmem->building);
	mutex_init(&pmem->range.space);
	mutex_init(&pmem->range.slots);
	pmem->range.medium = &pmem->medium;
	pmem->medium.read = morsel_pmem_read;
	pmem->medium.write = morsel_pmem_write;
	pmem->medium.zero = morsel_pmem_zero;
	pmem->medium.fence = morsel_pmem_fence;
	pmem->medium.is_held = morsel_pmem_is_held;
	pmem->medium.pages = bdev_nr_bytes(super->s_bdev) >> PAGE_SHIFT;
	pmem->dax = fs_dax_get_by_bdev(super->s_bdev, &begin, super, &morsel_pmem_holder);
	if (!pmem->dax)
		return -EOPNOTSUPP;
	pmem->first = begin >> PAGE_SHIFT;
	return morsel_pmem_hold(pmem);
}

static int morsel_pmem_fill_super(struct super_block *super, struct fs_context *fc)
{
	int err = morsel_pmem_open(super);

	if (err == -EOPNOTSUPP || err == -ENXIO)
		return invalf(fc, "morselfs: %s: no memory that can be mapped", super->s_id);
	if (!err && !sb_rdonly(super) && !dax_synchronous(morsel_sb_of(super)->pmem->dax)) {
		errorf(fc, "morselfs: %s: can be mounted only for reading (ro)", super->s_id);
		return -EROFS;
	}
	return err ?: morsel_pmem_read_all(super);
}

/**
 * morsel_pmem_get_tree - mount the device that the option pmem= names
 * @fc: context of the mount
 *
 * Context: may sleep.
 * Return: 0, -EROFS for writing to a device that needs more than flushes, or what
 * morsel_survey() returns.
 */
int morsel_pmem_get_tree(struct fs_context *fc)
{
	struct morsel_sb *sb = fc->s_fs_info;
	char *source = kstrdup(sb->device, GFP_KERNEL);

	if (!source)
		return -ENOMEM;
	/* This is what /proc/mounts shows. */
	kfree(fc->source);
	fc->source = source;
	return get_tree_bdev(fc, morsel_pmem_fill_super);
}

/**
 * morsel_pmem_reconfigure - remount
 * @fc: context of the remount
 * @pmem: the memory
 *
 * Context: may sleep.
 * Return: 0, or -EROFS for writing to what was mounted for reading.
 */
int morsel_pmem_reconfigure(struct fs_context *fc, const struct morsel_pmem *pmem)
{
	if (fc->sb_flags & SB_RDONLY || pmem->is_writable)
		return 0;
	errorf(fc, "morselfs: pmem: mounted for reading (ro): unmount it first");
	return -EROFS;
}

/**
 * morsel_pmem_used - number of pages that are not free
 * @pmem: the memory
 *
 * Context: any.
 * Return: the number.
 */
u64 morsel_pmem_used(const struct morsel_pmem *pmem)
{
	return READ_ONCE(pmem->range.used);
}

/**
 * morsel_pmem_kill - unmount persistent memory
 * @super: the mount
 *
 * Context: may sleep.
 */
void morsel_pmem_kill(struct super_block *super)
{
	struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;

	/* Each name holds its dentry. */
	if (super->s_root)
		d_genocide(super->s_root);
	kill_block_super(super);
	if (!pmem)
		return;
	kvfree(pmem->range.owned);
	kvfree(pmem->range.inodes.pages);
	kvfree(pmem->range.names.pages);
	if (pmem->pagemap)
		put_dev_pagemap(pmem->pagemap);
	morsel_pmem_leave_dax(pmem, super);
	kfree(pmem);
}
