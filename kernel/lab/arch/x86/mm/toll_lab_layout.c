// SPDX-License-Identifier: GPL-2.0-only
/*
 * A remote client that writes the blocks of a file itself, as with pNFS block layouts.
 *
 * "VALUE PATH", written to toll_lab_layout in debugfs, requests the layout of the first
 * page of the file from the file system as the NFS server does, writes a page of 32-bit
 * words of that VALUE to the device, and commits the layout. write() fails with
 * EOPNOTSUPP if the file system does not support layouts.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/exportfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/iomap.h>
#include <linux/mm.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

static int toll_lab_write_block(struct super_block *sb, u64 addr, u32 value)
{
	struct page *page = alloc_page(GFP_KERNEL);
	struct bio_vec vec;
	struct bio bio;
	int err;

	if (!page)
		return -ENOMEM;
	memset32(page_address(page), value, PAGE_SIZE / sizeof(u32));
	bio_init(&bio, sb->s_bdev, &vec, 1, REQ_OP_WRITE | REQ_SYNC);
	bio.bi_iter.bi_sector = addr >> SECTOR_SHIFT;
	__bio_add_page(&bio, page, PAGE_SIZE, 0);
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	__free_page(page);
	return err;
}

static int toll_lab_commit_layout(struct inode *inode, struct iomap *map)
{
	struct iattr times = {
		.ia_valid = ATTR_ATIME | ATTR_CTIME | ATTR_MTIME,
	};

	times.ia_atime = current_time(inode);
	times.ia_ctime = times.ia_atime;
	times.ia_mtime = times.ia_atime;
	return inode->i_sb->s_export_op->commit_blocks(inode, map, 1, &times);
}

static int toll_lab_write_remotely(struct inode *inode, u32 value)
{
	const struct export_operations *ops = inode->i_sb->s_export_op;
	u32 device_generation;
	struct iomap map = {};
	int err;

	if (!ops || !ops->map_blocks || !ops->commit_blocks)
		return -EOPNOTSUPP;
	err = ops->map_blocks(inode, 0, PAGE_SIZE, &map, true,
			      &device_generation);
	if (err)
		return err;
	if (map.type != IOMAP_MAPPED || map.offset || map.length < PAGE_SIZE)
		return -ENXIO;
	map.length = PAGE_SIZE;
	return toll_lab_write_block(inode->i_sb, map.addr, value) ?:
	       toll_lab_commit_layout(inode, &map);
}

static ssize_t toll_lab_layout_write(struct file *file, const char __user *from,
				     size_t length, loff_t *at)
{
	char *line, *name;
	struct path path;
	u32 value;
	int err;

	if (length > PATH_MAX)
		return -EINVAL;
	line = memdup_user_nul(from, length);
	if (IS_ERR(line))
		return PTR_ERR(line);
	name = line;
	err = kstrtou32(strsep(&name, " "), 0, &value);
	if (!err)
		err = name ? kern_path(name, 0, &path) : -EINVAL;
	kfree(line);
	if (err)
		return err;
	err = toll_lab_write_remotely(d_inode(path.dentry), value);
	path_put(&path);
	return err ?: length;
}

static const struct file_operations layout_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = toll_lab_layout_write,
	.llseek = noop_llseek,
};

static int __init toll_lab_layout_init(void)
{
	debugfs_create_file("toll_lab_layout", 0200, NULL, NULL, &layout_file);
	return 0;
}
late_initcall(toll_lab_layout_init);
