// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of the inodes and names of a range of persistent morsels.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/bits.h>
#include <linux/bsearch.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "range.h"

/* Slots */

static unsigned int morsel_slots_per_page(const struct morsel_slots *slots)
{
	return MORSEL_FORMAT_PAGE / slots->size;
}

static int morsel_compare_index(const void *key, const void *element)
{
	u64 index = *(const u64 *)key;
	const struct morsel_slot_page *page = element;

	return index < page->index ? -1 : index > page->index;
}

static struct morsel_slot_page *morsel_page_of(const struct morsel_slots *slots, u64 number)
{
	u64 index = number / morsel_slots_per_page(slots);

	return bsearch(&index, slots->pages, slots->nr, sizeof(*slots->pages),
		       morsel_compare_index);
}

static u64 morsel_place_in(const struct morsel_slots *slots, const struct morsel_slot_page *page,
			   u64 number)
{
	return (page->page << MORSEL_FORMAT_SHIFT) +
	       number % morsel_slots_per_page(slots) * slots->size;
}

/**
 * morsel_slot_at - place of a slot
 * @slots: the inodes or names
 * @number: number of the slot
 *
 * Context: range->slots is held, or nothing changes.
 * Return: the place, 0 if its page does not exist.
 */
u64 morsel_slot_at(const struct morsel_slots *slots, u64 number)
{
	const struct morsel_slot_page *page = morsel_page_of(slots, number);

	return page ? morsel_place_in(slots, page, number) : 0;
}

/**
 * morsel_use_slot - note that a slot is not free
 * @slots: the inodes or names
 * @number: number of the slot, which exists
 *
 * Context: range->slots is held, or nothing else uses @slots.
 */
void morsel_use_slot(struct morsel_slots *slots, u64 number)
{
	morsel_page_of(slots, number)->used |= 1U << number % morsel_slots_per_page(slots);
}

static void morsel_free_slot(struct morsel_slots *slots, u64 number)
{
	struct morsel_slot_page *page = morsel_page_of(slots, number);

	page->used &= ~(1U << number % morsel_slots_per_page(slots));
	slots->first = min(slots->first, (u64)(page - slots->pages));
}

/* Note a new page. The slot 0 of the inodes is never used. */
static void morsel_insert_page(struct morsel_slots *slots, u64 at, u64 page)
{
	struct morsel_slot_page *new = &slots->pages[at];

	memmove(new + 1, new, (slots->nr++ - at) * sizeof(*new));
	*new = (struct morsel_slot_page){ .index = at, .page = page };
	slots->first = min(slots->first, at);
}

/* Add a page of slots, at the first index that has none. */
static int morsel_add_slots(struct morsel_range *range, struct morsel_slots *slots)
{
	struct morsel_node block = {};
	int err = morsel_make_room((void **)&slots->pages, slots->nr, sizeof(*slots->pages));

	if (err)
		return err;
	while (block.index < slots->nr && slots->pages[block.index].index == block.index)
		block.index++;
	err = morsel_take_pages(range, 0, &block.page);
	if (err)
		return err;
	err = range->medium->zero(range->medium, block.page, 1) ?:
	      morsel_tree_add(range, slots->word, &slots->root, &block);
	if (err)
		morsel_free_pages(range, block.page, 1);
	else
		morsel_insert_page(slots, block.index, block.page);
	return err;
}

/* Take a free slot. */
static int morsel_take_slot(struct morsel_range *range, struct morsel_slots *slots,
			    u64 *number, u64 *at)
{
	unsigned int slot, per_page = morsel_slots_per_page(slots);
	const u32 all = U32_MAX >> (32 - per_page);
	struct morsel_slot_page *page;
	int err;

	while (slots->first < slots->nr && slots->pages[slots->first].used == all)
		slots->first++;
	if (slots->first == slots->nr) {
		err = morsel_add_slots(range, slots);
		if (err)
			return err;
	}
	page = &slots->pages[slots->first];
	for (slot = 0; page->used >> slot & 1; slot++)
		;
	page->used |= 1U << slot;
	*number = page->index * per_page + slot;
	*at = morsel_place_in(slots, page, *number);
	return 0;
}

/* Inodes */

static u64 morsel_next_generation(const struct morsel_range *range, u64 at)
{
	u64 payload;
	u8 bytes[8];

	at += MORSEL_INODE_GENERATION;
	if (range->medium->read(range->medium, at, bytes, sizeof(bytes)) ||
	    !morsel_decode(at, get_unaligned_le64(bytes), &payload))
		payload = 0;
	return (u32)(payload + 1);
}

/* All words of a new inode except its mode, which makes it one. A fence follows. */
static int morsel_store_fields(struct morsel_range *range, const struct morsel_record *record)
{
	const u64 at = record->at;

	return morsel_set_word(range, at + MORSEL_INODE_UID, record->uid) ?:
	       morsel_set_word(range, at + MORSEL_INODE_GID, record->gid) ?:
	       morsel_set_word(range, at + MORSEL_INODE_SIZE, record->size) ?:
	       morsel_set_word(range, at + MORSEL_INODE_ROOT, record->root) ?:
	       morsel_set_word(range, at + MORSEL_INODE_XATTR, record->xattr) ?:
	       morsel_set_word(range, at + MORSEL_INODE_MTIME, record->mtime) ?:
	       morsel_set_word(range, at + MORSEL_INODE_CTIME, record->ctime) ?:
	       morsel_set_word(range, at + MORSEL_INODE_RDEV, record->rdev) ?:
	       morsel_set_word(range, at + MORSEL_INODE_GENERATION, record->generation);
}

/**
 * morsel_store_inode - store a new inode, which has no name yet
 * @range: the range
 * @record: the inode; number, place and generation are set
 *
 * Context: may sleep.
 * Return: 0, -ENOSPC, -ENOMEM, -EUCLEAN or -EIO. Nothing is stored then.
 */
int morsel_store_inode(struct morsel_range *range, struct morsel_record *record)
{
	int err;

	mutex_lock(&range->slots);
	err = morsel_take_slot(range, &range->inodes, &record->number, &record->at);
	if (err)
		goto out;
	record->generation = morsel_next_generation(range, record->at);
	err = morsel_store_fields(range, record);
	range->medium->fence(range->medium);
	err = err ?: morsel_publish_word(range, record->at + MORSEL_INODE_MODE, record->mode);
	if (err)
		morsel_free_slot(&range->inodes, record->number);
out:
	mutex_unlock(&range->slots);
	return err;
}

/**
 * morsel_remove_inode - remove an inode that has no name
 * @range: the range
 * @number: its number
 *
 * Context: may sleep.
 * Return: 0, then its pages may be freed, or -EIO.
 */
int morsel_remove_inode(struct morsel_range *range, u64 number)
{
	int err;

	mutex_lock(&range->slots);
	err = morsel_publish_word(range, morsel_slot_at(&range->inodes, number) +
				  MORSEL_INODE_MODE, 0);
	if (!err)
		morsel_free_slot(&range->inodes, number);
	mutex_unlock(&range->slots);
	return err;
}

/* Names */

/* Store directory and text of a name to a free slot. A fence follows. */
static int morsel_store_text(struct morsel_range *range, u64 at, u64 parent, const char *text,
			     unsigned int length)
{
	u64 payload = length | (u64)morsel_sum(text, length) << 8;

	return morsel_set_word(range, at + MORSEL_NAME_PARENT, parent) ?:
	       morsel_set_word(range, at + MORSEL_NAME_LENGTH, payload) ?:
	       range->medium->write(range->medium, at + MORSEL_NAME_TEXT, text, length);
}

/**
 * morsel_store_name - store a new name
 * @range: the range
 * @entry: inode, directory and text of the name; the slot is set
 *
 * Context: may sleep; the directory is locked.
 * Return: 0, -ENOSPC, -ENOMEM, -EUCLEAN or -EIO. Nothing is stored then.
 */
int morsel_store_name(struct morsel_range *range, struct morsel_entry *entry)
{
	int err;

	mutex_lock(&range->slots);
	err = morsel_take_slot(range, &range->names, &entry->slot, &entry->at);
	if (err)
		goto out;
	err = morsel_store_text(range, entry->at, entry->parent, entry->text, entry->length);
	range->medium->fence(range->medium);
	err = err ?: morsel_publish_word(range, entry->at + MORSEL_NAME_INODE, entry->inode);
	if (err)
		morsel_free_slot(&range->names, entry->slot);
out:
	mutex_unlock(&range->slots);
	return err;
}

/**
 * morsel_remove_name - remove a name
 * @range: the range
 * @slot: its slot
 *
 * Context: may sleep; the directory is locked.
 * Return: 0 or -EIO.
 */
int morsel_remove_name(struct morsel_range *range, u64 slot)
{
	int err;

	mutex_lock(&range->slots);
	err = morsel_publish_word(range, morsel_slot_at(&range->names, slot) +
				  MORSEL_NAME_INODE, 0);
	if (!err)
		morsel_free_slot(&range->names, slot);
	mutex_unlock(&range->slots);
	return err;
}

/* The new name, without its inode. */
static int morsel_store_target(struct morsel_range *range, const struct morsel_rename *rename,
			       u64 at, bool is_new)
{
	int err = is_new ? morsel_store_text(range, at, rename->parent, rename->text,
					     rename->length) : 0;

	err = err ?: morsel_set_word(range, at + MORSEL_NAME_FROM, rename->from + 1) ?:
	      morsel_set_word(range, at + MORSEL_NAME_OTHER, rename->other);
	range->medium->fence(range->medium);
	return err;
}

/* The three stores of a rename. Until the last one the new name overrules the old one. */
static int morsel_move_name(struct morsel_range *range, const struct morsel_rename *rename,
			    u64 at)
{
	u64 from = morsel_slot_at(&range->names, rename->from);

	return morsel_publish_word(range, at + MORSEL_NAME_INODE,
				   rename->inode | MORSEL_PENDING) ?:
	       morsel_publish_word(range, from + MORSEL_NAME_INODE, rename->other) ?:
	       morsel_publish_word(range, at + MORSEL_NAME_INODE, rename->inode);
}

/**
 * morsel_store_rename - rename, replace or exchange
 * @range: the range
 * @rename: the slots; the target is set if it is new
 *
 * Context: may sleep; both directories are locked.
 * Return: 0, -ENOSPC, -ENOMEM, -EUCLEAN, or -EIO. Before an -EIO a part may be stored.
 */
int morsel_store_rename(struct morsel_range *range, struct morsel_rename *rename)
{
	bool is_new = rename->target == MORSEL_NO_SLOT;
	int err = 0;
	u64 at;

	mutex_lock(&range->slots);
	if (is_new)
		err = morsel_take_slot(range, &range->names, &rename->target, &at);
	else
		at = morsel_slot_at(&range->names, rename->target);
	if (err)
		goto out;
	err = morsel_store_target(range, rename, at, is_new);
	if (err && is_new)
		morsel_free_slot(&range->names, rename->target);
	err = err ?: morsel_move_name(range, rename, at);
	if (!err && !rename->other)
		morsel_free_slot(&range->names, rename->from);
out:
	mutex_unlock(&range->slots);
	return err;
}
