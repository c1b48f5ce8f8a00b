// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inodes and names of a range of persistent memory. A mount reads all of them, as the
 * format demands, and keeps them: lookups and listings are those of a file system in memory.
 */

#include <linux/bitmap.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "pmem.h"

static struct timespec64 morsel_time(u64 payload)
{
	return (struct timespec64){
		.tv_sec = (s64)(payload >> 14) - (s64)BIT_ULL(31),
		.tv_nsec = (payload & (BIT_ULL(14) - 1)) * 100 * NSEC_PER_USEC,
	};
}

/* Read the target of a symbolic link, which may have changed since it was checked. */
static int morsel_pmem_read_target(const struct morsel_pmem *pmem,
				   const struct morsel_record *record, struct inode *inode)
{
	struct morsel_node node;
	char *target = kzalloc(record->size + 1, GFP_KERNEL_ACCOUNT);

	if (!target)
		return -ENOMEM;
	inode->i_link = target;
	morsel_root_node(0, record->root, &node);
	return pmem->medium.read(&pmem->medium, node.page << MORSEL_FORMAT_SHIFT, target,
				 record->size);
}

/* Read the extended attributes, which may have changed since they were checked. */
static int morsel_pmem_read_xattrs(const struct morsel_pmem *pmem,
				   const struct morsel_record *record, struct inode *inode)
{
	u8 *page __free(kfree) = kmalloc(MORSEL_FORMAT_PAGE, GFP_KERNEL);
	struct morsel_xattr xattr;
	unsigned int at = 0;
	int err;

	if (!page)
		return -ENOMEM;
	err = pmem->medium.read(&pmem->medium, record->xattr << MORSEL_FORMAT_SHIFT, page,
				MORSEL_FORMAT_PAGE);
	if (!err && !morsel_xattrs_are_valid(page, record->xattr))
		err = -EUCLEAN;
	while (!err && morsel_next_xattr(page, &at, &xattr))
		err = morsel_add_xattr(inode, "", xattr.name, xattr.value, xattr.size);
	return err;
}

static void morsel_pmem_set_inode(struct inode *inode, const struct morsel_record *record)
{
	inode->i_ino = record->number;
	inode->i_generation = record->generation;
	inode->i_size = record->size;
	i_uid_write(inode, record->uid);
	i_gid_write(inode, record->gid);
	inode_set_mtime_to_ts(inode, morsel_time(record->mtime));
	inode_set_atime_to_ts(inode, morsel_time(record->mtime));
	inode_set_ctime_to_ts(inode, morsel_time(record->ctime));
	morsel_of(inode)->at = record->at;
	morsel_of(inode)->root = record->root;
	morsel_of(inode)->xattr_page = record->xattr;
	if (!S_ISREG(inode->i_mode))
		return;
	morsel_pmem_init_file(inode);
	morsel_of(inode)->seals = MORSEL_ROOT_SEALS(record->root);
	percpu_counter_set(&morsel_of(inode)->pages, record->pages);
}

/* Make an inode. Further names are links to it. */
static struct inode *morsel_pmem_inode(struct super_block *super, struct morsel_record *record)
{
	const struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;
	struct inode *inode = record->user;
	int err = 0;

	if (inode) {
		inc_nlink(inode);
		ihold(inode);
		return inode;
	}
	inode = morsel_new_inode(super, NULL, record->mode, new_decode_dev(record->rdev));
	if (IS_ERR(inode))
		return inode;
	morsel_pmem_set_inode(inode, record);
	if (S_ISLNK(record->mode))
		err = morsel_pmem_read_target(pmem, record, inode);
	if (!err && record->xattr)
		err = morsel_pmem_read_xattrs(pmem, record, inode);
	if (err) {
		iput(inode);
		return ERR_PTR(err);
	}
	record->user = inode;
	return inode;
}

static int morsel_pmem_add_name(struct super_block *super, const struct morsel_survey *survey,
				const struct morsel_entry *entry)
{
	struct inode *directory = morsel_survey_record(survey, entry->parent)->user;
	struct inode *inode = morsel_pmem_inode(super,
						morsel_survey_record(survey, entry->inode));
	struct dentry *parent, *dentry;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	parent = d_find_any_alias(directory);
	dentry = d_alloc_name(parent, entry->text);
	dput(parent);
	if (!dentry) {
		iput(inode);
		return -ENOMEM;
	}
	if (S_ISDIR(inode->i_mode))
		inc_nlink(directory);
	dentry->d_fsdata = (void *)(entry->slot + 1);
	/* Keeps the dentry. */
	d_add(dentry, inode);
	cond_resched();
	return 0;
}

static int morsel_pmem_add_root(struct super_block *super, const struct morsel_survey *survey)
{
	struct inode *root = morsel_pmem_inode(super,
					       morsel_survey_record(survey,
								    MORSEL_ROOT_DIRECTORY));

	if (IS_ERR(root))
		return PTR_ERR(root);
	super->s_root = d_make_root(root);
	return super->s_root ? 0 : -ENOMEM;
}

static int morsel_pmem_add_all(struct super_block *super, const struct morsel_survey *survey)
{
	struct morsel_sb *sb = morsel_sb_of(super);
	int err = morsel_pmem_add_root(super, survey);
	u64 i;

	/* The directory of a name comes before the name. */
	for (i = 0; !err && i < survey->nr_names; i++)
		err = morsel_pmem_add_name(super, survey, survey->names[i]);
	sb->limit = survey->super.pages;
	sb->inode_limit = 0;
	sb->pmem->range.used = survey->nr_owned;
	memcpy(&super->s_uuid, survey->super.uuid, sizeof(super->s_uuid));
	super->s_uuid_len = sizeof(survey->super.uuid);
	return err;
}

/* Complete what a crash left, and read all once more. */
static int morsel_pmem_recover(struct morsel_survey *survey)
{
	u64 before = survey->leftovers;
	int err = morsel_recover(survey);

	if (err)
		return err;
	morsel_count_many(MORSEL_RECOVERED, before);
	morsel_survey_free(survey);
	err = morsel_survey(survey, survey->medium);
	if (err || survey->leftovers < before)
		return err;
	survey->problem = "recovery does not end";
	return -EUCLEAN;
}

/* Let the range be changed: take what the survey has found. */
static void morsel_pmem_take_range(struct morsel_pmem *pmem, struct morsel_survey *survey)
{
	struct morsel_range *range = &pmem->range;
	u64 i;

	range->owned = survey->owned;
	range->inodes = survey->inode_slots;
	range->names = survey->name_slots;
	survey->owned = NULL;
	survey->inode_slots.pages = NULL;
	survey->name_slots.pages = NULL;
	/* The inode 0 does not exist. */
	morsel_use_slot(&range->inodes, 0);
	for (i = 0; i < survey->nr_records; i++)
		morsel_use_slot(&range->inodes, survey->records[i].number);
	for (i = 0; i < survey->nr_names; i++)
		morsel_use_slot(&range->names, survey->names[i]->slot);
	pmem->is_writable = true;
}

/* One message for each mount. */
static void morsel_pmem_report(const struct super_block *super,
			       const struct morsel_survey *survey, int err)
{
	if (err && survey->problem)
		pr_err("morselfs: %s: %s, at offset %#llx\n", super->s_id, survey->problem,
		       survey->where);
	else if (err)
		pr_err("morselfs: %s: not mounted: error %d\n", super->s_id, err);
	else if (survey->super.damaged)
		pr_warn("morselfs: %s: a copy of the superblock is damaged\n", super->s_id);
}

/**
 * morsel_pmem_read_all - read and check the range of a mount, and make its inodes and names
 * @super: the mount
 *
 * What a crash left is completed; of a mount for reading, in memory only.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or what morsel_survey() returns.
 */
int morsel_pmem_read_all(struct super_block *super)
{
	struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;
	struct morsel_survey survey;
	int err;

	morsel_init_super(super);
	/* Times have steps of 100 microseconds. */
	super->s_time_gran = 100 * NSEC_PER_USEC;
	super->s_time_min = -(s64)BIT_ULL(31);
	super->s_time_max = (s64)BIT_ULL(34) - 1 - (s64)BIT_ULL(31);
	super->s_maxbytes = MORSEL_MOST_BYTES;
	err = morsel_survey(&survey, &pmem->medium);
	while (!err && !sb_rdonly(super) && survey.leftovers)
		err = morsel_pmem_recover(&survey);
	err = err ?: morsel_pmem_add_all(super, &survey);
	if (!err && !sb_rdonly(super))
		morsel_pmem_take_range(pmem, &survey);
	morsel_pmem_report(super, &survey, err);
	morsel_survey_free(&survey);
	return err;
}
