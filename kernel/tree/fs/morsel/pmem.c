// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mounts of persistent memory, for reading.
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
	return dax_direct_access(pmem->dax, pmem->first + page, pages, DAX_ACCESS, address,
				 pfn);
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
	struct morsel_node node;
	int err = morsel_find_node(medium, morsel_of(inode)->root, index, &node);

	*run = (struct morsel_run){ .pages = 1 };
	if (err || !node.page)
		return err;
	run->page = node.page + (index - node.index);
	run->pages = morsel_node_pages(&node) - (index - node.index);
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
	mutex_init(&pmem->building);
	pmem->medium.read = morsel_pmem_read;
	pmem->medium.pages = bdev_nr_bytes(super->s_bdev) >> PAGE_SHIFT;
	pmem->dax = fs_dax_get_by_bdev(super->s_bdev, &begin, NULL, NULL);
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
	return err ?: morsel_pmem_read_all(super);
}

/**
 * morsel_pmem_get_tree - mount the device that the option pmem= names
 * @fc: context of the mount
 *
 * Context: may sleep.
 * Return: 0, -EROFS unless it is mounted for reading, or what morsel_survey() returns.
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
	if (!(fc->sb_flags & SB_RDONLY)) {
		errorf(fc, "morselfs: pmem: can be mounted only for reading (ro)");
		return -EROFS;
	}
	return get_tree_bdev(fc, morsel_pmem_fill_super);
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
	if (pmem->pagemap)
		put_dev_pagemap(pmem->pagemap);
	fs_put_dax(pmem->dax, NULL);
	kfree(pmem);
}
