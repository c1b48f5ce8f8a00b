// SPDX-License-Identifier: GPL-2.0-only
/* Inodes and directories of morselfs. */

#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/posix_acl.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"
#include "pmem.h"

static const struct inode_operations morsel_dir_operations, morsel_link_operations,
	morsel_special_operations;

/* Charge an inode, or an additional link, which pins a dentry as well. */
static bool morsel_charge_inode(struct morsel_sb *sb)
{
	if (sb->inode_limit)
		return percpu_counter_limited_add(&sb->inodes, sb->inode_limit, 1);
	percpu_counter_inc(&sb->inodes);
	return true;
}

/**
 * morsel_new_inode - make an inode
 * @super: the mount
 * @dir: directory that it is made in, or NULL
 * @mode: type and access rights
 * @device: number of a device
 *
 * Context: may sleep.
 * Return: the inode, -ENOSPC or -ENOMEM.
 */
struct inode *morsel_new_inode(struct super_block *super, const struct inode *dir,
			       umode_t mode, dev_t device)
{
	struct morsel_sb *sb = morsel_sb_of(super);
	struct inode *inode;

	if (!morsel_charge_inode(sb))
		return ERR_PTR(-ENOSPC);
	inode = new_inode(super);
	if (!inode) {
		percpu_counter_dec(&sb->inodes);
		return ERR_PTR(-ENOMEM);
	}
	inode->i_ino = get_next_ino();
	inode_init_owner(&nop_mnt_idmap, inode, dir, mode);
	inode->i_mapping->a_ops = &morsel_aops;
	mapping_set_gfp_mask(inode->i_mapping, GFP_HIGHUSER);
	mapping_set_unevictable(inode->i_mapping);
	simple_inode_init_ts(inode);
	/* All that there is, is cached. */
	cache_no_acl(inode);
	switch (mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &morsel_file_inode_operations;
		inode->i_fop = &morsel_file_operations;
		break;
	case S_IFDIR:
		inode->i_op = &morsel_dir_operations;
		inode->i_fop = &simple_dir_operations;
		/* "." */
		inc_nlink(inode);
		break;
	case S_IFLNK:
		inode->i_op = &morsel_link_operations;
		break;
	default:
		inode->i_op = &morsel_special_operations;
		init_special_inode(inode, mode, device);
	}
	return inode;
}

/* Directories */

static void morsel_add_name(struct inode *dir, struct dentry *dentry,
			    struct inode *inode)
{
	d_instantiate(dentry, inode);
	/* Names exist only in the dentry cache: pin the dentry. */
	dget(dentry);
	inode_set_mtime_to_ts(dir, inode_set_ctime_current(dir));
	morsel_pmem_touch(dir);
}

/* Drop an inode that could not be made. */
static void morsel_drop_new(struct inode *inode)
{
	clear_nlink(inode);
	iput(inode);
}

static int morsel_mknod(struct mnt_idmap *idmap, struct inode *dir,
			struct dentry *dentry, umode_t mode, dev_t device)
{
	struct inode *inode = morsel_new_inode(dir->i_sb, dir, mode, device);
	int err;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	err = morsel_init_security(inode, dir, &dentry->d_name) ?:
	      morsel_pmem_create(dir, dentry, inode);
	if (err) {
		morsel_drop_new(inode);
		return err;
	}
	morsel_add_name(dir, dentry, inode);
	return 0;
}

static int morsel_create(struct mnt_idmap *idmap, struct inode *dir,
			 struct dentry *dentry, umode_t mode, bool exclusive)
{
	return morsel_mknod(idmap, dir, dentry, mode | S_IFREG, 0);
}

static int morsel_mkdir(struct mnt_idmap *idmap, struct inode *dir,
			struct dentry *dentry, umode_t mode)
{
	int err = morsel_mknod(idmap, dir, dentry, mode | S_IFDIR, 0);

	if (!err)
		inc_nlink(dir);
	return err;
}

static int morsel_symlink(struct mnt_idmap *idmap, struct inode *dir,
			  struct dentry *dentry, const char *target)
{
	struct inode *inode = morsel_new_inode(dir->i_sb, dir, S_IFLNK | 0777, 0);
	int err;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	inode->i_size = strlen(target);
	inode->i_link = kmemdup(target, inode->i_size + 1, GFP_KERNEL_ACCOUNT);
	err = inode->i_link ? morsel_init_security(inode, dir, &dentry->d_name) : -ENOMEM;
	err = err ?: morsel_pmem_create(dir, dentry, inode);
	if (err) {
		morsel_drop_new(inode);
		return err;
	}
	morsel_add_name(dir, dentry, inode);
	return 0;
}

static int morsel_tmpfile(struct mnt_idmap *idmap, struct inode *dir,
			  struct file *file, umode_t mode)
{
	struct inode *inode = morsel_new_inode(dir->i_sb, dir, mode, 0);
	int err;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	err = morsel_init_security(inode, dir, NULL) ?: morsel_pmem_create(dir, NULL, inode);
	if (err) {
		morsel_drop_new(inode);
		return err;
	}
	d_tmpfile(file, inode);
	return finish_open_simple(file, 0);
}

static int morsel_link(struct dentry *old, struct inode *dir,
		       struct dentry *dentry)
{
	/* The first link of an O_TMPFILE inode was charged with the inode. */
	bool is_more = d_inode(old)->i_nlink;
	int err;

	if (is_more && !morsel_charge_inode(morsel_sb_of(dir->i_sb)))
		return -ENOSPC;
	err = morsel_pmem_link(dir, dentry, d_inode(old)) ?: simple_link(old, dir, dentry);
	if (err && is_more)
		percpu_counter_dec(&morsel_sb_of(dir->i_sb)->inodes);
	morsel_pmem_touch(d_inode(old));
	morsel_pmem_touch(dir);
	return err;
}

static int morsel_unlink(struct inode *dir, struct dentry *dentry)
{
	int err = morsel_pmem_unlink(dentry);

	if (err)
		return err;
	/* The last link is uncharged with the inode. */
	if (d_inode(dentry)->i_nlink > 1)
		percpu_counter_dec(&morsel_sb_of(dir->i_sb)->inodes);
	err = simple_unlink(dir, dentry);
	morsel_pmem_touch(d_inode(dentry));
	morsel_pmem_touch(dir);
	return err;
}

static int morsel_rmdir(struct inode *dir, struct dentry *dentry)
{
	int err = simple_empty(dentry) ? morsel_pmem_unlink(dentry) : -ENOTEMPTY;

	err = err ?: simple_rmdir(dir, dentry);
	morsel_pmem_touch(dir);
	return err;
}

static int morsel_rename(struct mnt_idmap *idmap, struct inode *old_dir,
			 struct dentry *old, struct inode *new_dir,
			 struct dentry *new, unsigned int flags)
{
	struct inode *replaced = flags & RENAME_EXCHANGE ? NULL : d_inode(new);
	int err;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if (replaced && !simple_empty(new))
		return -ENOTEMPTY;
	err = morsel_pmem_rename(old, new_dir, new, flags);
	if (err)
		return err;
	if (replaced)
		ihold(replaced);
	err = simple_rename(idmap, old_dir, old, new_dir, new, flags);
	/* The replaced inode has lost a link, but not its last one. */
	if (replaced && !err && !S_ISDIR(replaced->i_mode) && replaced->i_nlink)
		percpu_counter_dec(&morsel_sb_of(replaced->i_sb)->inodes);
	morsel_pmem_touch(d_inode(old));
	morsel_pmem_touch(old_dir);
	morsel_pmem_touch(new_dir);
	if (d_really_is_positive(new))
		morsel_pmem_touch(d_inode(new));
	if (replaced)
		iput(replaced);
	return err;
}

static const struct inode_operations morsel_dir_operations = {
	.create = morsel_create,
	.lookup = simple_lookup,
	.link = morsel_link,
	.unlink = morsel_unlink,
	.symlink = morsel_symlink,
	.mkdir = morsel_mkdir,
	.rmdir = morsel_rmdir,
	.mknod = morsel_mknod,
	.rename = morsel_rename,
	.tmpfile = morsel_tmpfile,
	.setattr = morsel_setattr,
	.listxattr = morsel_list_xattrs,
	.set_acl = morsel_set_acl,
};

static const struct inode_operations morsel_link_operations = {
	.get_link = simple_get_link,
	.setattr = morsel_setattr,
	.listxattr = morsel_list_xattrs,
};

static const struct inode_operations morsel_special_operations = {
	.setattr = morsel_setattr,
	.listxattr = morsel_list_xattrs,
	.set_acl = morsel_set_acl,
};
