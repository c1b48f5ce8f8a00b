/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes ranges of persistent morsels. */
#ifndef TOLLFREE_MORSEL_IMAGE_H
#define TOLLFREE_MORSEL_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define IMAGE_PAGES	4096UL
#define IMAGE_SIZE	(IMAGE_PAGES * 4096)

/* Pages that the tests use. */
enum {
	IMAGE_INODES = 2,
	IMAGE_NAMES = 3,
	IMAGE_FREE = 4,
	/* The first block of 2 MiB. */
	IMAGE_BLOCK = 512,
};

/* Places of the root words. */
enum {
	IMAGE_INODES_ROOT = 256,
	IMAGE_NAMES_ROOT = 264,
};

/* Words of an inode and of a name, by their place in the slot. */
enum {
	INODE_MODE = 0,
	INODE_UID = 8,
	INODE_GID = 16,
	INODE_SIZE = 24,
	INODE_ROOT = 32,
	INODE_XATTR = 40,
	INODE_MTIME = 48,
	INODE_CTIME = 56,
	INODE_RDEV = 64,
	NAME_INODE = 0,
	NAME_PARENT = 8,
	NAME_FROM = 16,
	NAME_OTHER = 24,
	NAME_LENGTH = 32,
	NAME_TEXT = 64,
};

#define IMAGE_LEAF	0x10000000000UL
#define IMAGE_PENDING	0x800000000000UL
#define IMAGE_ROOT(page, level, leaf, seals) \
	((page) | (uint64_t)(level) << 40 | (uint64_t)(leaf) << 43 | (uint64_t)(seals) << 44)

extern char *image;

void image_word(uint64_t offset, uint64_t payload);
void image_begin(void);
void image_super(uint64_t page, uint32_t version, uint64_t pages, uint64_t features);
uint64_t image_inode(unsigned int number);
uint64_t image_name(unsigned int slot);
void image_add_inode(unsigned int number, uint64_t mode, uint64_t size, uint64_t root);
void image_add_name(unsigned int slot, uint64_t inode, uint64_t parent, const char *text);
void image_begin_xattrs(uint64_t page);
void image_add_xattr(uint64_t page, const char *name, const char *value);

#endif
