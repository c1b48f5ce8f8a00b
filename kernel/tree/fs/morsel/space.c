// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words and free pages of a range of persistent morsels.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/find.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/unaligned.h>

#include "range.h"

/**
 * morsel_set_word - store a word, and flush it
 * @range: the range
 * @at: its place
 * @payload: its payload
 *
 * Context: what serialises the owner of the word; a fence follows.
 * Return: 0 or -EIO.
 */
int morsel_set_word(struct morsel_range *range, u64 at, u64 payload)
{
	u8 bytes[8];

	put_unaligned_le64(morsel_encode(at, payload), bytes);
	return range->medium->write(range->medium, at, bytes, sizeof(bytes));
}

/**
 * morsel_publish_word - store a word, and make it persistent
 * @range: the range
 * @at: its place
 * @payload: its payload
 *
 * Context: what serialises the owner of the word; what it leads to is persistent.
 * Return: 0 or -EIO.
 */
int morsel_publish_word(struct morsel_range *range, u64 at, u64 payload)
{
	int err = morsel_set_word(range, at, payload);

	if (!err)
		range->medium->fence(range->medium);
	return err;
}

/* Free pages */

/* A page that is pinned is not reused before the end of the pin. */
static bool morsel_any_is_held(const struct morsel_range *range, u64 page, u64 pages)
{
	const struct morsel_medium *medium = range->medium;

	return medium->is_held && medium->is_held(medium, page, pages);
}

/* Return: the first page of a free block from a page on; 0 if there is none. */
static u64 morsel_find_free(const struct morsel_range *range, u64 page, u64 pages)
{
	const u64 end = range->medium->pages;

	for (;;) {
		u64 busy;

		page = round_up(find_next_zero_bit(range->owned, end, page), pages);
		if (page + pages > end)
			return 0;
		busy = find_next_bit(range->owned, page + pages, page);
		if (busy < page + pages)
			page = busy + 1;
		else if (morsel_any_is_held(range, page, pages))
			page += pages;
		else
			return page;
	}
}

/**
 * morsel_take_pages - take an aligned block of free pages
 * @range: the range
 * @level: it has 512^level pages, with a level of 0 or 1
 * @page: set to the first page
 *
 * Context: may sleep.
 * Return: 0 or -ENOSPC.
 */
int morsel_take_pages(struct morsel_range *range, unsigned int level, u64 *page)
{
	u64 pages = morsel_span_of(level), *next = &range->next[level];

	mutex_lock(&range->space);
	*page = morsel_find_free(range, *next, pages);
	/* Pages before that may have been pinned. */
	if (!*page)
		*page = morsel_find_free(range, 0, pages);
	if (*page) {
		bitmap_set(range->owned + *page / BITS_PER_LONG, *page % BITS_PER_LONG, pages);
		range->used += pages;
		*next = *page + pages;
	}
	mutex_unlock(&range->space);
	return *page ? 0 : -ENOSPC;
}

/**
 * morsel_free_pages - return pages
 * @range: the range
 * @page: the first page; 0 for none
 * @pages: number of pages
 *
 * Context: may sleep; nothing persistent leads to them.
 */
void morsel_free_pages(struct morsel_range *range, u64 page, u64 pages)
{
	if (!page)
		return;
	mutex_lock(&range->space);
	bitmap_clear(range->owned + page / BITS_PER_LONG, page % BITS_PER_LONG, pages);
	range->used -= pages;
	range->next[0] = min(range->next[0], page);
	range->next[1] = min(range->next[1], round_down(page, morsel_span_of(1)));
	mutex_unlock(&range->space);
}
