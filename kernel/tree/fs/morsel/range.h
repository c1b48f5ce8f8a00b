/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A range of persistent morsels that is changed: its free pages, its trees, and the slots
 * of its inodes and names.
 *
 * The order of the stores is that of Documentation/filesystems/morselfs-format.rst. What
 * morsel_set_word() stores is persistent after the next fence, and what
 * morsel_publish_word() stores is so at once. What a word leads to has been flushed, and
 * a fence has passed, before the word is stored. A page or slot is free only after the
 * fence that follows the removal of the word that led to it.
 */
#ifndef _FS_MORSEL_RANGE_H
#define _FS_MORSEL_RANGE_H

#include <linux/mutex.h>

#include "format.h"

/* A slot that does not exist. */
#define MORSEL_NO_SLOT	U64_MAX

/**
 * struct morsel_range - a range that is changed
 * @medium: the range
 * @owned: a bit for each page that is not free; NULL if pages are not freed
 * @used: number of these pages
 * @next: for blocks of each level, the page at which the search begins
 * @space: protects @owned, @used and @next
 * @inodes: the slots of the inodes
 * @names: the slots of the names
 * @slots: protects @inodes and @names, and serialises renames
 */
struct morsel_range {
	struct morsel_medium *medium;
	unsigned long *owned;
	u64 used;
	u64 next[MORSEL_BLOCK_LEVEL];
	struct mutex space; /* innermost */
	struct morsel_slots inodes;
	struct morsel_slots names;
	struct mutex slots; /* before @space */
};

/**
 * struct morsel_rename - the two slots of a rename
 * @inode: number of the inode that moves
 * @from: slot of its name
 * @other: number of the inode that @from gets, or 0
 * @target: slot of the new name, or MORSEL_NO_SLOT; set to the slot
 * @parent: number of the inode of the directory of the new name
 * @text: the new name
 * @length: its length
 */
struct morsel_rename {
	u64 inode;
	u64 from;
	u64 other;
	u64 target;
	u64 parent;
	const char *text;
	unsigned int length;
};

/* space.c */

int morsel_set_word(struct morsel_range *range, u64 at, u64 payload);
int morsel_publish_word(struct morsel_range *range, u64 at, u64 payload);
int morsel_take_pages(struct morsel_range *range, unsigned int level, u64 *page);
void morsel_free_pages(struct morsel_range *range, u64 page, u64 pages);

/* tree.c */

int morsel_tree_add(struct morsel_range *range, u64 word, u64 *root,
		    const struct morsel_node *block);
int morsel_tree_cut(struct morsel_range *range, u64 word, u64 *root, u64 first, u64 end,
		    u64 *pages);
void morsel_tree_drop(struct morsel_range *range, u64 root);
bool morsel_tree_find(const struct morsel_range *range, u64 root, u64 page, u64 *index);

/* names.c */

u64 morsel_slot_at(const struct morsel_slots *slots, u64 number);
void morsel_use_slot(struct morsel_slots *slots, u64 number);
int morsel_store_inode(struct morsel_range *range, struct morsel_record *record);
int morsel_remove_inode(struct morsel_range *range, u64 number);
int morsel_store_name(struct morsel_range *range, struct morsel_entry *entry);
int morsel_remove_name(struct morsel_range *range, u64 slot);
int morsel_store_rename(struct morsel_range *range, struct morsel_rename *rename);

/* recover.c */

int morsel_recover(struct morsel_survey *survey);

#endif /* _FS_MORSEL_RANGE_H */
