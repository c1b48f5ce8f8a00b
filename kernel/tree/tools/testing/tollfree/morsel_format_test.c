// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of fs/morsel/format.c and survey.c. The tests of the crate toll-image compare what
 * they read from changed images with what another reader finds.
 */

#include "../../../fs/morsel/format.c"
#include "../../../fs/morsel/survey.c"

#include "tap.h"

enum {
	PAGES = 1600,
	INODES = 2,
	NAMES = 3,
	TABLE = 5,
	LOWER = 6,
	BLOCK = 512,
};

/* A range; its last page ends where the allocation ends. */
static struct image {
	struct morsel_medium medium;
	u8 *bytes;
	u64 broken;
} image;

static int read_image(const struct morsel_medium *medium, u64 offset, void *buffer,
		      size_t length)
{
	const struct image *from = (const struct image *)medium;

	if (from->broken && offset >> MORSEL_FORMAT_SHIFT == from->broken)
		return -EIO;
	memcpy(buffer, from->bytes + offset, length);
	return 0;
}

static void store(u64 offset, u64 value)
{
	put_unaligned_le64(value, image.bytes + offset);
}

static void word(u64 offset, u64 payload)
{
	store(offset, morsel_encode(offset, payload));
}

static u64 page_at(u64 page)
{
	return page << MORSEL_FORMAT_SHIFT;
}

static u64 root_of(u64 page, u64 level, bool is_block, u64 seals)
{
	return page | level << 40 | (u64)is_block << 43 | seals << 44;
}

static u64 inode_at(unsigned int number)
{
	return page_at(INODES) + number * MORSEL_INODE_SLOT;
}

static void inode(unsigned int number, u64 mode, u64 size, u64 root)
{
	word(inode_at(number) + MORSEL_INODE_MODE, mode);
	word(inode_at(number) + MORSEL_INODE_SIZE, size);
	word(inode_at(number) + MORSEL_INODE_ROOT, root);
}

static u64 name_at(unsigned int slot)
{
	return page_at(NAMES) + slot * MORSEL_NAME_SLOT;
}

static void name(unsigned int slot, u64 inode, u64 parent, const char *text)
{
	u64 at = name_at(slot), length = strlen(text);

	memcpy(image.bytes + at + MORSEL_NAME_TEXT, text, length);
	word(at + MORSEL_NAME_LENGTH, length | (u64)morsel_sum(text, length) << 8);
	word(at + MORSEL_NAME_PARENT, parent);
	word(at + MORSEL_NAME_INODE, inode);
}

static void pending(unsigned int slot, u64 inode, unsigned int from, u64 other)
{
	word(name_at(slot) + MORSEL_NAME_FROM, from + 1);
	word(name_at(slot) + MORSEL_NAME_OTHER, other);
	word(name_at(slot) + MORSEL_NAME_INODE, inode | MORSEL_PENDING);
}

static void sum(u64 page)
{
	u32 sum = morsel_sum(image.bytes + page_at(page), MORSEL_SUMMED);

	memcpy(image.bytes + page_at(page) + MORSEL_SUMMED, &sum, sizeof(sum));
}

static void super(u64 page)
{
	u8 *at = image.bytes + page_at(page);

	memcpy(at, "MORSELFS", 8);
	store(page_at(page) + 8, MORSEL_FORMAT_VERSION | (u64)MORSEL_FORMAT_SHIFT << 32);
	store(page_at(page) + 48, PAGES);
	sum(page);
}

/* A directory, and in it a sealed morsel of a hole, a page, a block and a page. */
static void make(void)
{
	free(image.bytes);
	image = (struct image){
		.medium = { .read = read_image, .pages = PAGES },
		.bytes = calloc(PAGES, MORSEL_FORMAT_PAGE),
	};
	super(0);
	super(1);
	word(MORSEL_INODES, root_of(INODES, 0, true, 0));
	word(MORSEL_NAMES, root_of(NAMES, 0, true, 0));
	inode(1, S_IFDIR | 0755, 0, 0);
	inode(2, S_IFDIR | 0700, 0, 0);
	inode(3, S_IFREG | 0600, 4 << 20, root_of(TABLE, 2, false, 15));
	name(1, 3, 2, "morsel");
	name(4, 2, 1, "directory");
	word(page_at(TABLE), LOWER);
	word(page_at(TABLE) + 8, BLOCK | BIT_ULL(40));
	word(page_at(LOWER) + 8, 7 | BIT_ULL(40));
	word(page_at(LOWER) + 511 * 8, 1599 | BIT_ULL(40));
}

static struct morsel_survey found;

static int survey(void)
{
	int err = morsel_survey(&found, &image.medium);

	morsel_survey_free(&found);
	return err;
}

/* Whether the survey fails for this reason. */
static bool has_problem(const char *problem)
{
	bool is_it = survey() == -EUCLEAN && !strcmp(found.problem, problem);

	if (!is_it)
		printf("# not \"%s\" but \"%s\"\n", problem, found.problem);
	make();
	return is_it;
}

static void words_belong_to_their_place(void)
{
	u64 payload;

	EXPECT_EQ(morsel_encode(4096, 0), 0);
	EXPECT_EQ(morsel_decode(4096, 0, &payload), true);
	EXPECT_EQ(morsel_decode(4096, morsel_encode(4096, 5), &payload), true);
	EXPECT_EQ(payload, 5);
	EXPECT_EQ(morsel_decode(4104, morsel_encode(4096, 5), &payload), false);
	EXPECT_EQ(morsel_decode(4096, 1ULL << 48, &payload), false);
	/* The check values of the catalogue of CRCs. */
	EXPECT_EQ(crc_t10dif_generic(0, (const u8 *)"123456789", 9), 0xd0db);
	EXPECT_EQ(morsel_sum("123456789", 9), 0xe3069283);
}

static void a_range_is_read(void)
{
	make();
	EXPECT_EQ(morsel_survey(&found, &image.medium), 0);
	EXPECT_EQ(found.nr_records, 3);
	EXPECT_EQ(found.nr_names, 2);
	/* A directory comes before what is in it. */
	EXPECT_EQ(found.names[0]->inode, 2);
	EXPECT_EQ(strcmp(found.names[1]->text, "morsel"), 0);
	EXPECT_EQ(morsel_survey_record(&found, 3)->pages, 514);
	EXPECT_EQ(morsel_survey_record(&found, 3)->links, 1);
	EXPECT_EQ(!morsel_survey_record(&found, 4), true);
	EXPECT_EQ(bitmap_weight(found.owned, PAGES), 2 + 2 + 2 + 514);
	EXPECT_EQ(found.leftovers, 0);
	morsel_survey_free(&found);
}

static u64 find(u64 root, u64 index)
{
	struct morsel_node node;
	int err = morsel_find_node(&image.medium, root, index, &node);

	if (err)
		return err;
	return node.page ? node.page + index - node.index : 0;
}

static void pages_are_found_by_their_number(void)
{
	u64 root = root_of(TABLE, 2, false, 15);

	make();
	EXPECT_EQ(find(root, 0), 0);
	EXPECT_EQ(find(root, 1), 7);
	EXPECT_EQ(find(root, 511), 1599);
	EXPECT_EQ(find(root, 512), BLOCK);
	EXPECT_EQ(find(root, 1023), BLOCK + 511);
	EXPECT_EQ(find(root, 1024), 0);
	EXPECT_EQ(find(root, 512 * 512), 0);
	EXPECT_EQ(find(root, U64_MAX), 0);
	EXPECT_EQ(find(0, 0), 0);
	EXPECT_EQ(find(root_of(9, 0, true, 0), 0), 9);
	EXPECT_EQ(find(root_of(9, 0, true, 0), 1), 0);
}

/* What was checked at the mount is checked again, because it may have changed. */
static void each_word_on_the_way_is_checked(void)
{
	make();
	EXPECT_EQ(find(root_of(PAGES, 0, true, 0), 0), -EUCLEAN);
	EXPECT_EQ(find(root_of(TABLE, 0, false, 0), 0), -EUCLEAN);
	EXPECT_EQ(find(root_of(TABLE, 7, false, 0), 0), -EUCLEAN);
	EXPECT_EQ(find(root_of(BLOCK, 3, true, 0), 0), -EUCLEAN);
	EXPECT_EQ(find(root_of(BLOCK + 1, 1, true, 0), 0), -EUCLEAN);
	/* A level 1 below a root of level 2. */
	word(page_at(TABLE), 1536 | BIT_ULL(40));
	EXPECT_EQ(find(root_of(TABLE, 2, false, 0), 0), -EUCLEAN);
	word(page_at(TABLE), BIT_ULL(41) | LOWER);
	EXPECT_EQ(find(root_of(TABLE, 2, false, 0), 0), -EUCLEAN);
	store(page_at(TABLE), LOWER);
	EXPECT_EQ(find(root_of(TABLE, 2, false, 0), 0), -EUCLEAN);
	image.broken = TABLE;
	EXPECT_EQ(find(root_of(TABLE, 2, false, 0), 0), -EIO);
}

static void other_ranges_are_refused(void)
{
	make();
	image.medium.pages = 15;
	EXPECT_EQ(survey(), -EINVAL);
	make();
	image.medium.pages = PAGES - 1;
	EXPECT_EQ(survey(), -EINVAL);
	make();
	memset(image.bytes, 0, 2 * MORSEL_FORMAT_PAGE);
	EXPECT_EQ(survey(), -EINVAL);
	for (unsigned int field = 8; field <= 24; field += 16) {
		make();
		image.bytes[field]++;
		image.bytes[page_at(1) + field]++;
		sum(0);
		sum(1);
		EXPECT_EQ(survey(), -EINVAL);
	}
	make();
	image.bytes[60]++, image.bytes[page_at(1) + 60]++;
	EXPECT_EQ(survey(), -EUCLEAN);
}

static void one_copy_of_the_superblock_is_enough(void)
{
	for (u64 page = 0; page < 2; page++) {
		make();
		image.bytes[page_at(page) + 40]++;
		EXPECT_EQ(survey(), 0);
		EXPECT_EQ(found.super.damaged, 1);
		EXPECT_EQ(found.super.pages, PAGES);
	}
}

static void damage_is_found(void)
{
	make();
	store(MORSEL_INODES, 1);
	EXPECT_EQ(has_problem("the root of the inodes or names is damaged"), true);
	word(MORSEL_NAMES, root_of(BLOCK, 1, true, 0));
	EXPECT_EQ(has_problem("inodes or names are in a block"), true);
	word(MORSEL_NAMES, root_of(INODES, 0, true, 0));
	EXPECT_EQ(has_problem("a page belongs to something else already"), true);
	inode(1, 0, 0, 0);
	EXPECT_EQ(has_problem("the root directory is missing"), true);
	inode(0, S_IFREG, 0, 0);
	EXPECT_EQ(has_problem("the inode 0 is in use"), true);
	inode(3, S_IFREG, MORSEL_MOST_BYTES + 1, 0);
	EXPECT_EQ(has_problem("a word of an inode is damaged"), true);
	inode(3, S_IFLNK, 5, 0);
	EXPECT_EQ(has_problem("a symbolic link has no target"), true);
	inode(3, S_IFLNK, 5, root_of(9, 0, true, 0));
	EXPECT_EQ(has_problem("the target of a symbolic link is damaged"), true);
	inode(2, S_IFDIR, 0, root_of(9, 0, true, 0));
	EXPECT_EQ(has_problem("an inode that is no file has data"), true);
	inode(3, 0170000, 0, 0);
	EXPECT_EQ(has_problem("the type of an inode is not known"), true);
	word(inode_at(3) + MORSEL_INODE_MTIME, 10000);
	EXPECT_EQ(has_problem("a word of an inode is damaged"), true);
	word(inode_at(3) + MORSEL_INODE_XATTR, 9);
	EXPECT_EQ(has_problem("extended attributes are damaged"), true);
	word(page_at(TABLE) + 16, BLOCK | BIT_ULL(40));
	EXPECT_EQ(has_problem("a page belongs to something else already"), true);
	word(page_at(TABLE) + 16, TABLE);
	EXPECT_EQ(has_problem("a page belongs to something else already"), true);
	word(page_at(TABLE) + 16, (1024 + 64) | BIT_ULL(40));
	EXPECT_EQ(has_problem("a block is not aligned"), true);
	word(page_at(TABLE) + 16, 1536 | BIT_ULL(40));
	EXPECT_EQ(has_problem("an entry leads out of the range"), true);
}

static void bad_names_are_found(void)
{
	static const char *const wrong[] = { "", ".", "..", "a/b" };

	make();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		name(0, 3, 1, wrong[i]);
		EXPECT_EQ(has_problem("a name or its directory is damaged"), true);
	}
	word(name_at(0), BIT_ULL(40) | 3);
	EXPECT_EQ(has_problem("the inode of a name is damaged"), true);
	name(0, 1, 2, "root");
	EXPECT_EQ(has_problem("a name leads to the root directory"), true);
	name(0, 9, 2, "nothing");
	EXPECT_EQ(has_problem("a name leads to no inode"), true);
	name(0, 3, 3, "below a file");
	EXPECT_EQ(has_problem("the directory of a name is missing"), true);
	name(0, 3, 2, "morsel");
	EXPECT_EQ(has_problem("a directory has the same name twice"), true);
	name(0, 2, 1, "second");
	EXPECT_EQ(has_problem("a directory has two names"), true);
	name(4, 2, 2, "own parent");
	EXPECT_EQ(has_problem("a name does not hang off the root directory"), true);
	inode(4, S_IFDIR, 0, 0);
	name(0, 3, 4, "below a directory without a name");
	EXPECT_EQ(has_problem("a name does not hang off the root directory"), true);
}

static void what_a_crash_leaves_is_completed_in_memory(void)
{
	make();
	/* A rename of the morsel to a free slot, and one that is damaged where it was. */
	name(0, 3, 1, "renamed");
	pending(0, 3, 1, 0);
	store(name_at(1) + MORSEL_NAME_PARENT, 1);
	/* An inode without a name, with a tree that was freed, and pages beyond an end. */
	inode(5, S_IFREG, 1 << 20, root_of(TABLE, 2, false, 0));
	inode(6, S_IFREG, 100, root_of(8, 1, false, 0));
	name(2, 6, 1, "open");
	word(page_at(8) + 8, TABLE | BIT_ULL(40));
	EXPECT_EQ(morsel_survey(&found, &image.medium), 0);
	EXPECT_EQ(found.leftovers, 3);
	EXPECT_EQ(found.nr_names, 3);
	EXPECT_EQ(morsel_survey_record(&found, 5)->links, 0);
	EXPECT_EQ(morsel_survey_record(&found, 6)->pages, 0);
	morsel_survey_free(&found);
}

static void renames_without_another_side_are_found(void)
{
	static const char problem[] = "a pending rename has no other side";

	make();
	pending(4, 2, 4, 0);
	EXPECT_EQ(has_problem(problem), true);
	pending(4, 2, 1, 0);
	EXPECT_EQ(has_problem(problem), true);
	pending(4, 2, 0, 2);
	EXPECT_EQ(has_problem(problem), true);
	pending(4, 2, 0, 3);
	EXPECT_EQ(has_problem(problem), true);
	/* Two that name the same slot. */
	name(0, 3, 1, "one");
	name(2, 3, 1, "two");
	pending(0, 3, 1, 0);
	pending(2, 3, 1, 0);
	EXPECT_EQ(has_problem(problem), true);
}

/* As deep as the slots allow, with the deepest first. */
static void deep_directories_are_read_in_order(void)
{
	make();
	inode(3, S_IFDIR, 0, 0);
	for (unsigned int number = 4; number < 9; number++)
		inode(number, S_IFDIR, 0, 0);
	for (unsigned int slot = 0; slot < 7; slot++)
		name(slot, 8 - slot, 7 - slot, "d");
	word(name_at(7), 0);
	EXPECT_EQ(morsel_survey(&found, &image.medium), 0);
	EXPECT_EQ(found.nr_names, 7);
	for (u64 i = 0; i < found.nr_names; i++)
		EXPECT_EQ(found.names[i]->depth, i);
	morsel_survey_free(&found);
}

static void pages_that_cannot_be_read_are_errors(void)
{
	for (u64 page = 1; page < 7; page++) {
		bool is_used = page != 4;

		make();
		image.broken = page;
		EXPECT_EQ(survey(), is_used ? -EIO : 0);
	}
}

static void each_allocation_may_fail(void)
{
	unsigned long nr = 0;
	int err;

	do {
		make();
		allocations_left = nr++;
		err = survey();
		allocations_left = -1UL;
		EXPECT_EQ(err == 0 || err == -ENOMEM, true);
	} while (err);
	EXPECT_EQ(nr > 8, true);
}

int main(void)
{
	RUN(words_belong_to_their_place);
	RUN(a_range_is_read);
	RUN(pages_are_found_by_their_number);
	RUN(each_word_on_the_way_is_checked);
	RUN(other_ranges_are_refused);
	RUN(one_copy_of_the_superblock_is_enough);
	RUN(damage_is_found);
	RUN(bad_names_are_found);
	RUN(what_a_crash_leaves_is_completed_in_memory);
	RUN(renames_without_another_side_are_found);
	RUN(deep_directories_are_read_in_order);
	RUN(pages_that_cannot_be_read_are_errors);
	RUN(each_allocation_may_fail);
	free(image.bytes);
	return tap_end();
}
