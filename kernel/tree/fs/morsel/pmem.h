/* SPDX-License-Identifier: GPL-2.0-only */
/* Mounts of persistent memory. */
#ifndef _FS_MORSEL_PMEM_H
#define _FS_MORSEL_PMEM_H

#include <linux/fs_context.h>
#include <linux/mutex.h>
#include <linux/pfn_t.h>

#include "format.h"
#include "internal.h"

struct dax_device;
struct dev_pagemap;

/**
 * struct morsel_pmem - the persistent memory of a mount
 * @medium: the range
 * @dax: device that maps it
 * @first: its first page in the device
 * @pagemap: page structures of the range; as long as they are held, the device stays
 * @building: protects changes of tables that are built
 */
struct morsel_pmem {
	struct morsel_medium medium;
	struct dax_device *dax;
	pgoff_t first;
	struct dev_pagemap *pagemap;
	struct mutex building; /* the tables of all sealed morsels */
};

/**
 * struct morsel_run - adjacent pages of the range that are adjacent in a file
 * @page: the first page; 0 for a hole
 * @pages: number of pages, at least 1
 */
struct morsel_run {
	u64 page;
	u64 pages;
};

/* pmem.c */

long morsel_pmem_access(const struct morsel_pmem *pmem, u64 page, long pages, void **address,
			pfn_t *pfn);

long morsel_pmem_pfn(const struct morsel_pmem *pmem, u64 page, long pages, pfn_t *pfn);
int morsel_pmem_find(const struct inode *inode, pgoff_t index, struct morsel_run *run);
bool morsel_pmem_find_block(const struct inode *inode, pgoff_t index, unsigned long pages,
			    pfn_t *pfn);

/* pmem_names.c */

int morsel_pmem_read_all(struct super_block *super);

/* pmem_file.c */

extern const struct file_operations morsel_pmem_file_operations;

#ifdef CONFIG_MORSEL_PMEM

int morsel_pmem_get_tree(struct fs_context *fc);
void morsel_pmem_kill(struct super_block *super);
bool morsel_pmem_is_file(const struct file *file);

/* pmem_fill.c */

int morsel_pmem_fill(struct morsel *morsel, pgoff_t index);

#else

static inline int morsel_pmem_get_tree(struct fs_context *fc)
{
	return invalf(fc, "morselfs: pmem: not supported by this kernel");
}

static inline void morsel_pmem_kill(struct super_block *super)
{
}

static inline bool morsel_pmem_is_file(const struct file *file)
{
	return false;
}

static inline int morsel_pmem_fill(struct morsel *morsel, pgoff_t index)
{
	return -EIO;
}

#endif /* CONFIG_MORSEL_PMEM */

#endif /* _FS_MORSEL_PMEM_H */
