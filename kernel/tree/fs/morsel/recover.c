// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: ends what a crash interrupted, as a survey has found it.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/stat.h>

#include "range.h"

/* The old names of renames: the flags stay, and overrule them. */
static int morsel_recover_old_names(struct morsel_range *range,
				    const struct morsel_survey *survey)
{
	int err = 0;
	u64 i;

	for (i = 0; !err && i < survey->nr_entries; i++) {
		const struct morsel_entry *target = &survey->entries[i];
		u64 at;

		if (!target->is_pending)
			continue;
		at = morsel_slot_at(&survey->name_slots, target->from - 1);
		if (at)
			err = morsel_set_word(range, at + MORSEL_NAME_INODE, target->other);
	}
	range->medium->fence(range->medium);
	return err;
}

/* The flags. Nothing depends on the order from here on. */
static int morsel_recover_flags(struct morsel_range *range, const struct morsel_survey *survey)
{
	int err = 0;
	u64 i;

	for (i = 0; !err && i < survey->nr_entries; i++)
		if (survey->entries[i].is_pending)
			err = morsel_set_word(range, survey->entries[i].at + MORSEL_NAME_INODE,
					      survey->entries[i].inode);
	return err;
}

/* Remove what lies beyond the end of an open morsel; its pages may belong to others. */
static int morsel_recover_end(struct morsel_range *range, struct morsel_record *record)
{
	u64 end = (record->size + MORSEL_FORMAT_PAGE - 1) >> MORSEL_FORMAT_SHIFT, pages;

	if (record->root & MORSEL_ROOT_SEALED)
		return 0;
	return morsel_tree_cut(range, record->at + MORSEL_INODE_ROOT, &record->root, end,
			       U64_MAX, &pages);
}

static int morsel_recover_inodes(struct morsel_range *range, const struct morsel_survey *survey)
{
	int err = 0;
	u64 i;

	for (i = 0; !err && i < survey->nr_records; i++) {
		struct morsel_record *record = &survey->records[i];

		if (!record->links && record->number != MORSEL_ROOT_DIRECTORY)
			err = morsel_set_word(range, record->at + MORSEL_INODE_MODE, 0);
		else if (S_ISREG(record->mode))
			err = morsel_recover_end(range, record);
	}
	return err;
}

/**
 * morsel_recover - end what a crash interrupted
 * @survey: a survey without damage; it is out of date afterwards
 *
 * A crash on the way leaves what another recovery ends.
 *
 * Context: may sleep; nothing else uses the range.
 * Return: 0, -EUCLEAN for a word that was damaged meanwhile, or -EIO.
 */
int morsel_recover(struct morsel_survey *survey)
{
	struct morsel_range range = { .medium = survey->medium };
	int err = morsel_recover_old_names(&range, survey) ?:
		  morsel_recover_flags(&range, survey) ?:
		  morsel_recover_inodes(&range, survey);

	range.medium->fence(range.medium);
	return err;
}
