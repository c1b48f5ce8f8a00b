// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inodes and names of persistent memory that is changed.
 *
 * The operations are those of the volatile file system (dir.c, file.c, xattr.c), which
 * call these functions to make a change persistent. Each change is stored before it is
 * made in memory, so nothing is undone without space. The locks of inodes and directories
 * serialise the changes of their words; a name has its slot in d_fsdata.
 */

#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <linux/xarray.h>

#include "pmem.h"

static bool morsel_pmem_is_writable(const struct inode *inode)
{
	const struct morsel_pmem *pmem = morsel_pmem_of(inode);

	return pmem && pmem->is_writable;
}

static struct morsel_range *morsel_pmem_range(const struct inode *inode)
{
	return &morsel_pmem_of(inode)->range;
}

/**
 * morsel_pmem_wait - wait until what was flushed is persistent
 * @inode: an inode of the memory
 *
 * Context: any.
 */
void morsel_pmem_wait(const struct inode *inode)
{
	const struct morsel_medium *medium = &morsel_pmem_of(inode)->medium;

	medium->fence(medium);
}

/* Words */

/**
 * morsel_pmem_set_field - store a word of an inode
 * @inode: the inode
 * @field: place of the word in the slot
 * @payload: its payload
 *
 * Context: may sleep; the lock of the inode is held. A fence follows.
 * Return: 0 or -EIO.
 */
int morsel_pmem_set_field(struct inode *inode, unsigned int field, u64 payload)
{
	return morsel_set_word(morsel_pmem_range(inode), morsel_of(inode)->at + field, payload);
}

static u64 morsel_time_payload(struct timespec64 time)
{
	return (u64)(time.tv_sec + (s64)BIT_ULL(31)) << 14 |
	       (u32)time.tv_nsec / (100 * NSEC_PER_USEC);
}

/**
 * morsel_pmem_set_times - store the times of an inode
 * @inode: the inode
 *
 * Context: may sleep; the lock of the inode is held. A fence follows.
 * Return: 0 or -EIO.
 */
int morsel_pmem_set_times(struct inode *inode)
{
	return morsel_pmem_set_field(inode, MORSEL_INODE_MTIME,
				     morsel_time_payload(inode_get_mtime(inode))) ?:
	       morsel_pmem_set_field(inode, MORSEL_INODE_CTIME,
				     morsel_time_payload(inode_get_ctime(inode)));
}

/**
 * morsel_pmem_touch - make the times of an inode persistent
 * @inode: the inode
 *
 * Context: may sleep; the lock of the inode is held, or that of a directory with a name
 * of it.
 */
void morsel_pmem_touch(struct inode *inode)
{
	if (!morsel_pmem_is_writable(inode))
		return;
	morsel_pmem_set_times(inode);
	morsel_pmem_wait(inode);
}

/**
 * morsel_pmem_save - make the attributes of an inode persistent
 * @inode: the inode
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0 or -EIO.
 */
int morsel_pmem_save(struct inode *inode)
{
	int err;

	if (!morsel_pmem_is_writable(inode))
		return 0;
	err = morsel_pmem_set_field(inode, MORSEL_INODE_MODE, inode->i_mode) ?:
	      morsel_pmem_set_field(inode, MORSEL_INODE_UID, i_uid_read(inode)) ?:
	      morsel_pmem_set_field(inode, MORSEL_INODE_GID, i_gid_read(inode)) ?:
	      morsel_pmem_set_times(inode);
	morsel_pmem_wait(inode);
	return err;
}

/* Extended attributes */

/* Append an attribute to a page of them. */
static int morsel_append_xattr(u8 *page, const char *name, const void *value, size_t size)
{
	unsigned int used = get_unaligned_le16(page + 4), length = strlen(name);

	if (length > U8_MAX || size > MORSEL_FORMAT_PAGE ||
	    used + MORSEL_XATTR_LENGTHS + length + size > MORSEL_FORMAT_PAGE)
		return -ENOSPC;
	page[used] = length;
	put_unaligned_le16(size, page + used + 2);
	memcpy(page + used + MORSEL_XATTR_LENGTHS, name, length);
	memcpy(page + used + MORSEL_XATTR_LENGTHS + length, value, size);
	put_unaligned_le16(used + MORSEL_XATTR_LENGTHS + length + size, page + 4);
	put_unaligned_le16(get_unaligned_le16(page + 6) + 1, page + 6);
	return 0;
}

/* All attributes of an inode but @name, and a new one with a value. */
static int morsel_collect_xattrs(struct inode *inode, u8 *page, const char *name,
				 const void *value, size_t size)
{
	struct rb_node *node = rb_first(&morsel_of(inode)->xattrs.rb_root);
	int err = 0;

	put_unaligned_le16(MORSEL_XATTR_HEADER, page + 4);
	for (; !err && node; node = rb_next(node)) {
		const struct simple_xattr *xattr = rb_entry(node, struct simple_xattr, rb_node);

		if (!name || strcmp(xattr->name, name))
			err = morsel_append_xattr(page, xattr->name, xattr->value,
						  xattr->size);
	}
	if (!err && value)
		err = morsel_append_xattr(page, name, value, size);
	return err;
}

static int morsel_store_xattrs(struct morsel_range *range, u8 *content, u64 *page)
{
	int err = morsel_take_pages(range, 0, page);

	if (err)
		return err;
	put_unaligned_le64(*page, content + 8);
	put_unaligned_le32(morsel_sum(content + 4, get_unaligned_le16(content + 4) - 4),
			   content);
	err = range->medium->write(range->medium, *page << MORSEL_FORMAT_SHIFT, content,
				   MORSEL_FORMAT_PAGE);
	range->medium->fence(range->medium);
	if (err)
		morsel_free_pages(range, *page, 1);
	return err;
}

/**
 * morsel_pmem_new_xattrs - store the extended attributes of an inode to a new page
 * @inode: the inode
 * @name: attribute that is to change, or NULL
 * @value: its value, NULL to remove it
 * @size: size of the value
 * @page: set to the page, which nothing leads to yet; 0 without attributes
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0, -ENOSPC, also for more than a page, -ENOMEM or -EIO.
 */
int morsel_pmem_new_xattrs(struct inode *inode, const char *name, const void *value,
			   size_t size, u64 *page)
{
	u8 *content __free(kfree) = NULL;
	int err;

	*page = 0;
	if (!morsel_pmem_is_writable(inode))
		return 0;
	content = kzalloc(MORSEL_FORMAT_PAGE, GFP_KERNEL);
	if (!content)
		return -ENOMEM;
	err = morsel_collect_xattrs(inode, content, name, value, size);
	if (err || !get_unaligned_le16(content + 6))
		return err;
	return morsel_store_xattrs(morsel_pmem_range(inode), content, page);
}

/**
 * morsel_pmem_drop_xattrs - free a page of extended attributes that is not used
 * @inode: the inode
 * @page: the page, or 0
 *
 * Context: may sleep.
 */
void morsel_pmem_drop_xattrs(struct inode *inode, u64 page)
{
	if (page)
		morsel_free_pages(morsel_pmem_range(inode), page, 1);
}

/**
 * morsel_pmem_set_xattrs - give an inode new extended attributes
 * @inode: the inode
 * @page: the page with them, or 0
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0 or -EIO.
 */
int morsel_pmem_set_xattrs(struct inode *inode, u64 page)
{
	struct morsel *morsel = morsel_of(inode);
	int err;

	if (!morsel_pmem_is_writable(inode))
		return 0;
	err = morsel_pmem_set_field(inode, MORSEL_INODE_XATTR, page) ?:
	      morsel_pmem_set_times(inode);
	morsel_pmem_wait(inode);
	/* If the old page may still be in use, it stays until the next mount. */
	if (!err)
		morsel_pmem_drop_xattrs(inode, morsel->xattr_page);
	morsel->xattr_page = page;
	return err;
}

/* New inodes and names */

/**
 * morsel_pmem_init_file - let an inode be a file in persistent memory
 * @inode: the inode of a regular file
 *
 * Context: nothing else uses the inode.
 */
void morsel_pmem_init_file(struct inode *inode)
{
	inode->i_fop = &morsel_pmem_file_operations;
	inode->i_flags |= S_DAX;
}

/* Store the target of a symbolic link. A fence follows. */
static int morsel_pmem_store_target(struct inode *inode)
{
	struct morsel_range *range = morsel_pmem_range(inode);
	u64 page;
	int err;

	if (!S_ISLNK(inode->i_mode))
		return 0;
	/* The format has no longer ones. */
	if (!inode->i_size || inode->i_size >= MORSEL_FORMAT_PAGE)
		return -ENAMETOOLONG;
	err = morsel_take_pages(range, 0, &page);
	if (err)
		return err;
	morsel_of(inode)->root = page | BIT_ULL(43);
	return range->medium->zero(range->medium, page, 1) ?:
	       range->medium->write(range->medium, page << MORSEL_FORMAT_SHIFT, inode->i_link,
				    inode->i_size);
}

static int morsel_pmem_store_inode(struct inode *inode)
{
	struct morsel *morsel = morsel_of(inode);
	struct morsel_record record = {
		.mode = inode->i_mode,
		.uid = i_uid_read(inode),
		.gid = i_gid_read(inode),
		.size = S_ISDIR(inode->i_mode) ? 0 : inode->i_size,
		.root = morsel->root,
		.xattr = morsel->xattr_page,
		.mtime = morsel_time_payload(inode_get_mtime(inode)),
		.ctime = morsel_time_payload(inode_get_ctime(inode)),
		.rdev = new_encode_dev(inode->i_rdev),
	};
	int err = morsel_store_inode(morsel_pmem_range(inode), &record);

	if (err)
		return err;
	inode->i_ino = record.number;
	inode->i_generation = record.generation;
	morsel->at = record.at;
	return 0;
}

static int morsel_pmem_store_name(const struct inode *dir, struct dentry *dentry,
				  const struct inode *inode)
{
	struct morsel_entry *entry __free(kfree) = kzalloc(sizeof(*entry), GFP_KERNEL);
	int err;

	if (!entry)
		return -ENOMEM;
	entry->inode = inode->i_ino;
	entry->parent = dir->i_ino;
	entry->length = dentry->d_name.len;
	memcpy(entry->text, dentry->d_name.name, entry->length);
	err = morsel_store_name(morsel_pmem_range(dir), entry);
	if (!err)
		dentry->d_fsdata = (void *)(entry->slot + 1);
	return err;
}

/**
 * morsel_pmem_create - make a new inode persistent
 * @dir: directory of its name
 * @dentry: its name, NULL for none
 * @inode: the inode, which nothing else uses
 *
 * Context: may sleep; the lock of @dir is held.
 * Return: 0, -ENOSPC, -ENOMEM, -ENAMETOOLONG for the target of a symbolic link, -EUCLEAN or
 * -EIO. The eviction of @inode without links frees what was stored.
 */
int morsel_pmem_create(struct inode *dir, struct dentry *dentry, struct inode *inode)
{
	int err;

	if (!morsel_pmem_of(inode))
		return 0;
	if (S_ISREG(inode->i_mode))
		morsel_pmem_init_file(inode);
	err = morsel_pmem_new_xattrs(inode, NULL, NULL, 0, &morsel_of(inode)->xattr_page) ?:
	      morsel_pmem_store_target(inode) ?:
	      morsel_pmem_store_inode(inode);
	if (!err && dentry)
		err = morsel_pmem_store_name(dir, dentry, inode);
	return err;
}

/**
 * morsel_pmem_link - make another name of an inode persistent
 * @dir: directory of the name
 * @dentry: the name
 * @inode: the inode
 *
 * Context: may sleep; the locks of @dir and @inode are held.
 * Return: 0, -ENOSPC, -ENOMEM, -EUCLEAN or -EIO.
 */
int morsel_pmem_link(struct inode *dir, struct dentry *dentry, struct inode *inode)
{
	return morsel_pmem_of(dir) ? morsel_pmem_store_name(dir, dentry, inode) : 0;
}

static u64 morsel_pmem_slot(const struct dentry *dentry)
{
	return (unsigned long)dentry->d_fsdata - 1;
}

/**
 * morsel_pmem_unlink - remove a name
 * @dentry: the name
 *
 * Context: may sleep; the lock of the directory is held.
 * Return: 0 or -EIO.
 */
int morsel_pmem_unlink(struct dentry *dentry)
{
	const struct inode *inode = d_inode(dentry);

	if (!morsel_pmem_of(inode))
		return 0;
	return morsel_remove_name(morsel_pmem_range(inode), morsel_pmem_slot(dentry));
}

/**
 * morsel_pmem_rename - rename, replace or exchange
 * @old: the old name
 * @dir: directory of the new name
 * @new: the new name
 * @flags: RENAME_*
 *
 * Context: may sleep; the locks of both directories are held.
 * Return: 0, -ENOSPC, -ENOMEM, -EUCLEAN or -EIO.
 */
int morsel_pmem_rename(struct dentry *old, struct inode *dir, struct dentry *new,
		       unsigned int flags)
{
	struct morsel_rename rename = {
		.inode = d_inode(old)->i_ino,
		.from = morsel_pmem_slot(old),
		.other = flags & RENAME_EXCHANGE ? d_inode(new)->i_ino : 0,
		.target = d_really_is_positive(new) ? morsel_pmem_slot(new) : MORSEL_NO_SLOT,
		.parent = dir->i_ino,
		.text = new->d_name.name,
		.length = new->d_name.len,
	};
	int err;

	if (!morsel_pmem_of(dir))
		return 0;
	err = morsel_store_rename(morsel_pmem_range(dir), &rename);
	if (err)
		return err;
	new->d_fsdata = old->d_fsdata;
	old->d_fsdata = (void *)(rename.target + 1);
	return 0;
}

/* The end of an inode */

/* Remove an inode that lost its last name, and free its pages. */
static void morsel_pmem_drop(struct inode *inode)
{
	struct morsel_range *range = morsel_pmem_range(inode);
	struct morsel *morsel = morsel_of(inode);

	/* If it may still be there, its pages stay until the next mount. */
	if (morsel->at && morsel_remove_inode(range, inode->i_ino))
		return;
	morsel_tree_drop(range, morsel->root);
	morsel_free_pages(range, morsel->xattr_page, 1);
}

/**
 * morsel_pmem_evict - remove an inode without names, write back one with names
 * @inode: the inode, which nothing uses any more
 *
 * Context: may sleep.
 */
void morsel_pmem_evict(struct inode *inode)
{
	if (morsel_pmem_is_writable(inode)) {
		if (!inode->i_nlink)
			morsel_pmem_drop(inode);
		else
			morsel_pmem_write_back(inode, 0, ULONG_MAX);
	}
	xa_destroy(&morsel_of(inode)->written);
}
