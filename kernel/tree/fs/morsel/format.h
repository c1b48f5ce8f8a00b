/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Format of persistent morsels, as Documentation/filesystems/morselfs-format.rst describes
 * it, and what a range in this format holds.
 */
#ifndef _FS_MORSEL_FORMAT_H
#define _FS_MORSEL_FORMAT_H

#include <linux/bits.h>
#include <linux/types.h>

/* Bytes and logarithm of a page, whatever the size of a page in Linux is. */
#define MORSEL_FORMAT_SHIFT	12
#define MORSEL_FORMAT_PAGE	4096U
#define MORSEL_FORMAT_ENTRIES	512U

#define MORSEL_FORMAT_VERSION	1
#define MORSEL_LEAST_PAGES	16
/* Bits of the number of a page. */
#define MORSEL_PAGE_BITS	40
#define MORSEL_MOST_BYTES	(BIT_ULL(48) - MORSEL_FORMAT_PAGE)
/* The highest level of a root, and of a block. */
#define MORSEL_TOP_LEVEL	4
#define MORSEL_BLOCK_LEVEL	2
#define MORSEL_ROOT_DIRECTORY	1

/* Seals in the payload of a root word, with the values of fcntl(2), and F_SEAL_WRITE there. */
#define MORSEL_ROOT_SEALS(payload)	((payload) >> 44 & 15)
#define MORSEL_ROOT_SEALED		BIT_ULL(47)

/* Places of the root words. */
#define MORSEL_INODES		256
#define MORSEL_NAMES		264

/* A slot of an inode: its size, and the places of its words. */
#define MORSEL_INODE_SLOT	128
#define MORSEL_INODE_MODE	0
#define MORSEL_INODE_UID	8
#define MORSEL_INODE_GID	16
#define MORSEL_INODE_SIZE	24
#define MORSEL_INODE_ROOT	32
#define MORSEL_INODE_XATTR	40
#define MORSEL_INODE_MTIME	48
#define MORSEL_INODE_CTIME	56
#define MORSEL_INODE_RDEV	64
#define MORSEL_INODE_GENERATION	72

/* A slot of a name. */
#define MORSEL_NAME_SLOT	512
#define MORSEL_NAME_INODE	0
#define MORSEL_NAME_PARENT	8
#define MORSEL_NAME_FROM	16
#define MORSEL_NAME_OTHER	24
#define MORSEL_NAME_LENGTH	32
#define MORSEL_NAME_TEXT	64

#define MORSEL_PENDING		BIT_ULL(47)

/* Header of extended attributes, and of one. */
#define MORSEL_XATTR_HEADER	16U
#define MORSEL_XATTR_LENGTHS	4

/* Place of a word in a page, for the table that has it at a slot. */
#define MORSEL_WORD_AT(page, slot) \
	(((u64)(page) << MORSEL_FORMAT_SHIFT) + (slot) * sizeof(u64))

/**
 * struct morsel_medium - a range that can be read, and maybe changed
 * @read: copy bytes of the range within one page; return 0 or -EIO
 * @write: store bytes within one page, and flush them; 8 aligned bytes are one store;
 *	return 0 or -EIO
 * @zero: store zeros to a number of pages, and flush them; return 0 or -EIO
 * @fence: wait until what was flushed is persistent
 * @is_held: whether a device or a pipe holds one of some free pages; may be NULL
 * @pages: number of pages that are there; once the superblock is read, the recorded number
 */
struct morsel_medium {
	int (*read)(const struct morsel_medium *medium, u64 offset, void *buffer,
		    size_t length);
	int (*write)(const struct morsel_medium *medium, u64 offset, const void *bytes,
		     size_t length);
	int (*zero)(const struct morsel_medium *medium, u64 page, u64 pages);
	void (*fence)(const struct morsel_medium *medium);
	bool (*is_held)(const struct morsel_medium *medium, u64 page, u64 pages);
	u64 pages;
};

/**
 * struct morsel_super - superblock of a range
 * @pages: number of pages of the range
 * @uuid: UUID
 * @damaged: number of copies that are damaged, 0 or 1
 * @problem: why the range is refused, or NULL
 */
struct morsel_super {
	u64 pages;
	u8 uuid[16];
	unsigned int damaged;
	const char *problem;
};

/**
 * struct morsel_node - a table or a block of a tree
 * @index: number of the first page of the tree that it covers
 * @page: its page of the range; 0 if there is none
 * @word: place of the word that leads to it
 * @level: it covers 512^level pages
 * @is_block: it is a block
 */
struct morsel_node {
	u64 index;
	u64 page;
	u64 word;
	unsigned int level;
	bool is_block;
};

u32 morsel_sum(const void *bytes, size_t length);
u64 morsel_encode(u64 offset, u64 payload);
bool morsel_decode(u64 offset, u64 word, u64 *payload);
int morsel_read_super(struct morsel_medium *medium, void *page, struct morsel_super *super);
u64 morsel_span_of(unsigned int level);
u64 morsel_node_pages(const struct morsel_node *node);
void morsel_root_node(u64 word, u64 payload, struct morsel_node *node);
const char *morsel_node_problem(const struct morsel_node *node, u64 pages);
const char *morsel_child_node(const struct morsel_node *table, unsigned int slot, u64 value,
			      u64 pages, struct morsel_node *child);
int morsel_find_node(const struct morsel_medium *medium, u64 root, u64 index,
		     struct morsel_node *node);

/**
 * struct morsel_slot_page - a page of slots of inodes or names
 * @index: its index in the tree
 * @page: its page of the range
 * @used: a bit for each slot that is not free
 */
struct morsel_slot_page {
	u64 index;
	u64 page;
	u32 used;
};

/**
 * struct morsel_slots - the tree of the inodes or of the names
 * @word: place of the root word
 * @root: its payload
 * @size: size of a slot
 * @pages: the pages, by index
 * @nr: number of pages
 * @first: no page before this one has a free slot
 */
struct morsel_slots {
	u64 word;
	u64 root;
	unsigned int size;
	struct morsel_slot_page *pages;
	u64 nr;
	u64 first;
};

/**
 * struct morsel_record - an inode of a range
 * @number: its number
 * @at: place of its slot
 * @root: payload of its root word
 * @size: size in bytes
 * @pages: number of pages of its content
 * @xattr: page of the extended attributes, or 0
 * @mtime: payload of the word, see morsel_time()
 * @ctime: payload of the word
 * @links: number of names
 * @parent: for a directory with a name, the number of its directory
 * @depth: for a directory, the number of directories above it
 * @uid: user
 * @gid: group
 * @rdev: number of a device
 * @generation: generation
 * @mode: type and permissions
 * @is_linked: a directory from which the root was reached
 * @is_visited: a directory on the way there
 * @user: for the caller
 */
struct morsel_record {
	u64 number;
	u64 at;
	u64 root;
	u64 size;
	u64 pages;
	u64 xattr;
	u64 mtime;
	u64 ctime;
	u64 links;
	u64 parent;
	u64 depth;
	u32 uid;
	u32 gid;
	u32 rdev;
	u32 generation;
	u16 mode;
	bool is_linked;
	bool is_visited;
	void *user;
};

/**
 * struct morsel_entry - a name of a range
 * @slot: number of its slot
 * @at: place of its slot
 * @inode: number of the inode, after pending renames; 0 if there is none
 * @parent: number of the inode of the directory
 * @depth: number of directories above that directory
 * @from: number of another slot, plus 1
 * @other: inode of the other slot, U64_MAX if the word is damaged
 * @is_pending: @from and @other mean something
 * @is_renamed: a pending slot names this one
 * @is_valid: @parent and @text are valid
 * @length: length of the name
 * @text: the name, with a zero byte behind it
 */
struct morsel_entry {
	u64 slot;
	u64 at;
	u64 inode;
	u64 parent;
	u64 depth;
	u64 from;
	u64 other;
	bool is_pending;
	bool is_renamed;
	bool is_valid;
	u8 length;
	char text[256];
};

/**
 * struct morsel_survey - what a range holds
 * @medium: the range
 * @super: its superblock
 * @inode_slots: the tree of the inodes
 * @name_slots: the tree of the names
 * @records: inodes, by number
 * @nr_records: number of inodes
 * @entries: slots of names in use, by number
 * @nr_entries: number of slots
 * @names: names after pending renames; those of a directory come after its own
 * @nr_names: number of names
 * @owned: a bit for each page that is reached
 * @nr_owned: number of these pages
 * @leftovers: number of things that recovery would end
 * @problem: what is wrong, if the survey failed because of the range
 * @where: offset of that
 * @buffers: pages of the tables on the way, and one more
 */
struct morsel_survey {
	struct morsel_medium *medium;
	struct morsel_super super;
	struct morsel_slots inode_slots;
	struct morsel_slots name_slots;
	struct morsel_record *records;
	u64 nr_records;
	struct morsel_entry *entries;
	u64 nr_entries;
	struct morsel_entry **names;
	u64 nr_names;
	unsigned long *owned;
	u64 nr_owned;
	u64 leftovers;
	const char *problem;
	u64 where;
	u8 (*buffers)[MORSEL_FORMAT_PAGE];
};

/**
 * struct morsel_xattr - an extended attribute
 * @name: its name, with a zero byte behind it
 * @value: its value, in the page
 * @size: size of the value
 */
struct morsel_xattr {
	char name[256];
	const u8 *value;
	unsigned int size;
};

bool morsel_xattrs_are_valid(const u8 *page, u64 number);
bool morsel_next_xattr(const u8 *page, unsigned int *at, struct morsel_xattr *xattr);
int morsel_make_room(void **array, u64 nr, size_t size);
int morsel_survey(struct morsel_survey *survey, struct morsel_medium *medium);
void morsel_survey_free(struct morsel_survey *survey);
struct morsel_record *morsel_survey_record(const struct morsel_survey *survey, u64 number);

#endif /* _FS_MORSEL_FORMAT_H */
