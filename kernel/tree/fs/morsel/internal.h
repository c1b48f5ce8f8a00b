/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the files of fs/morsel. The contract is in linux/morsel.h. */
#ifndef _FS_MORSEL_INTERNAL_H
#define _FS_MORSEL_INTERNAL_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/morsel.h>
#include <linux/mutex.h>
#include <linux/percpu_counter.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <linux/xattr.h>

#include "slot.h"

/* Order of a block of 1 GiB, where Linux does not define it. */
#ifndef PUD_ORDER
#define PUD_ORDER	(PUD_SHIFT - PAGE_SHIFT)
#endif

/* Seals of a morsel that gets no new writes and no new mapping that may write. */
#define MORSEL_NO_WRITES	(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* Number of pages that an entry or a table maps. */
#define REGION_PAGES	((pgoff_t)PTRS_PER_PUD << PUD_ORDER)
#define PUD_PAGES	((pgoff_t)1 << PUD_ORDER)
#define PMD_PAGES	((pgoff_t)1 << PMD_ORDER)

/**
 * struct morsel_sb - a mount
 * @used: number of pages of all its morsels and their tables
 * @limit: upper bound of @used, 0 for none
 * @inodes: number of inodes of all kinds, and of their additional links
 * @inode_limit: upper bound of @inodes, 0 for none
 * @order: largest order of a block of pages
 * @mode: mode of the root directory
 * @uid: owner of the root directory
 * @gid: group of the root directory
 * @device: persistent memory to mount, or NULL
 * @pmem: the mounted persistent memory, or NULL
 */
struct morsel_sb {
	struct percpu_counter used;
	s64 limit;
	struct percpu_counter inodes;
	s64 inode_limit;
	unsigned int order;
	umode_t mode;
	kuid_t uid;
	kgid_t gid;
	char *device;
	struct morsel_pmem *pmem;
};

/**
 * struct morsel - a memory object, a file of morselfs
 * @inode: inode of the file
 * @regions: PUD tables, indexed by the number of their region
 * @pages: number of pages
 * @closed: the tables may not be read or filled, because entries are being removed
 * @taking: number of detaches in progress
 * @seals: F_SEAL_* flags, protected by the lock of the inode
 * @whole: number of pages from the begin on that all exist, and stay because the morsel
 *	is sealed
 * @xattrs: extended attributes
 * @xattr_bytes: memory that they take, protected by the lock of the inode
 * @at: place of its inode in persistent memory, 0 if there is none
 * @root: payload of the root word there
 * @xattr_page: page of the extended attributes there, or 0
 * @adding: serialises changes of the tree there, but not with its removal
 * @writers: number of mappings there that may write
 * @written: 2 MiB that they may have written, by index
 * @holds: number of devices that hold it, protected by the lock of the inode
 */
struct morsel {
	struct inode inode;
	struct xarray regions;
	struct percpu_counter pages;
	bool closed;
	atomic_t taking;
	unsigned int seals;
	pgoff_t whole;
	struct simple_xattrs xattrs;
	size_t xattr_bytes;
	u64 at;
	u64 root;
	u64 xattr_page;
	struct mutex adding; /* before the locks of struct morsel_range */
	atomic_t writers;
	struct xarray written;
	unsigned int holds;
};

/**
 * struct morsel_place - entries of the tables that lead to a page, as far as they exist
 * @pud: entry of the PUD table
 * @pmd: entry of the PMD table, NULL if @pud is a leaf or empty
 * @pte: entry of the page table, NULL if @pmd is a leaf or empty
 * @page: the page, NULL if there is none
 */
struct morsel_place {
	pud_t *pud;
	pmd_t *pmd;
	pte_t *pte;
	struct page *page;
};

/**
 * morsel_of - morsel of an inode
 * @inode: inode of a file of morselfs
 *
 * Context: any.
 * Return: the morsel.
 */
static inline struct morsel *morsel_of(const struct inode *inode)
{
	return container_of(inode, struct morsel, inode);
}

/**
 * morsel_sb_of - morselfs part of a superblock
 * @sb: superblock of morselfs
 *
 * Context: any.
 * Return: the part.
 */
static inline struct morsel_sb *morsel_sb_of(const struct super_block *sb)
{
	return sb->s_fs_info;
}

/* Event counters since boot, in the order of their names in sysfs. */
enum morsel_count {
	MORSEL_ATTACHED_PUD,
	MORSEL_ATTACHED_PMD,
	MORSEL_DETACHED,
	MORSEL_CONVERTED,
	MORSEL_FAULTS,
	MORSEL_FILLED_SMALL,
	MORSEL_FILLED_LARGE,
	MORSEL_FILLED_GIANT,
	MORSEL_NO_LARGE,
	MORSEL_NO_GIANT,
	MORSEL_SEALED,
	MORSEL_BROKEN,
	MORSEL_CLOSED,
	MORSEL_BUILT,
	MORSEL_ADDED_SMALL,
	MORSEL_ADDED_LARGE,
	MORSEL_WRITTEN_BACK,
	MORSEL_RECOVERED,
	MORSEL_HELD,
	MORSEL_COUNTS,
};

DECLARE_PER_CPU(unsigned long[MORSEL_COUNTS], morsel_counts);

/**
 * morsel_count_many - add to an event counter
 * @what: the counter
 * @nr: number of events
 *
 * Context: any.
 */
static inline void morsel_count_many(enum morsel_count what, unsigned long nr)
{
	this_cpu_add(morsel_counts[what], nr);
}

/**
 * morsel_count - count an event
 * @what: the counter
 *
 * Context: any.
 */
static inline void morsel_count(enum morsel_count what)
{
	morsel_count_many(what, 1);
}

extern struct percpu_counter morsel_all_pages, morsel_all_tables;

/* table.c */

bool morsel_try_enter(struct morsel *morsel);
void morsel_enter(struct morsel *morsel);
void morsel_leave(void);
void morsel_close(struct morsel *morsel);
void morsel_open(struct morsel *morsel);
pud_t *morsel_pud(struct morsel *morsel, pgoff_t index);
pmd_t *morsel_pmd(struct morsel *morsel, pgoff_t index);
void morsel_lookup(struct morsel *morsel, pgoff_t index, struct morsel_place *place);
struct page *morsel_peek(struct morsel *morsel, pgoff_t index);

/* alloc.c */

void morsel_count_pages(struct morsel *morsel, long pages);
void morsel_count_tables(long tables);
bool morsel_charge(struct morsel *morsel, long pages);
void morsel_uncharge(struct morsel *morsel, long pages);
struct folio *morsel_alloc_giant(struct morsel *morsel, pgoff_t index);
struct folio *morsel_alloc_large(struct morsel *morsel, pgoff_t index,
				 struct vm_area_struct *vma, unsigned long address);
int morsel_alloc_small(struct morsel *morsel, pgoff_t index,
		       struct vm_area_struct *vma, unsigned long address,
		       struct folio **folio);
void morsel_free_unused(struct folio *folio);
void morsel_free_mapped(struct folio *folio);

/* fill.c */

struct page *morsel_find(struct morsel *morsel, pgoff_t index);
int morsel_fill(struct morsel *morsel, pgoff_t index, pgoff_t end,
		struct vm_area_struct *vma, unsigned long address,
		struct page **page);

/* leaf.c */

pgoff_t morsel_remove(struct morsel *morsel, pgoff_t first, pgoff_t end,
		      unsigned int ms);
void morsel_forget(struct morsel *morsel);
void morsel_protect(struct morsel *morsel);
bool morsel_is_pinned(struct morsel *morsel);
bool morsel_is_held(struct morsel *morsel);
pgoff_t morsel_find_hole(struct morsel *morsel, pgoff_t index, pgoff_t end);
struct page *morsel_find_next(struct morsel *morsel, pgoff_t *index, pgoff_t end);
unsigned long morsel_resident(struct morsel *morsel, pgoff_t first, pgoff_t end);

/* free.c */

void morsel_free_tables(struct morsel *morsel, pgoff_t first, pgoff_t end);
void morsel_destroy(struct morsel *morsel);

/* attach.c */

void morsel_attach_all(struct vm_area_struct *vma);

/* detach.c */

void morsel_convert(struct vm_area_struct *vma);

/* fault.c */

vm_fault_t morsel_page_fault(struct vm_fault *vmf);
vm_fault_t morsel_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last);

/* mapping.c */

void morsel_vm_open(struct vm_area_struct *vma);
int morsel_may_split(struct vm_area_struct *vma, unsigned long address);
int morsel_mprotect(struct vm_area_struct *vma, unsigned long begin, unsigned long end,
		    unsigned long flags);
int morsel_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long addr,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags);

/* super.c */

void morsel_init_super(struct super_block *super);

/* dir.c */

struct inode *morsel_new_inode(struct super_block *super, const struct inode *dir,
			       umode_t mode, dev_t device);

/* file.c */

int morsel_open_file(struct inode *inode, struct file *file);
int morsel_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);

extern const struct file_operations morsel_file_operations;
extern const struct inode_operations morsel_file_inode_operations;
extern const struct address_space_operations morsel_aops;

/* xattr.c */

extern const struct xattr_handler *const morsel_xattr_handlers[];

ssize_t morsel_list_xattrs(struct dentry *dentry, char *list, size_t size);
int morsel_set_acl(struct mnt_idmap *idmap, struct dentry *dentry, struct posix_acl *acl,
		   int type);
int morsel_add_xattr(struct inode *inode, const char *prefix, const char *name,
		     const void *value, size_t size);
int morsel_init_security(struct inode *inode, struct inode *dir, const struct qstr *name);
void morsel_free_xattrs(struct inode *inode);

/* sysfs.c */

extern struct static_key_true morsel_key;

#endif /* _FS_MORSEL_INTERNAL_H */
