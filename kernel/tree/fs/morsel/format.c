// SPDX-License-Identifier: GPL-2.0-only
/*
 * Format of persistent morsels: words, superblocks, and the nodes of trees.
 *
 * A range is input, and may change at any time. So each part is copied first, and only the
 * copy is checked and used.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/crc-t10dif.h>
#include <linux/crc32.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "format.h"

#define MORSEL_PAYLOAD		(BIT_ULL(48) - 1)
#define MORSEL_PAGE_MASK	(BIT_ULL(MORSEL_PAGE_BITS) - 1)

/* Words */

/**
 * morsel_sum - CRC-32C of bytes
 * @bytes: the bytes
 * @length: their number
 *
 * Context: any.
 * Return: the sum.
 */
u32 morsel_sum(const void *bytes, size_t length)
{
	return ~__crc32c_le(~0U, bytes, length);
}

static u16 morsel_check(u64 offset, u64 payload)
{
	u8 bytes[16];

	put_unaligned_le64(offset, bytes);
	put_unaligned_le64(payload, bytes + 8);
	return crc_t10dif_generic(0, bytes, sizeof(bytes));
}

/**
 * morsel_encode - make a word
 * @offset: place of the word in the range
 * @payload: 48 bits
 *
 * Context: any.
 * Return: the word.
 */
u64 morsel_encode(u64 offset, u64 payload)
{
	return payload ? payload | (u64)morsel_check(offset, payload) << 48 : 0;
}

/**
 * morsel_decode - check a word
 * @offset: place of the word in the range
 * @word: the word
 * @payload: set to its payload
 *
 * Context: any.
 * Return: whether it is valid at that place.
 */
bool morsel_decode(u64 offset, u64 word, u64 *payload)
{
	*payload = word & MORSEL_PAYLOAD;
	return morsel_encode(offset, *payload) == word;
}

/* Superblocks */

enum morsel_copy {
	MORSEL_COPY_FOREIGN,
	MORSEL_COPY_DAMAGED,
	MORSEL_COPY_NEWER,
	MORSEL_COPY_VALID,
};

/* Bytes that the sum covers; it follows them. */
#define MORSEL_SUMMED	252

static enum morsel_copy morsel_copy_of(const u8 *page)
{
	if (memcmp(page, "MORSELFS", 8))
		return MORSEL_COPY_FOREIGN;
	if (get_unaligned_le32(page + MORSEL_SUMMED) != morsel_sum(page, MORSEL_SUMMED))
		return MORSEL_COPY_DAMAGED;
	if (get_unaligned_le32(page + 8) != MORSEL_FORMAT_VERSION)
		return MORSEL_COPY_NEWER;
	if (get_unaligned_le32(page + 12) != MORSEL_FORMAT_SHIFT)
		return MORSEL_COPY_DAMAGED;
	return MORSEL_COPY_VALID;
}

static const char *morsel_copy_problem(enum morsel_copy copy)
{
	switch (copy) {
	case MORSEL_COPY_FOREIGN:
		return "no persistent morsels";
	case MORSEL_COPY_DAMAGED:
		return "both copies of the superblock are damaged";
	case MORSEL_COPY_NEWER:
		return "another version of the format";
	default:
		return NULL;
	}
}

static const char *morsel_super_problem(const u8 *page, u64 present)
{
	u64 pages = get_unaligned_le64(page + 48);

	if (get_unaligned_le64(page + 24))
		return "features that this kernel does not know";
	if (pages < MORSEL_LEAST_PAGES || pages > BIT_ULL(MORSEL_PAGE_BITS))
		return "the size in the superblock is damaged";
	if (pages > present)
		return "smaller than recorded";
	return NULL;
}

/*
 * Read a copy. The better of the copies stays in @super, the first one of two that are
 * alike.
 */
static int morsel_read_copy(const struct morsel_medium *medium, unsigned int number, u8 *page,
			    enum morsel_copy *best, struct morsel_super *super)
{
	enum morsel_copy copy;
	int err = medium->read(medium, (u64)number << MORSEL_FORMAT_SHIFT, page, 256);

	if (err)
		return err;
	copy = morsel_copy_of(page);
	if (copy != MORSEL_COPY_VALID)
		super->damaged++;
	if (number && copy <= *best)
		return 0;
	*best = copy;
	if (copy == MORSEL_COPY_VALID) {
		super->problem = morsel_super_problem(page, medium->pages);
		super->pages = get_unaligned_le64(page + 48);
		memcpy(super->uuid, page + 32, sizeof(super->uuid));
	}
	return 0;
}

/**
 * morsel_read_super - read the superblock
 * @medium: the range; the number of pages is set to the recorded one
 * @page: buffer of a page
 * @super: set to the superblock
 *
 * Context: may sleep if reading does.
 * Return: 0, -EINVAL for a range that is not of this format, -EUCLEAN for a damaged one,
 * with the problem in @super, or the error of a read.
 */
int morsel_read_super(struct morsel_medium *medium, void *page, struct morsel_super *super)
{
	enum morsel_copy best = MORSEL_COPY_FOREIGN;
	unsigned int number;

	*super = (struct morsel_super){};
	if (medium->pages < MORSEL_LEAST_PAGES) {
		super->problem = "too small";
		return -EINVAL;
	}
	for (number = 0; number < 2; number++) {
		int err = morsel_read_copy(medium, number, page, &best, super);

		if (err)
			return err;
	}
	if (best != MORSEL_COPY_VALID)
		super->problem = morsel_copy_problem(best);
	if (super->problem)
		return best == MORSEL_COPY_DAMAGED ? -EUCLEAN : -EINVAL;
	medium->pages = super->pages;
	return 0;
}

/* Trees */

/**
 * morsel_span_of - pages that a node covers
 * @level: its level, at most 7
 *
 * Context: any.
 * Return: number of pages.
 */
u64 morsel_span_of(unsigned int level)
{
	return BIT_ULL(9 * level);
}

/**
 * morsel_node_pages - pages of the range that a node takes itself
 * @node: the node
 *
 * Context: any.
 * Return: number of pages.
 */
u64 morsel_node_pages(const struct morsel_node *node)
{
	return node->is_block ? morsel_span_of(node->level) : 1;
}

/**
 * morsel_root_node - the node that a root word leads to
 * @word: place of the word
 * @payload: payload of the word
 * @node: set to the node, which is not checked; page 0 if the tree is empty
 *
 * Context: any.
 */
void morsel_root_node(u64 word, u64 payload, struct morsel_node *node)
{
	*node = (struct morsel_node){
		.page = payload & MORSEL_PAGE_MASK,
		.word = word,
		.level = payload >> 40 & 7,
		.is_block = payload >> 43 & 1,
	};
}

/**
 * morsel_node_problem - check a node before it is used
 * @node: the node
 * @pages: number of pages of the range
 *
 * Context: any.
 * Return: what is wrong with it, or NULL.
 */
const char *morsel_node_problem(const struct morsel_node *node, u64 pages)
{
	u64 count = morsel_node_pages(node);

	if (node->level > MORSEL_TOP_LEVEL)
		return "the level of a root is too large";
	if (!node->is_block && !node->level)
		return "a table has the level of a page";
	if (node->is_block && node->level > MORSEL_BLOCK_LEVEL)
		return "a block is too large";
	if (node->page < 2)
		return "an entry leads to a superblock";
	if (count > pages || node->page > pages - count)
		return "an entry leads out of the range";
	if (node->page & (count - 1))
		return "a block is not aligned";
	return NULL;
}

/**
 * morsel_child_node - the node that a word of a table leads to
 * @table: the table, which was checked
 * @slot: number of the word
 * @value: the word, not 0
 * @pages: number of pages of the range
 * @child: set to the node
 *
 * Context: any.
 * Return: what is wrong with it, or NULL.
 */
const char *morsel_child_node(const struct morsel_node *table, unsigned int slot, u64 value,
			      u64 pages, struct morsel_node *child)
{
	u64 payload;

	*child = (struct morsel_node){
		.word = (table->page << MORSEL_FORMAT_SHIFT) + slot * sizeof(u64),
		.level = table->level - 1,
		.index = table->index + slot * morsel_span_of(table->level - 1),
	};
	if (!morsel_decode(child->word, value, &payload) || payload >> (MORSEL_PAGE_BITS + 1))
		return "an entry of a table is damaged";
	child->page = payload & MORSEL_PAGE_MASK;
	child->is_block = payload >> MORSEL_PAGE_BITS;
	return morsel_node_problem(child, pages);
}

/* Set @node to the node of the next level that covers a page: page 0 if there is none. */
static int morsel_descend(const struct morsel_medium *medium, u64 index,
			  struct morsel_node *node)
{
	const struct morsel_node table = *node;
	unsigned int slot = (index >> (9 * (table.level - 1))) % MORSEL_FORMAT_ENTRIES;
	u64 value;
	u8 bytes[8];
	int err = medium->read(medium, (table.page << MORSEL_FORMAT_SHIFT) + slot * 8, bytes,
			       sizeof(bytes));

	if (err)
		return err;
	value = get_unaligned_le64(bytes);
	if (!value) {
		node->page = 0;
		return 0;
	}
	return morsel_child_node(&table, slot, value, medium->pages, node) ? -EUCLEAN : 0;
}

/**
 * morsel_find_node - find the block that has a page of a tree
 * @medium: the range
 * @root: payload of the root word
 * @index: number of the page
 * @node: set to the block; page 0 if there is none
 *
 * Context: may sleep if reading does.
 * Return: 0, -EUCLEAN if a word on the way is damaged, or the error of a read.
 */
int morsel_find_node(const struct morsel_medium *medium, u64 root, u64 index,
		     struct morsel_node *node)
{
	morsel_root_node(0, root, node);
	if (node->page && morsel_node_problem(node, medium->pages))
		return -EUCLEAN;
	if (index >= morsel_span_of(node->level))
		node->page = 0;
	while (node->page && !node->is_block) {
		int err = morsel_descend(medium, index, node);

		if (err)
			return err;
	}
	return 0;
}
