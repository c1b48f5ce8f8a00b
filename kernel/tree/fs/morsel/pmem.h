/* SPDX-License-Identifier: GPL-2.0-only */
/* Mounts of persistent memory. */
#ifndef _FS_MORSEL_PMEM_H
#define _FS_MORSEL_PMEM_H

#include <linux/fs_context.h>
#include <linux/mutex.h>
#include <linux/pfn_t.h>

#include "format.h"
#include "internal.h"
#include "range.h"

struct dax_device;
struct dev_pagemap;

/**
 * struct morsel_pmem - the persistent memory of a mount
 * @medium: the range
 * @dax: device that maps it
 * @first: its first page in the device
 * @pagemap: page structures of the range; as long as they are held, the device stays
 * @building: protects changes of tables that are built
 * @range: what changes of the range need
 * @is_writable: the range was recovered, and may be changed
 * @broken: pages that a machine check has found
 */
struct morsel_pmem {
	struct morsel_medium medium;
	struct dax_device *dax;
	pgoff_t first;
	struct dev_pagemap *pagemap;
	struct mutex building; /* the tables of all sealed morsels */
	struct morsel_range range;
	bool is_writable;
	struct xarray broken;
};

/* Most bytes that are copied at once. */
#define MORSEL_PMEM_CHUNK	((size_t)PMD_SIZE)

/**
 * struct morsel_run - adjacent pages of the range that are adjacent in a file
 * @page: the first page; 0 for a hole
 * @pages: number of pages, at least 1
 * @level: for a hole, level of the largest block that could be there
 */
struct morsel_run {
	u64 page;
	u64 pages;
	unsigned int level;
};

/* pmem.c */

long morsel_pmem_access(const struct morsel_pmem *pmem, u64 page, long pages, void **address,
			pfn_t *pfn);
long morsel_pmem_reach(const struct morsel_pmem *pmem, u64 page, long pages, void **address);
long morsel_pmem_pfn(const struct morsel_pmem *pmem, u64 page, long pages, pfn_t *pfn);
int morsel_pmem_find(const struct inode *inode, pgoff_t index, struct morsel_run *run);
bool morsel_pmem_find_block(const struct inode *inode, pgoff_t index, unsigned long pages,
			    pfn_t *pfn);
int morsel_pmem_flush(const struct morsel_pmem *pmem, u64 page, u64 pages);
int morsel_pmem_zero_bytes(const struct morsel_pmem *pmem, u64 at, size_t length);
void morsel_pmem_each_inode(struct super_block *super,
			    bool (*call)(struct inode *inode, void *arg), void *arg);

/* pmem_error.c */

extern const struct dax_holder_operations morsel_pmem_holder;

void morsel_pmem_leave_dax(struct morsel_pmem *pmem, struct super_block *super);
long morsel_pmem_unbroken(const struct morsel_pmem *pmem, u64 page, long pages);

/* pmem_names.c */

int morsel_pmem_read_all(struct super_block *super);

/* pmem_file.c */

extern const struct file_operations morsel_pmem_file_operations;

/* pmem_inode.c */

void morsel_pmem_init_file(struct inode *inode);
void morsel_pmem_wait(const struct inode *inode);
int morsel_pmem_set_field(struct inode *inode, unsigned int field, u64 payload);
int morsel_pmem_set_times(struct inode *inode);

/* pmem_write.c */

int morsel_pmem_provide(struct inode *inode, pgoff_t index, unsigned int level);
int morsel_pmem_note_written(struct inode *inode, pgoff_t index);
int morsel_pmem_write_back(struct inode *inode, pgoff_t first, pgoff_t last);
ssize_t morsel_pmem_write_iter(struct kiocb *iocb, struct iov_iter *from);
long morsel_pmem_fallocate(struct file *file, int mode, loff_t begin, loff_t length);
int morsel_pmem_fsync(struct file *file, loff_t begin, loff_t end, int datasync);
loff_t morsel_pmem_llseek(struct file *file, loff_t offset, int whence);

/**
 * morsel_pmem_of - the persistent memory of an inode
 * @inode: the inode
 *
 * Context: any.
 * Return: the memory, or NULL.
 */
static inline struct morsel_pmem *morsel_pmem_of(const struct inode *inode)
{
	return morsel_sb_of(inode->i_sb)->pmem;
}

/*
 * What the volatile file system calls. Without persistent memory these do nothing.
 */
#ifdef CONFIG_MORSEL_PMEM

int morsel_pmem_get_tree(struct fs_context *fc);
int morsel_pmem_reconfigure(struct fs_context *fc, const struct morsel_pmem *pmem);
void morsel_pmem_kill(struct super_block *super);
u64 morsel_pmem_used(const struct morsel_pmem *pmem);
bool morsel_pmem_is_file(const struct file *file);
int morsel_pmem_fill(struct morsel *morsel, pgoff_t index);
int morsel_pmem_create(struct inode *dir, struct dentry *dentry, struct inode *inode);
int morsel_pmem_link(struct inode *dir, struct dentry *dentry, struct inode *inode);
int morsel_pmem_unlink(struct dentry *dentry);
int morsel_pmem_rename(struct dentry *old, struct inode *dir, struct dentry *new,
		       unsigned int flags);
void morsel_pmem_touch(struct inode *inode);
int morsel_pmem_save(struct inode *inode);
void morsel_pmem_evict(struct inode *inode);
int morsel_pmem_new_xattrs(struct inode *inode, const char *name, const void *value,
			   size_t size, u64 *page);
void morsel_pmem_drop_xattrs(struct inode *inode, u64 page);
int morsel_pmem_set_xattrs(struct inode *inode, u64 page);
int morsel_pmem_resize(struct inode *inode, loff_t size);
int morsel_pmem_seal(struct inode *inode, unsigned int *seals);
int morsel_pmem_sync(struct super_block *super, int wait);

#else

static inline int morsel_pmem_get_tree(struct fs_context *fc)
{
	return invalf(fc, "morselfs: pmem: not supported by this kernel");
}

static inline int morsel_pmem_reconfigure(struct fs_context *fc, const struct morsel_pmem *pmem)
{
	return 0;
}

static inline void morsel_pmem_kill(struct super_block *super)
{
}

static inline u64 morsel_pmem_used(const struct morsel_pmem *pmem)
{
	return 0;
}

static inline bool morsel_pmem_is_file(const struct file *file)
{
	return false;
}

static inline int morsel_pmem_fill(struct morsel *morsel, pgoff_t index)
{
	return -EIO;
}

static inline int morsel_pmem_create(struct inode *dir, struct dentry *dentry,
				     struct inode *inode)
{
	return 0;
}

static inline int morsel_pmem_link(struct inode *dir, struct dentry *dentry,
				   struct inode *inode)
{
	return 0;
}

static inline int morsel_pmem_unlink(struct dentry *dentry)
{
	return 0;
}

static inline int morsel_pmem_rename(struct dentry *old, struct inode *dir,
				     struct dentry *new, unsigned int flags)
{
	return 0;
}

static inline void morsel_pmem_touch(struct inode *inode)
{
}

static inline int morsel_pmem_save(struct inode *inode)
{
	return 0;
}

static inline void morsel_pmem_evict(struct inode *inode)
{
}

static inline int morsel_pmem_new_xattrs(struct inode *inode, const char *name,
					 const void *value, size_t size, u64 *page)
{
	*page = 0;
	return 0;
}

static inline void morsel_pmem_drop_xattrs(struct inode *inode, u64 page)
{
}

static inline int morsel_pmem_set_xattrs(struct inode *inode, u64 page)
{
	return 0;
}

static inline int morsel_pmem_resize(struct inode *inode, loff_t size)
{
	return -EROFS;
}

static inline int morsel_pmem_seal(struct inode *inode, unsigned int *seals)
{
	return -EROFS;
}

static inline int morsel_pmem_sync(struct super_block *super, int wait)
{
	return 0;
}

#endif /* CONFIG_MORSEL_PMEM */

#endif /* _FS_MORSEL_PMEM_H */
