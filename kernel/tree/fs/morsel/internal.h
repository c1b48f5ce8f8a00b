/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of fs/morsel share. The contract is in linux/morsel.h. */
#ifndef _FS_MORSEL_INTERNAL_H
#define _FS_MORSEL_INTERNAL_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/morsel.h>
#include <linux/percpu_counter.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "slot.h"

/* Linux names no blocks of 1 GiB otherwise. */
#ifndef PUD_ORDER
#define PUD_ORDER	(PUD_SHIFT - PAGE_SHIFT)
#endif

/**
 * struct morsel_sb - a mount
 * @used: pages of all of its morsels, and their tables
 * @limit: as many as there may be, 0 for any number
 * @inodes: of all kinds, as many as there are, and their second names
 * @inode_limit: as many as there may be, 0 for any number
 * @order: the largest that a block of pages has which is not asked for
 * @mode: of the root directory
 * @uid: its owner
 * @gid: its group
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
};

/**
 * struct morsel - a memory object, and the file that it is
 * @inode: the file
 * @regions: its PUD tables, by their first page
 * @pages: how many it has
 * @closed: nobody may look at its tables or fill them: somebody takes from them
 * @taking: how many are taking it out of an address space just now
 * @lock: of the two below
 * @writer: whose mappings may write it
 * @writes: how many mappings of @writer that are
 * @seals: as memfd's, under the inode's lock
 */
struct morsel {
	struct inode inode;
	struct xarray regions;
	struct percpu_counter pages;
	bool closed;
	atomic_t taking;
	spinlock_t lock; /* of writer and writes */
	struct mm_struct *writer;
	unsigned int writes;
	unsigned int seals;
};

static inline struct morsel *morsel_of(const struct inode *inode)
{
	return container_of(inode, struct morsel, inode);
}

static inline struct morsel_sb *morsel_sb_of(const struct super_block *sb)
{
	return sb->s_fs_info;
}

/* What is counted since boot, in the order of the names in sysfs. */
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
	MORSEL_COUNTS,
};

DECLARE_PER_CPU(unsigned long[MORSEL_COUNTS], morsel_counts);

static inline void morsel_count_many(enum morsel_count what, unsigned long nr)
{
	this_cpu_add(morsel_counts[what], nr);
}

static inline void morsel_count(enum morsel_count what)
{
	morsel_count_many(what, 1);
}

extern struct percpu_counter morsel_all_pages, morsel_all_tables;

/*
 * Bugs that can be planted, to see that the tests find them, in the order of the
 * names in sysfs. Those of the TLB are found where a TLB remembers what it may:
 * an emulator's forgets too early.
 */
enum morsel_plant {
	PLANT_NOTHING,
	PLANT_SLOT_PAST_END,
	PLANT_LAST_SLOT_STAYS,
	PLANT_ONE_FLUSH_A_GIB,
	PLANT_NO_FLUSH,
	PLANT_SEAL_UNDER_PIN,
	PLANT_SEAL_LEAVES_WRITABLE,
	PLANT_HOLE_UNDER_MAPPINGS,
	PLANT_TWO_WRITERS,
	PLANT_CLAIM_STAYS,
	PLANT_MAY_WRITE_SEALED,
	PLANT_SPLIT_STAYS_WHOLE,
	PLANT_LAST_FILL_WINS,
	PLANT_OLD_CONTENT,
	PLANT_TLB_LAZY_CPUS_KEEP,
	PLANT_TLB_TABLES_GO_AT_ONCE,
	PLANTS,
};

#ifdef CONFIG_MORSEL_PLANTS
extern unsigned int morsel_planted;

static inline bool morsel_is_planted(enum morsel_plant plant)
{
	return READ_ONCE(morsel_planted) == plant;
}
#else
static inline bool morsel_is_planted(enum morsel_plant plant)
{
	return false;
}
#endif

/*
 * Where a test can stop a task, to do something else meanwhile, in the order of the
 * names in sysfs.
 */
enum morsel_stop {
	STOP_NOWHERE,
	/* A seal, when it has found no pin and has not closed the morsel yet. */
	STOP_BEFORE_CLOSE,
	/* A fault, when the page is there and is not attached yet. */
	STOP_BEFORE_ATTACH,
	/* A removal, after a leaf, while the morsel is closed. */
	STOP_IN_REMOVE,
	MORSEL_STOPS,
};

#ifdef CONFIG_MORSEL_PLANTS
void morsel_stop_at(enum morsel_stop stop);
#else
static inline void morsel_stop_at(enum morsel_stop stop)
{
}
#endif

/* table.c */

bool morsel_try_enter(struct morsel *morsel);
void morsel_enter(struct morsel *morsel);
void morsel_leave(void);
void morsel_close(struct morsel *morsel);
void morsel_open(struct morsel *morsel);
pud_t *morsel_pud(struct morsel *morsel, pgoff_t index);
pmd_t *morsel_pmd(struct morsel *morsel, pgoff_t index);
struct page *morsel_peek(struct morsel *morsel, pgoff_t index);
struct page *morsel_find(struct morsel *morsel, pgoff_t index);
struct page *morsel_find_next(struct morsel *morsel, pgoff_t *index,
			      pgoff_t end);
int morsel_fill(struct morsel *morsel, pgoff_t index, pgoff_t end,
		struct vm_area_struct *vma, unsigned long address,
		struct page **page);
pgoff_t morsel_remove(struct morsel *morsel, pgoff_t first, pgoff_t end,
		      unsigned int ms);
void morsel_protect(struct morsel *morsel);
bool morsel_is_pinned(struct morsel *morsel);
bool morsel_is_held(struct morsel *morsel);
void morsel_free_tables(struct morsel *morsel, pgoff_t first, pgoff_t end);
unsigned long morsel_resident(struct morsel *morsel, pgoff_t first, pgoff_t end);
void morsel_destroy(struct morsel *morsel);

/* attach.c */

int morsel_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long addr,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags);

/* file.c */

extern const struct file_operations morsel_file_operations;
extern const struct inode_operations morsel_file_inode_operations;
extern const struct address_space_operations morsel_aops;

/* sysfs.c */

extern struct static_key_true morsel_key;

#endif /* _FS_MORSEL_INTERNAL_H */
