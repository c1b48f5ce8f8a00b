// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of the trees of persistent morsels: add a block, remove a range.
 *
 * The caller serialises the changes of a tree. A reader sees the tree before or after
 * each store, and has to be excluded before pages are removed.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/unaligned.h>

#include "range.h"

#define MORSEL_ENTRY_BLOCK	BIT_ULL(MORSEL_PAGE_BITS)
#define MORSEL_ENTRY_PAGE	(MORSEL_ENTRY_BLOCK - 1)
#define MORSEL_SEALS_MASK	(15ULL << 44)

static unsigned int morsel_slot_of(u64 index, unsigned int level)
{
	return (index >> (9 * (level - 1))) % MORSEL_FORMAT_ENTRIES;
}

/* Payload of the root word that leads to what an entry of a table led to. */
static u64 morsel_root_of(u64 entry, unsigned int level, u64 old)
{
	return (entry & MORSEL_ENTRY_PAGE) | (u64)level << 40 |
	       (entry & MORSEL_ENTRY_BLOCK) << 3 | (old & MORSEL_SEALS_MASK);
}

/* Adding */

/* Make a table with one entry, and flush it. @entry is set to what leads to the table. */
static int morsel_new_table(struct morsel_range *range, unsigned int slot, u64 *entry)
{
	u64 page;
	int err = morsel_take_pages(range, 0, &page);

	if (err)
		return err;
	err = range->medium->zero(range->medium, page, 1) ?:
	      morsel_set_word(range, MORSEL_WORD_AT(page, slot), *entry);
	if (err)
		morsel_free_pages(range, page, 1);
	else
		*entry = page;
	return err;
}

/*
 * Make the tables between a block and a node of the level @top, and set @entry to what
 * leads to the topmost one. A fence follows.
 */
static int morsel_new_tables(struct morsel_range *range, const struct morsel_node *block,
			     unsigned int top, u64 *entry)
{
	u64 tables[MORSEL_TOP_LEVEL];
	unsigned int level, nr = 0;
	int err = 0;

	*entry = block->page | MORSEL_ENTRY_BLOCK;
	for (level = block->level + 1; !err && level <= top; level++) {
		err = morsel_new_table(range, morsel_slot_of(block->index, level), entry);
		tables[nr] = *entry;
		nr += !err;
	}
	while (err && nr)
		morsel_free_pages(range, tables[--nr], 1);
	return err;
}

static int morsel_publish_root(struct morsel_range *range, u64 word, u64 *root, u64 payload)
{
	int err;

	range->medium->fence(range->medium);
	err = morsel_publish_word(range, word, payload);
	if (!err)
		WRITE_ONCE(*root, payload);
	return err;
}

static int morsel_add_first(struct morsel_range *range, u64 word, u64 *root,
			    const struct morsel_node *block)
{
	unsigned int top = block->level;
	u64 entry;
	int err;

	while (block->index >= morsel_span_of(top))
		top++;
	err = morsel_new_tables(range, block, top, &entry);
	return err ?: morsel_publish_root(range, word, root, morsel_root_of(entry, top, *root));
}

/* Add a level at the top. */
static int morsel_add_level(struct morsel_range *range, u64 word, u64 *root,
			    const struct morsel_node *top)
{
	u64 entry = top->page | (top->is_block ? MORSEL_ENTRY_BLOCK : 0);
	int err = morsel_new_table(range, 0, &entry);

	return err ?: morsel_publish_root(range, word, root,
					  morsel_root_of(entry, top->level + 1, *root));
}

/* Publish the tables and the block below a table that exists. */
static int morsel_add_below(struct morsel_range *range, const struct morsel_node *table,
			    const struct morsel_node *block)
{
	unsigned int slot = morsel_slot_of(block->index, table->level);
	u64 entry;
	int err = morsel_new_tables(range, block, table->level - 1, &entry);

	if (err)
		return err;
	range->medium->fence(range->medium);
	return morsel_publish_word(range, MORSEL_WORD_AT(table->page, slot), entry);
}

/* Read what an entry of a table leads to; page 0 if there is nothing. */
static int morsel_read_child(const struct morsel_range *range, const struct morsel_node *table,
			     unsigned int slot, struct morsel_node *child)
{
	u8 bytes[8];
	int err = range->medium->read(range->medium, MORSEL_WORD_AT(table->page, slot), bytes,
				      sizeof(bytes));

	if (err)
		return err;
	*child = (struct morsel_node){};
	if (!get_unaligned_le64(bytes))
		return 0;
	return morsel_child_node(table, slot, get_unaligned_le64(bytes), range->medium->pages,
				 child) ? -EUCLEAN : 0;
}

/**
 * morsel_tree_add - add a block to a tree
 * @range: the range
 * @word: place of the root word
 * @root: payload of the root word; set to the new one
 * @block: index, page and level of the block; its content was flushed
 *
 * Without space for all tables nothing is added, but the root may have a higher level.
 *
 * Context: may sleep; changes of the tree are serialised.
 * Return: 0, -EEXIST if the tree has a page there, -EFBIG beyond what a tree can have,
 * -ENOSPC, -EUCLEAN for a damaged word, or -EIO.
 */
int morsel_tree_add(struct morsel_range *range, u64 word, u64 *root,
		    const struct morsel_node *block)
{
	struct morsel_node node, child;
	int err;

	if (block->index >= morsel_span_of(MORSEL_TOP_LEVEL))
		return -EFBIG;
	morsel_root_node(word, *root, &node);
	if (!node.page)
		return morsel_add_first(range, word, root, block);
	while (block->index >= morsel_span_of(node.level) || block->level > node.level) {
		err = morsel_add_level(range, word, root, &node);
		if (err)
			return err;
		morsel_root_node(word, *root, &node);
	}
	for (; !node.is_block && node.level > block->level; node = child) {
		err = morsel_read_child(range, &node,
					morsel_slot_of(block->index, node.level), &child);
		if (err)
			return err;
		if (!child.page)
			return morsel_add_below(range, &node, block);
	}
	return -EEXIST;
}

/* Removing */

/* Free a node that nothing leads to, and what is below it. What cannot be read stays. */
static void morsel_drop_node(struct morsel_range *range, const struct morsel_node *node)
{
	unsigned int slot;

	for (slot = 0; !node->is_block && slot < MORSEL_FORMAT_ENTRIES; slot++) {
		struct morsel_node child;

		if (!morsel_read_child(range, node, slot, &child) && child.page)
			morsel_drop_node(range, &child);
	}
	morsel_free_pages(range, node->page, morsel_node_pages(node));
}

/**
 * morsel_tree_drop - free all pages of a tree that nothing leads to
 * @range: the range
 * @root: payload of what was its root word
 *
 * Context: may sleep; nothing reads the tree.
 */
void morsel_tree_drop(struct morsel_range *range, u64 root)
{
	struct morsel_node node;

	morsel_root_node(0, root, &node);
	if (node.page && !morsel_node_problem(&node, range->medium->pages))
		morsel_drop_node(range, &node);
}

struct morsel_cut {
	struct morsel_range *range;
	u64 word;
	u64 *root;
	u64 first;
	u64 end;
	u64 pages;
};

static u64 morsel_count_blocks(const struct morsel_range *range, const struct morsel_node *node)
{
	unsigned int slot;
	u64 pages = 0;

	if (node->is_block)
		return morsel_node_pages(node);
	for (slot = 0; slot < MORSEL_FORMAT_ENTRIES; slot++) {
		struct morsel_node child;

		if (!morsel_read_child(range, node, slot, &child) && child.page)
			pages += morsel_count_blocks(range, &child);
	}
	return pages;
}

static int morsel_remove_node(struct morsel_cut *cut, const struct morsel_node *node)
{
	u64 payload = node->word == cut->word ? *cut->root & MORSEL_SEALS_MASK : 0;
	int err = morsel_publish_word(cut->range, node->word, payload);

	if (err)
		return err;
	if (node->word == cut->word)
		WRITE_ONCE(*cut->root, payload);
	/* In a recovery they may belong to something else. */
	if (!cut->range->owned)
		return 0;
	cut->pages += morsel_count_blocks(cut->range, node);
	morsel_drop_node(cut->range, node);
	return 0;
}

/* Remove a node that is in the range as a whole, or what of it is. */
static int morsel_cut_node(struct morsel_cut *cut, const struct morsel_node *node)
{
	u64 span = morsel_span_of(node->level), below;
	unsigned int slot;
	int err = 0;

	if (node->index >= cut->end || node->index + span <= cut->first)
		return 0;
	if (node->index >= cut->first && node->index + span <= cut->end)
		return morsel_remove_node(cut, node);
	if (node->is_block)
		return 0;
	below = morsel_span_of(node->level - 1);
	slot = cut->first > node->index ? (cut->first - node->index) / below : 0;
	for (; !err && slot < MORSEL_FORMAT_ENTRIES; slot++) {
		struct morsel_node child;

		if (node->index + slot * below >= cut->end)
			break;
		err = morsel_read_child(cut->range, node, slot, &child);
		if (!err && child.page)
			err = morsel_cut_node(cut, &child);
	}
	return err;
}

/**
 * morsel_tree_cut - remove the pages of a range of a tree
 * @range: the range
 * @word: place of the root word
 * @root: payload of the root word; set to the new one
 * @first: index of the first page
 * @end: index behind the last page
 * @pages: set to the number of pages of content that were removed
 *
 * Blocks that are partly in the range stay.
 *
 * Context: may sleep; changes of the tree are serialised, and nothing reads it.
 * Return: 0, -EUCLEAN for a damaged word, or -EIO.
 */
int morsel_tree_cut(struct morsel_range *range, u64 word, u64 *root, u64 first, u64 end,
		    u64 *pages)
{
	struct morsel_cut cut = {
		.range = range,
		.word = word,
		.root = root,
		.first = first,
		.end = end,
	};
	struct morsel_node node;
	int err = 0;

	morsel_root_node(word, *root, &node);
	if (node.page && morsel_node_problem(&node, range->medium->pages))
		err = -EUCLEAN;
	else if (node.page)
		err = morsel_cut_node(&cut, &node);
	*pages = cut.pages;
	return err;
}

/* Finding */

static bool morsel_search_node(const struct morsel_range *range, const struct morsel_node *node,
			       u64 page, u64 *index)
{
	bool is_found = false;
	unsigned int slot;

	if (node->is_block) {
		*index = node->index + (page - node->page);
		return page >= node->page && page - node->page < morsel_node_pages(node);
	}
	for (slot = 0; !is_found && slot < MORSEL_FORMAT_ENTRIES; slot++) {
		struct morsel_node child;

		if (!morsel_read_child(range, node, slot, &child) && child.page)
			is_found = morsel_search_node(range, &child, page, index);
	}
	return is_found;
}

/**
 * morsel_tree_find - find which page of a file a page of the range is
 * @range: the range
 * @root: payload of the root word of the file
 * @page: the page of the range
 * @index: set to its index in the file
 *
 * Reads all tables. What is below one that cannot be read is not found.
 *
 * Context: may sleep; nothing is removed from the tree.
 * Return: false if it is none of its blocks.
 */
bool morsel_tree_find(const struct morsel_range *range, u64 root, u64 page, u64 *index)
{
	struct morsel_node node;

	morsel_root_node(0, root, &node);
	return node.page && !morsel_node_problem(&node, range->medium->pages) &&
	       morsel_search_node(range, &node, page, index);
}
