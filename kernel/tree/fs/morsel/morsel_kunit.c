// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the tables of a morsel with distant pages, without mappings. */

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/morsel_device.h>
#include <linux/mount.h>

#include "internal.h"

#define A_GIB	BIT(PUD_ORDER)
#define A_TABLE	(A_GIB * PTRS_PER_PUD)

/* Pages in several tables of each level, and in several regions. */
static const pgoff_t places[] = {
	0, 1, 510, 512 * 7 + 3, 512 * 7 + 500, A_GIB * 5 + 9, A_GIB * 5 + 512 * 511,
	A_TABLE * 2 + A_GIB * 511 + 1,
};

struct morsel_test {
	struct vfsmount *mount;
	struct file *file;
	struct morsel *morsel;
};

static int morsel_test_init(struct kunit *test)
{
	struct file_system_type *type = get_fs_type("morselfs");
	struct morsel_test *one = kunit_kzalloc(test, sizeof(*one), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, type);
	KUNIT_ASSERT_NOT_NULL(test, one);
	one->mount = kern_mount(type);
	put_filesystem(type);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, one->mount);
	test->priv = one;
	one->file = file_open_root_mnt(one->mount, "one", O_RDWR | O_CREAT, 0600);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, one->file);
	one->morsel = morsel_of(file_inode(one->file));
	return 0;
}

static void morsel_test_exit(struct kunit *test)
{
	struct morsel_test *one = test->priv;

	if (!one)
		return;
	if (!IS_ERR_OR_NULL(one->file))
		__fput_sync(one->file);
	kern_unmount(one->mount);
}

/* Only room for a page of 4 KiB. */
static void morsel_test_fill(struct kunit *test, struct morsel *morsel)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		KUNIT_ASSERT_EQ(test, 0, morsel_fill(morsel, places[i], places[i] + 1,
						     NULL, 0, NULL));
}

static void morsel_test_remove(struct morsel *morsel, pgoff_t first, pgoff_t end)
{
	inode_lock(&morsel->inode);
	morsel_close(morsel);
	while (first < end)
		first = morsel_remove(morsel, first, end, 1000);
	morsel_open(morsel);
	inode_unlock(&morsel->inode);
}

static void morsel_test_free_tables(struct morsel *morsel, pgoff_t first, pgoff_t end)
{
	inode_lock(&morsel->inode);
	morsel_close(morsel);
	morsel_free_tables(morsel, first, end);
	morsel_open(morsel);
	inode_unlock(&morsel->inode);
}

static void morsel_test_find_filled_pages(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct page *page, *same;
	pgoff_t at = 0;

	morsel_test_fill(test, one->morsel);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		page = morsel_find_next(one->morsel, &at, ULONG_MAX);
		KUNIT_ASSERT_NOT_NULL(test, page);
		KUNIT_EXPECT_EQ(test, at, places[i]);
		KUNIT_EXPECT_EQ(test, page->index, places[i]);
		KUNIT_EXPECT_PTR_EQ(test, page->mapping, one->file->f_mapping);
		same = morsel_find(one->morsel, at);
		KUNIT_EXPECT_PTR_EQ(test, same, page);
		put_page(page);
		if (same)
			put_page(same);
		KUNIT_EXPECT_NULL(test, morsel_find(one->morsel, ++at + 7));
	}
	KUNIT_EXPECT_NULL(test, morsel_find_next(one->morsel, &at, ULONG_MAX));
}

static void morsel_test_count_resident_pages(struct kunit *test)
{
	struct morsel_test *one = test->priv;

	morsel_test_fill(test, one->morsel);
	/* Filling twice changes nothing. */
	morsel_test_fill(test, one->morsel);
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 0, ULONG_MAX),
			ARRAY_SIZE(places));
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 1, 511), 2UL);
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 511, A_GIB * 5), 2UL);
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, A_GIB * 5 + 10, A_TABLE * 3),
			2UL);
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&one->morsel->pages),
			(s64)ARRAY_SIZE(places));
}

static void morsel_test_remove_pages(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct page *page;
	pgoff_t at = 1;

	morsel_test_fill(test, one->morsel);
	morsel_test_remove(one->morsel, 1, places[ARRAY_SIZE(places) - 1]);
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 0, ULONG_MAX), 2UL);
	page = morsel_find_next(one->morsel, &at, ULONG_MAX);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, at, places[ARRAY_SIZE(places) - 1]);
	put_page(page);
}

static void morsel_test_free_empty_tables(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct morsel *morsel = one->morsel;
	s64 used, before = percpu_counter_sum(&morsel_sb_of(morsel->inode.i_sb)->used);

	morsel_test_fill(test, morsel);
	/* Two PUD tables, three PMD tables, and a PTE table for each place except two pairs. */
	used = percpu_counter_sum(&morsel_sb_of(morsel->inode.i_sb)->used) - before;
	KUNIT_EXPECT_EQ(test, used, (s64)ARRAY_SIZE(places) + 2 + 3 + 5);
	/* No table is empty. */
	morsel_test_free_tables(morsel, 0, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&morsel_sb_of(morsel->inode.i_sb)->used) - before,
			used);
	morsel_test_remove(morsel, 1, ULONG_MAX);
	/* The empty tables are not in the range. */
	morsel_test_free_tables(morsel, A_TABLE, A_TABLE * 2);
	KUNIT_EXPECT_NOT_NULL(test, morsel_pud(morsel, A_TABLE * 2));
	morsel_test_free_tables(morsel, 1, ULONG_MAX);
	KUNIT_EXPECT_NULL(test, morsel_pud(morsel, A_TABLE * 2));
	KUNIT_EXPECT_NULL(test, morsel_pmd(morsel, A_GIB * 5));
	KUNIT_EXPECT_NOT_NULL(test, morsel_pmd(morsel, 0));
	KUNIT_EXPECT_EQ(test, morsel_resident(morsel, 0, ULONG_MAX), 1UL);
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&morsel_sb_of(morsel->inode.i_sb)->used) - before,
			4);
	morsel_test_remove(morsel, 0, 1);
	morsel_test_free_tables(morsel, 0, 1);
	KUNIT_EXPECT_NULL(test, morsel_pud(morsel, 0));
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&morsel_sb_of(morsel->inode.i_sb)->used),
			before);
	/* Fill them again. */
	morsel_test_fill(test, morsel);
}

static void morsel_test_expect_busy(struct kunit *test, struct file *file, long busy)
{
	int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	loff_t beyond = PAGE_SIZE * 3;

	KUNIT_EXPECT_EQ(test, vfs_truncate(&file->f_path, PAGE_SIZE * 3 - 1), busy);
	KUNIT_EXPECT_EQ(test, vfs_fallocate(file, punch, 0, PAGE_SIZE), busy);
	KUNIT_EXPECT_EQ(test, vfs_fallocate(file, 0, 0, PAGE_SIZE * 4), busy);
	KUNIT_EXPECT_EQ(test, kernel_write(file, "x", 1, &beyond), busy ?: 1);
	KUNIT_EXPECT_EQ(test, __morsel_fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), busy);
}

/* A hold keeps size and pages, as long as the last of them. */
static void morsel_test_hold(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct file *file = one->file;
	loff_t within = 0;

	KUNIT_EXPECT_EQ(test, morsel_hold(file), -ENODATA);
	KUNIT_ASSERT_EQ(test, vfs_truncate(&file->f_path, PAGE_SIZE * 3), 0);
	KUNIT_EXPECT_EQ(test, morsel_hold(file), -ENODATA);
	KUNIT_ASSERT_EQ(test, vfs_fallocate(file, 0, 0, PAGE_SIZE * 3), 0);
	KUNIT_ASSERT_EQ(test, morsel_hold(file), 1);
	KUNIT_ASSERT_EQ(test, morsel_hold(file), 1);
	KUNIT_EXPECT_EQ(test, morsel_held_entry(file, 0), pud_val(*morsel_pud(one->morsel, 0)));
	KUNIT_EXPECT_EQ(test, kernel_write(file, "x", 1, &within), 1);
	morsel_unhold(file);
	morsel_test_expect_busy(test, file, -EBUSY);
	morsel_unhold(file);
	KUNIT_ASSERT_EQ(test, __morsel_fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	KUNIT_EXPECT_EQ(test, morsel_hold(file), -EPERM);
	KUNIT_ASSERT_EQ(test, __morsel_fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), 0);
	KUNIT_ASSERT_EQ(test, morsel_hold(file), 1);
	morsel_unhold(file);
}

/* Without a hold the same calls succeed. */
static void morsel_test_no_hold(struct kunit *test)
{
	struct morsel_test *one = test->priv;

	KUNIT_ASSERT_EQ(test, vfs_fallocate(one->file, 0, 0, PAGE_SIZE * 3), 0);
	KUNIT_ASSERT_EQ(test, morsel_hold(one->file), 1);
	morsel_unhold(one->file);
	morsel_test_expect_busy(test, one->file, 0);
}

static void morsel_test_remove_whole_block(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct page *page;

	KUNIT_ASSERT_EQ(test, 0, morsel_fill(one->morsel, 1000, 1024, NULL, 0, &page));
	if (!PageCompound(page)) {
		put_page(page);
		kunit_skip(test, "no block of 2 MiB");
	}
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 0, ULONG_MAX), 512UL);
	memset(page_address(page), 0xff, PAGE_SIZE);
	/* A block that is partly removed stays, and is zeroed there. */
	morsel_test_remove(one->morsel, 900, 1024);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page), 0, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 0, ULONG_MAX), 512UL);
	put_page(page);
	morsel_test_remove(one->morsel, 512, 1024);
	KUNIT_EXPECT_EQ(test, morsel_resident(one->morsel, 0, ULONG_MAX), 0UL);
}

static void morsel_test_fill_stops_at_end(struct kunit *test)
{
	struct morsel_test *one = test->priv;

	KUNIT_EXPECT_EQ(test, -EFBIG, morsel_fill(one->morsel, 0, 0, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EFBIG, morsel_fill(one->morsel, 7, 7, NULL, 0, NULL));
	i_size_write(&one->morsel->inode, 1);
	KUNIT_EXPECT_EQ(test, 0, morsel_fill(one->morsel, 0, 0, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EFBIG, morsel_fill(one->morsel, 1, 0, NULL, 0, NULL));
}

static bool morsel_test_is_held(struct morsel *morsel)
{
	bool held;

	inode_lock(&morsel->inode);
	morsel_close(morsel);
	held = morsel_is_held(morsel);
	morsel_open(morsel);
	inode_unlock(&morsel->inode);
	return held;
}

static void morsel_test_held_page_is_seen(struct kunit *test)
{
	struct morsel_test *one = test->priv;
	struct page *page;

	morsel_test_fill(test, one->morsel);
	KUNIT_EXPECT_FALSE(test, morsel_is_pinned(one->morsel));
	page = morsel_find(one->morsel, places[ARRAY_SIZE(places) - 1]);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_TRUE(test, morsel_is_pinned(one->morsel));
	KUNIT_EXPECT_TRUE(test, morsel_test_is_held(one->morsel));
	put_page(page);
	KUNIT_EXPECT_FALSE(test, morsel_is_pinned(one->morsel));
	KUNIT_EXPECT_FALSE(test, morsel_test_is_held(one->morsel));
}

static struct kunit_case morsel_cases[] = {
	KUNIT_CASE(morsel_test_find_filled_pages),
	KUNIT_CASE(morsel_test_count_resident_pages),
	KUNIT_CASE(morsel_test_remove_pages),
	KUNIT_CASE(morsel_test_free_empty_tables),
	KUNIT_CASE(morsel_test_hold),
	KUNIT_CASE(morsel_test_no_hold),
	KUNIT_CASE(morsel_test_remove_whole_block),
	KUNIT_CASE(morsel_test_fill_stops_at_end),
	KUNIT_CASE(morsel_test_held_page_is_seen),
	{}
};

static struct kunit_suite morsel_suite = {
	.name = "tollfree-morsel",
	.init = morsel_test_init,
	.exit = morsel_test_exit,
	.test_cases = morsel_cases,
};

kunit_test_suite(morsel_suite);
