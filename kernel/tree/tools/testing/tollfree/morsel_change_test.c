// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of the changes of a range of persistent morsels: fs/morsel/space.c, tree.c, names.c
 * and recover.c.
 *
 * A store is in the cache until a fence. At each fence, and in the middle of what is between
 * two, a power cut leaves any of these stores. What is left has to be free of damage, and
 * to show, after recovery, what was there before the operation or what it makes. A cut
 * during the recovery changes nothing.
 */

#include <linux/array_size.h>

#include "../../../fs/morsel/format.c"
#include "../../../fs/morsel/survey.c"
#include "../../../fs/morsel/space.c"
#include "../../../fs/morsel/tree.c"
#include "../../../fs/morsel/names.c"
#include "../../../fs/morsel/recover.c"

#include "tap.h"

enum {
	PAGES = 1200,
	INODES = 2,
	NAMES = 3,
	/* Cuts that are tried at a fence. */
	CUTS = 3,
	MOST_STORES = 8192,
	MOST_NAMES = 64,
	OPERATIONS = 400,
};

#define BYTES	(PAGES * MORSEL_FORMAT_PAGE)

/* A unit of 8 bytes that persists as a whole. */
struct stored {
	u64 at;
	u64 value;
};

/* What the processor sees, what persists, and what may. */
static struct image {
	struct morsel_medium medium;
	u8 *bytes;
	u8 *persistent;
	struct stored stores[MOST_STORES];
	unsigned int nr;
	/* Stores that are left before everything is lost. */
	long lives;
} image, crashed;

static bool cuts_are_on;
/* One of N fences, and of N flushes of 8 bytes, is left out; 0 for none. */
static unsigned int fences_left_out, flushes_left_out, calls;
static unsigned long cuts_tried;

/* Random numbers */

static u64 seed = 1;

static u64 any(u64 below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % below;
}

/* The range */

static int read_image(const struct morsel_medium *medium, u64 offset, void *buffer,
		      size_t length)
{
	memcpy(buffer, ((const struct image *)medium)->bytes + offset, length);
	return 0;
}

static bool leave_out(unsigned int every)
{
	return every && ++calls % every == 0;
}

static void note_store(struct image *to, u64 at, u64 value)
{
	put_unaligned_le64(value, to->bytes + at);
	if (to == &image && leave_out(flushes_left_out))
		return;
	if (to->nr == MOST_STORES)
		abort();
	to->stores[to->nr++] = (struct stored){ at, value };
}

static int write_image(const struct morsel_medium *medium, u64 offset, const void *bytes,
		       size_t length)
{
	struct image *to = (struct image *)medium;
	u8 unit[8];

	for (size_t done = 0; done < length; done += 8) {
		memcpy(unit, to->bytes + offset + done, 8);
		memcpy(unit, (const u8 *)bytes + done, min(length - done, (size_t)8));
		if (!to->lives)
			return -EIO;
		to->lives--;
		note_store(to, offset + done, get_unaligned_le64(unit));
	}
	return 0;
}

static int zero_image(const struct morsel_medium *medium, u64 page, u64 pages)
{
	static const u8 zeros[MORSEL_FORMAT_PAGE];
	int err = 0;

	for (; !err && pages--; page++)
		err = write_image(medium, page << MORSEL_FORMAT_SHIFT, zeros, sizeof(zeros));
	return err;
}

static void try_cut(const struct image *from);

static void fence_image(const struct morsel_medium *medium)
{
	struct image *to = (struct image *)medium;

	if (to == &image && cuts_are_on)
		for (int i = 0; i < CUTS; i++)
			try_cut(to);
	if (to == &image && leave_out(fences_left_out))
		return;
	for (unsigned int i = 0; i < to->nr; i++)
		put_unaligned_le64(to->stores[i].value, to->persistent + to->stores[i].at);
	to->nr = 0;
}

static void new_image(struct image *new)
{
	if (!new->bytes) {
		new->bytes = malloc(BYTES);
		new->persistent = malloc(BYTES);
	}
	new->medium = (struct morsel_medium){
		.read = read_image,
		.write = write_image,
		.zero = zero_image,
		.fence = fence_image,
		.pages = PAGES,
	};
	new->nr = 0;
	new->lives = -1;
}

static void put_word(u64 at, u64 payload)
{
	put_unaligned_le64(morsel_encode(at, payload), image.bytes + at);
}

static void put_super(u8 *page)
{
	memcpy(page, "MORSELFS", 8);
	put_unaligned_le32(MORSEL_FORMAT_VERSION, page + 8);
	put_unaligned_le32(MORSEL_FORMAT_SHIFT, page + 12);
	put_unaligned_le64(PAGES, page + 48);
	put_unaligned_le32(morsel_sum(page, 252), page + 252);
}

/* An empty range. */
static void make_range(void)
{
	new_image(&image);
	memset(image.bytes, 0, BYTES);
	put_super(image.bytes);
	put_super(image.bytes + MORSEL_FORMAT_PAGE);
	put_word(MORSEL_INODES, INODES | 1ULL << 43);
	put_word(MORSEL_NAMES, NAMES | 1ULL << 43);
	put_word((INODES << MORSEL_FORMAT_SHIFT) + MORSEL_INODE_SLOT, 0040755);
	memcpy(image.persistent, image.bytes, BYTES);
}

/* What a range shows */

struct shown {
	u64 parent;
	u64 inode;
	u64 size;
	u64 pages;
	char text[16];
};

struct listing {
	struct shown names[MOST_NAMES];
	u64 nr;
};

static int compare_shown(const void *one, const void *other)
{
	const struct shown *a = one, *b = other;

	return a->parent != b->parent ? (a->parent < b->parent ? -1 : 1) :
					strcmp(a->text, b->text);
}

static void list(const struct morsel_survey *survey, struct listing *listing)
{
	*listing = (struct listing){};
	for (u64 i = 0; i < survey->nr_names && i < MOST_NAMES; i++) {
		const struct morsel_entry *entry = survey->names[i];
		const struct morsel_record *record = morsel_survey_record(survey, entry->inode);
		struct shown *shown = &listing->names[listing->nr++];

		shown->parent = entry->parent;
		shown->inode = entry->inode;
		shown->size = record->size;
		shown->pages = record->pages;
		snprintf(shown->text, sizeof(shown->text), "%.15s", entry->text);
	}
	qsort(listing->names, listing->nr, sizeof(struct shown), compare_shown);
}

static bool is_same(const struct listing *one, const struct listing *other)
{
	return !memcmp(one, other, sizeof(*one));
}

/* Recover a range, and list it. Return: whether it is right. */
static bool recover(struct image *from, struct listing *listing)
{
	struct morsel_survey survey;
	bool is_right = !morsel_survey(&survey, &from->medium);

	if (!is_right)
		printf("# %s at %#llx\n", survey.problem, (unsigned long long)survey.where);
	if (is_right && survey.leftovers)
		is_right = !morsel_recover(&survey);
	morsel_survey_free(&survey);
	if (!is_right)
		return false;
	is_right = !morsel_survey(&survey, &from->medium) && !survey.leftovers;
	if (is_right)
		list(&survey, listing);
	morsel_survey_free(&survey);
	return is_right;
}

/* Power cuts */

static struct listing before, *states;
static unsigned int nr_states;
static bool cut_failed;

/* What a cut leaves: a unit has its last persistent value, or any later one, in order. */
static void leave(const struct image *from, struct image *to)
{
	new_image(to);
	memcpy(to->bytes, from->persistent, BYTES);
	for (unsigned int i = 0; i < from->nr; i++)
		if (any(2))
			put_unaligned_le64(from->stores[i].value, to->bytes + from->stores[i].at);
	memcpy(to->persistent, to->bytes, BYTES);
}

/* A recovery that is cut itself, after some stores. */
static void cut_recovery(struct image *from)
{
	static struct image second;
	struct morsel_survey survey;

	from->lives = any(6);
	if (!morsel_survey(&survey, &from->medium))
		morsel_recover(&survey);
	morsel_survey_free(&survey);
	leave(from, &second);
	memcpy(from->bytes, second.bytes, BYTES);
	memcpy(from->persistent, second.bytes, BYTES);
	from->nr = 0;
	from->lives = -1;
}

/* The states that cuts have left are compared once the operation is done. */
static void try_cut(const struct image *from)
{
	struct listing listing;

	cuts_tried++;
	leave(from, &crashed);
	if (any(2))
		cut_recovery(&crashed);
	if (!recover(&crashed, &listing)) {
		cut_failed = true;
		return;
	}
	if (is_same(&listing, &before))
		return;
	states = realloc(states, (nr_states + 1) * sizeof(*states));
	states[nr_states++] = listing;
}

/* Operations */

static struct morsel_range range;

static void mount_range(void)
{
	struct morsel_survey survey;

	if (morsel_survey(&survey, &image.medium))
		abort();
	range = (struct morsel_range){
		.medium = &image.medium,
		.owned = survey.owned,
		.used = survey.nr_owned,
		.inodes = survey.inode_slots,
		.names = survey.name_slots,
	};
	survey.owned = NULL;
	survey.inode_slots.pages = NULL;
	survey.name_slots.pages = NULL;
	morsel_use_slot(&range.inodes, 0);
	for (u64 i = 0; i < survey.nr_records; i++)
		morsel_use_slot(&range.inodes, survey.records[i].number);
	for (u64 i = 0; i < survey.nr_names; i++)
		morsel_use_slot(&range.names, survey.names[i]->slot);
	morsel_survey_free(&survey);
}

static void unmount_range(void)
{
	free(range.owned);
	free(range.inodes.pages);
	free(range.names.pages);
}

/* What the caller of the functions keeps in memory. */
static struct file {
	struct morsel_record record;
	u64 slot;
	u64 second_slot;
	bool is_there;
	bool has_second;
} files[12];

static unsigned int nr_texts;

static int store_name(u64 inode, u64 *slot)
{
	struct morsel_entry entry = { .inode = inode, .parent = MORSEL_ROOT_DIRECTORY };
	int err;

	entry.length = sprintf(entry.text, "n%u", nr_texts++);
	err = morsel_store_name(&range, &entry);
	*slot = entry.slot;
	return err;
}

static int do_create(struct file *file)
{
	int err;

	*file = (struct file){ .record = { .mode = 0100644, .size = 600 << 12 } };
	err = morsel_store_inode(&range, &file->record) ?:
	      store_name(file->record.number, &file->slot);
	file->is_there = !err;
	return err;
}

static int do_link(struct file *file)
{
	int err = file->has_second ? 0 : store_name(file->record.number, &file->second_slot);

	file->has_second |= !err;
	return err;
}

static int do_unlink(struct file *file)
{
	int err;

	if (file->has_second) {
		file->has_second = false;
		return morsel_remove_name(&range, file->second_slot);
	}
	err = morsel_remove_name(&range, file->slot) ?:
	      morsel_remove_inode(&range, file->record.number);
	morsel_tree_drop(&range, file->record.root);
	file->is_there = false;
	return err;
}

static int do_add(struct file *file)
{
	unsigned int level = any(8) == 0;
	struct morsel_node block = {
		.index = level ? 0 : any(600), .level = level, .is_block = true,
	};
	int err = morsel_take_pages(&range, level, &block.page);

	if (err)
		return err;
	/* The content of a block is of no interest here. */
	err = morsel_tree_add(&range, file->record.at + MORSEL_INODE_ROOT, &file->record.root,
			      &block);
	if (err)
		morsel_free_pages(&range, block.page, morsel_node_pages(&block));
	return err == -EEXIST ? 0 : err;
}

static int do_cut(struct file *file)
{
	u64 first = any(600), pages;

	return morsel_tree_cut(&range, file->record.at + MORSEL_INODE_ROOT, &file->record.root,
			       first, first + 1 + any(400), &pages);
}

static int do_rename(struct file *file, struct file *other)
{
	struct morsel_rename rename = {
		.inode = file->record.number,
		.from = file->slot,
		.target = MORSEL_NO_SLOT,
		.parent = MORSEL_ROOT_DIRECTORY,
		.text = "renamed",
		.length = 7,
	};
	char text[16];
	int err;

	rename.length = sprintf(text, "r%u", nr_texts++);
	rename.text = text;
	if (other != file && other->is_there && !other->has_second)
		rename.target = other->slot;
	if (rename.target != MORSEL_NO_SLOT && any(2))
		rename.other = other->record.number;
	err = morsel_store_rename(&range, &rename);
	if (err)
		return err;
	if (rename.other)
		other->slot = file->slot;
	file->slot = rename.target;
	if (rename.target == MORSEL_NO_SLOT || rename.other || other == file ||
	    !other->is_there || other->has_second)
		return 0;
	other->is_there = false;
	err = morsel_remove_inode(&range, other->record.number);
	morsel_tree_drop(&range, other->record.root);
	return err;
}

static int do_any(void)
{
	struct file *file = &files[any(ARRAY_SIZE(files))];

	if (!file->is_there)
		return do_create(file);
	switch (any(12)) {
	case 0:
	case 1:
		return do_unlink(file);
	case 2:
	case 3:
		return do_rename(file, &files[any(ARRAY_SIZE(files))]);
	case 4:
		return do_link(file);
	case 5:
	case 6:
		return do_cut(file);
	default:
		return do_add(file);
	}
}

/*
 * Whether cuts have shown the state before or after only. A cut of a range of a tree
 * shows any part of it.
 */
static bool states_are_right(const struct listing *after)
{
	for (unsigned int i = 0; i < nr_states; i++) {
		struct listing *state = &states[i];

		for (u64 j = 0; j < state->nr && state->nr == after->nr; j++)
			if (state->names[j].pages > after->names[j].pages &&
			    state->names[j].pages < before.names[j].pages)
				state->names[j].pages = after->names[j].pages;
		if (!is_same(state, after))
			return false;
	}
	return true;
}

/* Run operations with cuts. Return: whether all is right. */
static bool run_operations(unsigned int operations)
{
	struct listing after;
	bool is_right = true;

	make_range();
	mount_range();
	memset(files, 0, sizeof(files));
	cut_failed = false;
	before = (struct listing){};
	while (is_right && operations--) {
		int err;

		nr_states = 0;
		cuts_are_on = true;
		err = do_any();
		cuts_are_on = false;
		new_image(&crashed);
		memcpy(crashed.bytes, image.bytes, BYTES);
		is_right = (!err || err == -ENOSPC) && recover(&crashed, &after) &&
			   !cut_failed && states_are_right(&after);
		before = after;
	}
	unmount_range();
	return is_right;
}

/* Tests */

static void power_cuts_show_before_or_after(void)
{
	EXPECT_EQ(run_operations(OPERATIONS), true);
	printf("# %lu cuts\n", cuts_tried);
	EXPECT_EQ(cuts_tried > 2000, true);
}

/* The test itself: cuts show what misses some fences, or flushes. */
static void missing_fences_are_seen(void)
{
	fences_left_out = 25;
	EXPECT_EQ(run_operations(OPERATIONS), false);
	fences_left_out = 0;
}

static void missing_flushes_are_seen(void)
{
	flushes_left_out = 301;
	EXPECT_EQ(run_operations(OPERATIONS), false);
	flushes_left_out = 0;
}

/* The pages that are not free are those that a survey reaches. */
static void no_page_is_lost(void)
{
	struct morsel_survey survey;

	make_range();
	mount_range();
	memset(files, 0, sizeof(files));
	for (int i = 0; i < 3000; i++)
		if (do_any() == -EIO)
			abort();
	EXPECT_EQ(morsel_survey(&survey, &image.medium), 0);
	EXPECT_EQ(survey.nr_owned, range.used);
	EXPECT_EQ(bitmap_weight(range.owned, PAGES), range.used);
	EXPECT_EQ(memcmp(survey.owned, range.owned, PAGES / 8), 0);
	morsel_survey_free(&survey);
	unmount_range();
}

static void a_full_range_changes_nothing(void)
{
	struct listing full, after;
	u64 page, used;
	int err;

	make_range();
	mount_range();
	memset(files, 0, sizeof(files));
	EXPECT_EQ(do_create(&files[0]), 0);
	while (!morsel_take_pages(&range, 0, &page))
		;
	used = range.used;
	EXPECT_EQ(recover(&image, &full), true);
	for (unsigned int i = 0; i < 100; i++) {
		err = store_name(files[0].record.number, &files[0].second_slot);
		if (err)
			break;
		EXPECT_EQ(recover(&image, &full), true);
	}
	EXPECT_EQ(err, (unsigned long long)-ENOSPC);
	EXPECT_EQ(do_add(&files[0]), (unsigned long long)-ENOSPC);
	EXPECT_EQ(recover(&image, &after), true);
	EXPECT_EQ(is_same(&full, &after), true);
	EXPECT_EQ(range.used, used);
	unmount_range();
}

/* One page is free, and the tables need more. */
static void tables_without_space_are_freed(void)
{
	struct morsel_node block = { .index = 513, .is_block = true };
	u64 page, taken[3], i;

	make_range();
	mount_range();
	memset(files, 0, sizeof(files));
	EXPECT_EQ(do_create(&files[0]), 0);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(morsel_take_pages(&range, 0, &taken[i]), 0);
	while (!morsel_take_pages(&range, 0, &page))
		;
	morsel_free_pages(&range, taken[0], 1);
	block.page = taken[1];
	EXPECT_EQ(morsel_tree_add(&range, files[0].record.at + MORSEL_INODE_ROOT,
				  &files[0].record.root, &block), (unsigned long long)-ENOSPC);
	EXPECT_EQ(files[0].record.root, 0);
	EXPECT_EQ(morsel_take_pages(&range, 0, &page), 0);
	EXPECT_EQ(page, taken[0]);
	morsel_free_pages(&range, taken[0], 1);
	morsel_free_pages(&range, taken[2], 1);
	EXPECT_EQ(morsel_tree_add(&range, files[0].record.at + MORSEL_INODE_ROOT,
				  &files[0].record.root, &block), 0);
	unmount_range();
}

/* Pages of both, and of none. */
static void pages_of_blocks_are_found(void)
{
	struct morsel_node one = { .index = 5, .is_block = true };
	struct morsel_node large = { .index = 2 * 512 * 512ULL, .level = 1, .is_block = true };
	u64 word, root = 0, index, other;

	make_range();
	mount_range();
	memset(files, 0, sizeof(files));
	EXPECT_EQ(do_create(&files[0]), 0);
	word = files[0].record.at + MORSEL_INODE_ROOT;
	EXPECT_EQ(morsel_take_pages(&range, 1, &large.page), 0);
	EXPECT_EQ(morsel_take_pages(&range, 0, &one.page), 0);
	EXPECT_EQ(morsel_take_pages(&range, 0, &other), 0);
	EXPECT_EQ(morsel_tree_find(&range, root, one.page, &index), false);
	EXPECT_EQ(morsel_tree_add(&range, word, &root, &one), 0);
	EXPECT_EQ(morsel_tree_add(&range, word, &root, &large), 0);
	EXPECT_EQ(morsel_tree_find(&range, root, one.page, &index), true);
	EXPECT_EQ(index, 5);
	EXPECT_EQ(morsel_tree_find(&range, root, large.page, &index), true);
	EXPECT_EQ(index, large.index);
	EXPECT_EQ(morsel_tree_find(&range, root, large.page + 511, &index), true);
	EXPECT_EQ(index, large.index + 511);
	EXPECT_EQ(morsel_tree_find(&range, root, other, &index), false);
	EXPECT_EQ(morsel_tree_find(&range, root, large.page - 1, &index), false);
	EXPECT_EQ(morsel_tree_find(&range, root, large.page + 512, &index), false);
	unmount_range();
}

static bool held_is_on;

static bool is_held(const struct morsel_medium *medium, u64 page, u64 pages)
{
	(void)medium;
	return held_is_on && page <= 600 && page + pages > 600;
}

static void held_pages_wait(void)
{
	u64 page, nr = 0;

	make_range();
	mount_range();
	image.medium.is_held = is_held;
	held_is_on = true;
	EXPECT_EQ(morsel_take_pages(&range, 1, &page), (unsigned long long)-ENOSPC);
	while (!morsel_take_pages(&range, 0, &page)) {
		EXPECT_EQ(page != 600, true);
		nr++;
	}
	EXPECT_EQ(nr, PAGES - 4 - 1);
	held_is_on = false;
	EXPECT_EQ(morsel_take_pages(&range, 0, &page), 0);
	EXPECT_EQ(page, 600);
	unmount_range();
}

int main(void)
{
	RUN(power_cuts_show_before_or_after);
	RUN(missing_fences_are_seen);
	RUN(missing_flushes_are_seen);
	RUN(no_page_is_lost);
	RUN(a_full_range_changes_nothing);
	RUN(tables_without_space_are_freed);
	RUN(pages_of_blocks_are_found);
	RUN(held_pages_wait);
	return tap_end();
}
