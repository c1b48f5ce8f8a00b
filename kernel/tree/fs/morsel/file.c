// SPDX-License-Identifier: GPL-2.0-only
/*
 * File operations of a morsel: reads, writes, size, holes.
 *
 * Removing pages needs the lock of the inode and a closed morsel; see linux/morsel.h.
 */

#include <linux/blk_types.h>
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/splice.h>
#include <linux/uio.h>
#include <linux/wait_bit.h>

#include "internal.h"
#include "pmem.h"

/* Longest time that the morsel is closed to free pages, in ms. */
#define MOST_CLOSED	20

/* Return: number of the bytes left that are in the page; set @offset to their begin. */
static size_t morsel_page_part(loff_t at, size_t left, size_t *offset)
{
	*offset = offset_in_page(at);
	return min_t(size_t, left, PAGE_SIZE - *offset);
}

static ssize_t morsel_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t done = 0;

	while (iov_iter_count(to)) {
		loff_t size = i_size_read(inode);
		size_t offset, length, copied;
		struct page *page;

		if (iocb->ki_pos >= size)
			break;
		length = morsel_page_part(iocb->ki_pos,
					  min_t(u64, iov_iter_count(to),
						size - iocb->ki_pos), &offset);
		page = morsel_find(morsel_of(inode),
				   iocb->ki_pos >> PAGE_SHIFT);
		if (page && PageHWPoison(page)) {
			put_page(page);
			return done ?: -EIO;
		}
		if (page) {
			copied = copy_page_to_iter(page, offset, length, to);
			put_page(page);
		} else {
			copied = iov_iter_zero(length, to);
		}
		iocb->ki_pos += copied;
		done += copied;
		if (copied < length)
			return done ?: -EFAULT;
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
		cond_resched();
	}
	file_accessed(iocb->ki_filp);
	return done;
}

static void morsel_zero_range(struct morsel *morsel, loff_t from, loff_t to)
{
	while (from < to) {
		pgoff_t index = from >> PAGE_SHIFT;
		struct page *page = morsel_find_next(morsel, &index,
						     DIV_ROUND_UP_ULL(to, PAGE_SIZE));
		size_t offset, length;

		if (!page)
			return;
		from = max(from, (loff_t)index << PAGE_SHIFT);
		length = morsel_page_part(from, to - from, &offset);
		if (!PageHWPoison(page))
			memzero_page(page, offset, length);
		put_page(page);
		from += length;
		cond_resched();
	}
}

/*
 * Pages beyond the end of the file may exist, in a block, or allocated by
 * FALLOC_FL_KEEP_SIZE, and may have been written through a mapping.
 */
static void morsel_zero_tail(struct morsel *morsel, loff_t from, loff_t to)
{
	morsel_zero_range(morsel, from, to);
}

static void morsel_grow(struct morsel *morsel, loff_t size)
{
	morsel_zero_tail(morsel, i_size_read(&morsel->inode), size);
	i_size_write(&morsel->inode, size);
}

/*
 * A file that is written from its begin to its end announces only the current write.
 * A file larger than a block is likely to grow, and may have the rest of its last block
 * beyond its end.
 */
static pgoff_t morsel_write_limit(const struct morsel *morsel, loff_t end)
{
	loff_t size = max(end, i_size_read(&morsel->inode));

	return DIV_ROUND_UP_ULL(size > PMD_SIZE ? round_up(size, PMD_SIZE) : size,
				PAGE_SIZE);
}

static ssize_t morsel_write_pages(struct morsel *morsel, struct kiocb *iocb,
				  struct iov_iter *from)
{
	struct inode *inode = &morsel->inode;
	pgoff_t limit = morsel_write_limit(morsel, iocb->ki_pos + iov_iter_count(from));
	ssize_t done = 0;

	if (iocb->ki_pos > i_size_read(inode))
		morsel_zero_tail(morsel, i_size_read(inode), iocb->ki_pos);
	while (iov_iter_count(from)) {
		pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
		size_t offset, copied;
		size_t length = morsel_page_part(iocb->ki_pos, iov_iter_count(from),
						 &offset);
		struct page *page;
		int err = morsel_fill(morsel, index, limit, NULL, 0, &page);

		if (!err && PageHWPoison(page)) {
			put_page(page);
			err = -EIO;
		}
		if (err)
			return done ?: err;
		copied = copy_page_from_iter(page, offset, length, from);
		put_page(page);
		iocb->ki_pos += copied;
		done += copied;
		if (iocb->ki_pos > i_size_read(inode))
			i_size_write(inode, iocb->ki_pos);
		if (copied < length)
			return done ?: -EFAULT;
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
		cond_resched();
	}
	return done;
}

static ssize_t morsel_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *file = iocb->ki_filp;
	struct inode *inode = file_inode(file);
	struct morsel *morsel = morsel_of(inode);
	ssize_t done;

	inode_lock(inode);
	done = generic_write_checks(iocb, from);
	if (done <= 0)
		goto out;
	if (morsel->seals & MORSEL_NO_WRITES) {
		done = -EPERM;
		goto out;
	}
	if (morsel->seals & F_SEAL_GROW || morsel->holds) {
		loff_t room = i_size_read(inode) - iocb->ki_pos;

		if (room <= 0) {
			done = morsel->seals & F_SEAL_GROW ? -EPERM : -EBUSY;
			goto out;
		}
		iov_iter_truncate(from, room);
	}
	done = file_remove_privs(file) ?: file_update_time(file);
	if (!done)
		done = morsel_write_pages(morsel, iocb, from);
out:
	inode_unlock(inode);
	return done;
}

/**
 * morsel_open_file - open a morsel
 * @inode: its inode
 * @file: the new file
 *
 * Transfers with O_DIRECT copy, as all others do: there is no cache to bypass.
 *
 * Context: may sleep.
 * Return: what generic_file_open() returns.
 */
int morsel_open_file(struct inode *inode, struct file *file)
{
	file->f_mode |= FMODE_CAN_ODIRECT;
	return generic_file_open(inode, file);
}

static loff_t morsel_seek(struct morsel *morsel, loff_t offset, int whence)
{
	loff_t size = i_size_read(&morsel->inode);
	pgoff_t index = offset >> PAGE_SHIFT, end = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct page *page;

	if (offset < 0 || offset >= size)
		return -ENXIO;
	if (whence == SEEK_HOLE) {
		index = morsel_find_hole(morsel, index, end);
	} else {
		page = morsel_find_next(morsel, &index, end);
		if (!page)
			return -ENXIO;
		put_page(page);
	}
	return clamp_t(loff_t, (loff_t)index << PAGE_SHIFT, offset, size);
}

static loff_t morsel_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);

	if (whence != SEEK_HOLE && whence != SEEK_DATA)
		return generic_file_llseek(file, offset, whence);
	inode_lock_shared(inode);
	offset = morsel_seek(morsel_of(inode), offset, whence);
	inode_unlock_shared(inode);
	return offset < 0 ? offset : vfs_setpos(file, offset, inode->i_sb->s_maxbytes);
}

static bool morsel_is_mapped(struct morsel *morsel)
{
	struct address_space *mapping = morsel->inode.i_mapping;
	bool is_mapped;

	i_mmap_lock_read(mapping);
	is_mapped = mapping_mapped(mapping);
	i_mmap_unlock_read(mapping);
	return is_mapped;
}

/* Remove pages for at most MOST_CLOSED ms. Return: index to continue at. */
static pgoff_t morsel_remove_some(struct morsel *morsel, pgoff_t first,
				  pgoff_t end, bool with_copies)
{
	pgoff_t next;

	morsel_close(morsel);
	unmap_mapping_pages(morsel->inode.i_mapping, first, end - first, with_copies);
	/* Concurrent detaches may not have flushed yet. */
	wait_var_event(&morsel->taking, !atomic_read(&morsel->taking));
	next = morsel_remove(morsel, first, end, MOST_CLOSED);
	/* A mapping that comes now attaches nothing before morsel_open(). */
	if (!morsel_is_mapped(morsel))
		morsel_free_tables(morsel, first, next);
	morsel_open(morsel);
	return next;
}

/*
 * Remove whole pages from all mappings, optionally with private copies. The morsel is
 * opened in between, because faults wait with the mmap lock held.
 */
static void morsel_remove_range(struct morsel *morsel, pgoff_t first, pgoff_t end,
				bool with_copies)
{
	while (first < end)
		first = morsel_remove_some(morsel, first, end, with_copies);
}

static int morsel_may_resize(const struct morsel *morsel, loff_t size)
{
	loff_t old = i_size_read(&morsel->inode);

	if (size < old && morsel->seals & F_SEAL_SHRINK)
		return -EPERM;
	if (size > old && morsel->seals & F_SEAL_GROW)
		return -EPERM;
	if (size != old && morsel->holds)
		return -EBUSY;
	return 0;
}

static int morsel_resize(struct morsel *morsel, loff_t size)
{
	struct inode *inode = &morsel->inode;
	loff_t old = i_size_read(inode);

	if (morsel_sb_of(inode->i_sb)->pmem)
		return morsel_pmem_resize(inode, size);
	if (size > old)
		morsel_grow(morsel, size);
	if (size >= old)
		return 0;
	i_size_write(inode, size);
	morsel_remove_range(morsel, DIV_ROUND_UP(size, PAGE_SIZE), ULONG_MAX, true);
	morsel_zero_tail(morsel, size, round_up(size, PAGE_SIZE));
	return 0;
}

/**
 * morsel_setattr - change attributes of an inode of any type
 * @idmap: mapping of ids of the mount
 * @dentry: a name of the inode
 * @attr: the attributes
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0, -EPERM if a seal forbids it, or another error.
 */
int morsel_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = setattr_prepare(idmap, dentry, attr);

	if (err)
		return err;
	if (attr->ia_valid & ATTR_MODE && morsel_of(inode)->seals & F_SEAL_EXEC &&
	    (attr->ia_mode ^ inode->i_mode) & 0111)
		return -EPERM;
	if (attr->ia_valid & ATTR_SIZE) {
		loff_t old = i_size_read(inode);

		err = morsel_may_resize(morsel_of(inode), attr->ia_size) ?:
		      morsel_resize(morsel_of(inode), attr->ia_size);
		if (err)
			return err;
		if (attr->ia_size != old)
			inode_set_mtime_to_ts(inode,
					      inode_set_ctime_current(inode));
	}
	setattr_copy(idmap, inode, attr);
	return morsel_pmem_save(inode);
}

static int morsel_getattr(struct mnt_idmap *idmap, const struct path *path,
			  struct kstat *stat, u32 request_mask,
			  unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);

	generic_fillattr(idmap, request_mask, inode, stat);
	stat->blocks = percpu_counter_sum_positive(&morsel_of(inode)->pages) <<
		       (PAGE_SHIFT - SECTOR_SHIFT);
	stat->blksize = PMD_SIZE;
	return 0;
}

static int morsel_punch_hole(struct morsel *morsel, loff_t begin, loff_t end)
{
	loff_t first = round_up(begin, PAGE_SIZE);
	loff_t last = round_down(end, PAGE_SIZE);

	if (morsel->seals & MORSEL_NO_WRITES)
		return -EPERM;
	if (morsel->holds)
		return -EBUSY;
	morsel_zero_range(morsel, begin, min(first, end));
	if (last >= first)
		morsel_zero_range(morsel, last, end);
	if (last > first)
		morsel_remove_range(morsel, first >> PAGE_SHIFT, last >> PAGE_SHIFT, false);
	return 0;
}

static int morsel_allocate_range(struct morsel *morsel, int mode, loff_t begin,
				 loff_t end)
{
	struct inode *inode = &morsel->inode;
	pgoff_t index, limit = DIV_ROUND_UP(end, PAGE_SIZE);
	int err = inode_newsize_ok(inode, end);

	if (!err && end > i_size_read(inode) && morsel->seals & F_SEAL_GROW)
		err = -EPERM;
	if (!err && end > i_size_read(inode) && morsel->holds)
		err = -EBUSY;
	for (index = begin >> PAGE_SHIFT; !err && index < limit; index++) {
		err = morsel_fill(morsel, index, limit, NULL, 0, NULL);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	if (!err && !(mode & FALLOC_FL_KEEP_SIZE) && end > i_size_read(inode))
		morsel_grow(morsel, end);
	return err;
}

static long morsel_fallocate(struct file *file, int mode, loff_t begin,
			     loff_t length)
{
	struct inode *inode = file_inode(file);
	struct morsel *morsel = morsel_of(inode);
	int err;

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
		return -EOPNOTSUPP;
	inode_lock(inode);
	err = file_modified(file);
	if (!err && mode & FALLOC_FL_PUNCH_HOLE)
		err = morsel_punch_hole(morsel, begin, begin + length);
	else if (!err)
		err = morsel_allocate_range(morsel, mode, begin, begin + length);
	inode_unlock(inode);
	return err;
}

/**
 * morsel_is_file - whether a file is a morsel
 * @file: any file
 *
 * Context: any.
 * Return: true if so.
 */
bool morsel_is_file(const struct file *file)
{
	return file->f_op == &morsel_file_operations || morsel_pmem_is_file(file);
}

/**
 * morsel_owns_mapping - whether an address_space is that of a morsel
 * @mapping: address_space of a file
 *
 * A folio of it is one leaf of the morsel's own tables, and must not be split.
 *
 * Context: any, as long as the file stays.
 * Return: true if so.
 */
bool morsel_owns_mapping(const struct address_space *mapping)
{
	return mapping->a_ops == &morsel_aops;
}

static void morsel_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct morsel *morsel = morsel_of(file_inode(file));
	int writers = atomic_read(&file->f_mapping->i_mmap_writable);

	seq_printf(m, "morsel_seals:\t%#x\n", READ_ONCE(morsel->seals));
	seq_printf(m, "morsel_resident_kb:\t%lld\n",
		   percpu_counter_sum_positive(&morsel->pages) <<
			   (PAGE_SHIFT - 10));
	/* Mappings that a seal would wait for; negative while it excludes them. */
	seq_printf(m, "morsel_writers:\t%d\n", max(writers, 0));
	seq_printf(m, "morsel_holds:\t%u\n", READ_ONCE(morsel_of(file_inode(file))->holds));
}

const struct file_operations morsel_file_operations = {
	.open = morsel_open_file,
	.llseek = morsel_llseek,
	.read_iter = morsel_read_iter,
	.write_iter = morsel_write_iter,
	.mmap = morsel_mmap,
	.get_unmapped_area = morsel_get_unmapped_area,
	.fsync = noop_fsync,
	.splice_read = copy_splice_read,
	.splice_write = iter_file_splice_write,
	.fallocate = morsel_fallocate,
	.show_fdinfo = morsel_show_fdinfo,
};

const struct inode_operations morsel_file_inode_operations = {
	.setattr = morsel_setattr,
	.getattr = morsel_getattr,
	.listxattr = morsel_list_xattrs,
	.set_acl = morsel_set_acl,
};

const struct address_space_operations morsel_aops = {
	.dirty_folio = noop_dirty_folio,
};
