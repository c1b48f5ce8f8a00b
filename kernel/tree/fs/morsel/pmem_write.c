// SPDX-License-Identifier: GPL-2.0-only
/*
 * Content of open morsels in persistent memory: blocks, writes, holes, sizes, seals.
 *
 * The lock of the inode serialises what changes content and size. Faults add blocks
 * without it: ->adding serialises them. What removes blocks, or needs that nothing
 * changes, holds invalidate_lock of the mapping for writing, which faults hold for
 * reading.
 */

#include <linux/dax.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <linux/xarray.h>

#include <trace/events/morsel.h>

#include "pmem.h"

/* Number of checks of a seal for the end of a pin, and the interval in ms. */
#define PIN_TRIES	10
#define PIN_PAUSE	15

/* Blocks */

/*
 * Add a block with content that was flushed, or free it. Pages of zeros that are mapped there
 * are unmapped.
 */
static int morsel_pmem_add(struct inode *inode, const struct morsel_node *block)
{
	struct morsel_pmem *pmem = morsel_pmem_of(inode);
	struct morsel *morsel = morsel_of(inode);
	unsigned long pages = morsel_span_of(block->level);
	int err;

	mutex_lock(&morsel->adding);
	err = morsel_tree_add(&pmem->range, morsel->at + MORSEL_INODE_ROOT, &morsel->root, block);
	if (!err)
		unmap_mapping_pages(inode->i_mapping, block->index, pages, false);
	mutex_unlock(&morsel->adding);
	trace_morsel_add(inode, block->index, block->level, err);
	if (err) {
		morsel_free_pages(&pmem->range, block->page, pages);
		return err;
	}
	percpu_counter_add(&morsel->pages, pages);
	morsel_count(block->level ? MORSEL_ADDED_LARGE : MORSEL_ADDED_SMALL);
	return 0;
}

/* Take a block for a page of a file: of 2 MiB if @level is 1 and there is one. */
static int morsel_pmem_take(struct inode *inode, pgoff_t index, unsigned int level,
			    struct morsel_node *block)
{
	struct morsel_range *range = &morsel_pmem_of(inode)->range;
	int err;

	*block = (struct morsel_node){ .level = level, .is_block = true };
	err = morsel_take_pages(range, level, &block->page);
	if (err && level) {
		morsel_count(MORSEL_NO_LARGE);
		block->level = 0;
		err = morsel_take_pages(range, 0, &block->page);
	}
	block->index = index & ~(morsel_span_of(block->level) - 1);
	return err;
}

/**
 * morsel_pmem_provide - add a block of zeros to a file
 * @inode: the file
 * @index: index of a page that is missing
 * @level: 1 for a block of 2 MiB, if there is one; 0 for a page
 *
 * Context: may sleep; nothing removes blocks.
 * Return: 0, also if another task added one, -ENOSPC, -EFBIG, -EUCLEAN or -EIO.
 */
int morsel_pmem_provide(struct inode *inode, pgoff_t index, unsigned int level)
{
	struct morsel_range *range = &morsel_pmem_of(inode)->range;
	struct morsel_node block;
	int err = morsel_pmem_take(inode, index, level, &block);

	if (err)
		return err;
	err = range->medium->zero(range->medium, block.page, morsel_node_pages(&block));
	if (err) {
		morsel_free_pages(range, block.page, morsel_node_pages(&block));
		return err;
	}
	err = morsel_pmem_add(inode, &block);
	return err == -EEXIST ? 0 : err;
}

/* Whether a page of a hole may get a block of 2 MiB, in a file with pages up to @end. */
static unsigned int morsel_pmem_level(const struct morsel_run *hole, pgoff_t index, pgoff_t end)
{
	return hole->level && round_up(index + 1, PMD_PAGES) <= end;
}

/* Remove the pages of a range from all mappings, and from the file. */
static int morsel_pmem_cut(struct inode *inode, pgoff_t first, pgoff_t end, bool with_copies)
{
	struct morsel_pmem *pmem = morsel_pmem_of(inode);
	struct morsel *morsel = morsel_of(inode);
	u64 pages;
	int err;

	filemap_invalidate_lock(inode->i_mapping);
	unmap_mapping_pages(inode->i_mapping, first, end - first, with_copies);
	err = morsel_tree_cut(&pmem->range, morsel->at + MORSEL_INODE_ROOT, &morsel->root,
			      first, end, &pages);
	filemap_invalidate_unlock(inode->i_mapping);
	percpu_counter_sub(&morsel->pages, pages);
	return err;
}

/* Zero bytes where there are pages. A fence follows. */
static int morsel_pmem_zero_range(struct inode *inode, loff_t from, loff_t to)
{
	const struct morsel_pmem *pmem = morsel_pmem_of(inode);
	int err = 0;

	while (!err && from < to) {
		size_t offset = offset_in_page(from);
		struct morsel_run run;
		u64 length;

		err = morsel_pmem_find(inode, from >> PAGE_SHIFT, &run);
		if (err)
			break;
		length = min_t(u64, (run.pages << PAGE_SHIFT) - offset, to - from);
		if (run.page) {
			length = min_t(u64, length, MORSEL_PMEM_CHUNK);
			err = morsel_pmem_zero_bytes(pmem, (run.page << PAGE_SHIFT) + offset,
						     length);
		}
		from += length;
		cond_resched();
	}
	return err;
}

/* What mappings have written */

/**
 * morsel_pmem_note_written - note that a page is about to be mapped for writing
 * @inode: the file
 * @index: index of the page
 *
 * Context: may sleep; invalidate_lock is held.
 * Return: 0 or -ENOMEM.
 */
int morsel_pmem_note_written(struct inode *inode, pgoff_t index)
{
	struct xarray *written = &morsel_of(inode)->written;

	if (xa_load(written, index / PMD_PAGES))
		return 0;
	return xa_err(xa_store(written, index / PMD_PAGES, xa_mk_value(1), GFP_KERNEL));
}

/* Write back the pages of 2 MiB. */
static int morsel_pmem_write_back_part(struct inode *inode, pgoff_t index)
{
	pgoff_t end = index + PMD_PAGES;
	int err = 0;

	while (!err && index < end) {
		struct morsel_run run;
		u64 pages;

		err = morsel_pmem_find(inode, index, &run);
		if (err)
			break;
		pages = min_t(u64, run.pages, end - index);
		if (run.page)
			err = morsel_pmem_flush(morsel_pmem_of(inode), run.page, pages);
		index += pages;
	}
	cond_resched();
	return err;
}

/**
 * morsel_pmem_write_back - make what mappings have stored persistent
 * @inode: the file
 * @first: index of the first page
 * @last: index of the last page
 *
 * What is still mapped may be written again, and stays noted.
 *
 * Context: may sleep; invalidate_lock is not held.
 * Return: 0, -EUCLEAN or -EIO.
 */
int morsel_pmem_write_back(struct inode *inode, pgoff_t first, pgoff_t last)
{
	struct morsel *morsel = morsel_of(inode);
	unsigned long at;
	bool is_mapped;
	void *entry;
	int err = 0;

	filemap_invalidate_lock(inode->i_mapping);
	is_mapped = atomic_read(&morsel->writers);
	xa_for_each_range(&morsel->written, at, entry, first / PMD_PAGES, last / PMD_PAGES) {
		err = err ?: morsel_pmem_write_back_part(inode, at * PMD_PAGES);
		if (!err && !is_mapped)
			xa_erase(&morsel->written, at);
	}
	morsel_pmem_wait(inode);
	filemap_invalidate_unlock(inode->i_mapping);
	return err;
}

/**
 * morsel_pmem_fsync - make a part of a file persistent
 * @file: the file
 * @begin: first byte
 * @end: last byte
 * @datasync: unused
 *
 * What write() has stored is so already.
 *
 * Context: may sleep.
 * Return: 0, -EUCLEAN or -EIO.
 */
int morsel_pmem_fsync(struct file *file, loff_t begin, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	int err;

	if (!morsel_pmem_of(inode)->is_writable)
		return 0;
	err = morsel_pmem_write_back(inode, begin >> PAGE_SHIFT, end >> PAGE_SHIFT);
	inode_lock(inode);
	morsel_pmem_touch(inode);
	inode_unlock(inode);
	return err;
}

static bool morsel_pmem_sync_inode(struct inode *inode, void *arg)
{
	int *err = arg;

	if (!xa_empty(&morsel_of(inode)->written))
		*err = morsel_pmem_write_back(inode, 0, ULONG_MAX) ?: *err;
	return false;
}

/**
 * morsel_pmem_sync - make all files of a mount persistent
 * @super: the mount
 * @wait: false for a call that is followed by another
 *
 * Context: may sleep; s_umount is held.
 * Return: 0, -EUCLEAN or -EIO.
 */
int morsel_pmem_sync(struct super_block *super, int wait)
{
	const struct morsel_pmem *pmem = morsel_sb_of(super)->pmem;
	int err = 0;

	if (wait && pmem && pmem->is_writable)
		morsel_pmem_each_inode(super, morsel_pmem_sync_inode, &err);
	return err;
}

/* Writes */

/* Copy at most @length bytes to a place of the range. Return: number, or an error. */
static ssize_t morsel_pmem_copy_from(const struct morsel_pmem *pmem, u64 at, size_t length,
				     struct iov_iter *from)
{
	pgoff_t page = at >> PAGE_SHIFT;
	long pages = DIV_ROUND_UP(offset_in_page(at) + length, PAGE_SIZE);
	int id = dax_read_lock();
	ssize_t copied = -EIO;
	void *address;

	pages = morsel_pmem_reach(pmem, page, pages, &address);
	if (pages > 0) {
		length = min_t(size_t, length, pages * PAGE_SIZE - offset_in_page(at));
		copied = dax_copy_from_iter(pmem->dax, pmem->first + page,
					    address + offset_in_page(at), length, from);
	}
	dax_read_unlock(id);
	return copied;
}

/* Store content to a new block, and zeros to the rest of it. A fence follows. */
static ssize_t morsel_pmem_fill_block(const struct morsel_pmem *pmem,
				      const struct morsel_node *block, size_t offset,
				      size_t length, struct iov_iter *from)
{
	u64 at = block->page << PAGE_SHIFT;
	size_t size = morsel_node_pages(block) << PAGE_SHIFT;
	ssize_t copied = morsel_pmem_copy_from(pmem, at + offset, length, from);
	size_t end = offset + max(copied, 0);

	if (copied <= 0)
		return copied ?: -EFAULT;
	return (offset ? morsel_pmem_zero_bytes(pmem, at, offset) : 0) ?:
	       (end < size ? morsel_pmem_zero_bytes(pmem, at + end, size - end) : 0) ?:
	       copied;
}

/* Write to a hole. Return: number of bytes, 0 to try again, or an error. */
static ssize_t morsel_pmem_write_block(struct inode *inode, loff_t at, size_t length,
				       unsigned int level, struct iov_iter *from)
{
	struct morsel_pmem *pmem = morsel_pmem_of(inode);
	struct morsel_node block;
	ssize_t copied;
	size_t offset;
	int err = morsel_pmem_take(inode, at >> PAGE_SHIFT, level, &block);

	if (err)
		return err;
	offset = at - ((loff_t)block.index << PAGE_SHIFT);
	length = min_t(size_t, length, (morsel_node_pages(&block) << PAGE_SHIFT) - offset);
	copied = morsel_pmem_fill_block(pmem, &block, offset, length, from);
	if (copied < 0) {
		morsel_free_pages(&pmem->range, block.page, morsel_node_pages(&block));
		return copied;
	}
	err = morsel_pmem_add(inode, &block);
	if (!err)
		return copied;
	/* A fault has added a block meanwhile. */
	iov_iter_revert(from, copied);
	return err == -EEXIST ? 0 : err;
}

/* Write a part, of a file that has pages up to @end. As above. */
static ssize_t morsel_pmem_write_some(struct inode *inode, loff_t at, pgoff_t end,
				      struct iov_iter *from)
{
	size_t length = min(iov_iter_count(from), MORSEL_PMEM_CHUNK);
	size_t offset = offset_in_page(at);
	struct morsel_run run;
	ssize_t copied;
	int err = morsel_pmem_find(inode, at >> PAGE_SHIFT, &run);

	if (err)
		return err;
	if (!run.page)
		return morsel_pmem_write_block(inode, at, length,
					       morsel_pmem_level(&run, at >> PAGE_SHIFT, end),
					       from);
	length = min_t(u64, length, (run.pages << PAGE_SHIFT) - offset);
	copied = morsel_pmem_copy_from(morsel_pmem_of(inode), (run.page << PAGE_SHIFT) + offset,
				       length, from);
	return copied ?: -EFAULT;
}

/* As in memory: a file larger than a block is likely to grow to the end of its last one. */
static pgoff_t morsel_pmem_write_limit(const struct inode *inode, loff_t end)
{
	loff_t size = max(end, i_size_read(inode));

	return DIV_ROUND_UP_ULL(size > PMD_SIZE ? round_up(size, PMD_SIZE) : size, PAGE_SIZE);
}

/* Store the size, and the times, after the content. */
static int morsel_pmem_end_write(struct inode *inode, loff_t end)
{
	int err = 0;

	morsel_pmem_wait(inode);
	if (end > i_size_read(inode)) {
		err = morsel_pmem_set_field(inode, MORSEL_INODE_SIZE, end);
		i_size_write(inode, end);
	}
	err = err ?: morsel_pmem_set_times(inode);
	morsel_pmem_wait(inode);
	return err;
}

static ssize_t morsel_pmem_write_all(struct inode *inode, struct kiocb *iocb,
				     struct iov_iter *from)
{
	loff_t size = i_size_read(inode), at = iocb->ki_pos;
	pgoff_t end = morsel_pmem_write_limit(inode, at + iov_iter_count(from));
	ssize_t copied = at > size ? morsel_pmem_zero_range(inode, size, at) : 0;
	int err;

	while (copied >= 0 && iov_iter_count(from)) {
		copied = fatal_signal_pending(current) ? -EINTR :
			 morsel_pmem_write_some(inode, at, end, from);
		at += max(copied, 0);
		cond_resched();
	}
	if (at == iocb->ki_pos)
		return copied;
	err = morsel_pmem_end_write(inode, at);
	if (err)
		return err;
	swap(at, iocb->ki_pos);
	return iocb->ki_pos - at;
}

/* Whether a seal lets something be written. Return: 0 or -EPERM. */
static int morsel_pmem_may_write(const struct inode *inode, loff_t at, struct iov_iter *from)
{
	unsigned int seals = morsel_of(inode)->seals;
	loff_t room = i_size_read(inode) - at;

	if (seals & F_SEAL_WRITE || (seals & F_SEAL_GROW && room <= 0))
		return -EPERM;
	if (seals & F_SEAL_GROW)
		iov_iter_truncate(from, room);
	return 0;
}

/**
 * morsel_pmem_write_iter - write to a file
 * @iocb: file and place
 * @from: the content
 *
 * What was written is persistent.
 *
 * Context: may sleep.
 * Return: number of bytes, -EPERM if a seal forbids it, -ENOSPC, or another error.
 */
ssize_t morsel_pmem_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t done;

	inode_lock(inode);
	done = generic_write_checks(iocb, from);
	if (done > 0)
		done = morsel_pmem_may_write(inode, iocb->ki_pos, from) ?:
		       file_modified(iocb->ki_filp) ?:
		       morsel_pmem_write_all(inode, iocb, from);
	inode_unlock(inode);
	return done;
}

/* Sizes and holes */

static int morsel_pmem_grow(struct inode *inode, loff_t size)
{
	int err = morsel_pmem_zero_range(inode, i_size_read(inode), size);

	return err ?: morsel_pmem_end_write(inode, size);
}

static int morsel_pmem_shrink(struct inode *inode, loff_t size)
{
	int err = morsel_pmem_set_field(inode, MORSEL_INODE_SIZE, size);

	if (err)
		return err;
	morsel_pmem_wait(inode);
	i_size_write(inode, size);
	err = morsel_pmem_cut(inode, DIV_ROUND_UP(size, PAGE_SIZE), ULONG_MAX, true) ?:
	      morsel_pmem_zero_range(inode, size, round_up(size, PAGE_SIZE));
	morsel_pmem_wait(inode);
	return err;
}

/**
 * morsel_pmem_resize - change the size of a file
 * @inode: the file
 * @size: its new size, which the seals permit
 *
 * Context: may sleep; the lock of the inode is held. The caller stores the times.
 * Return: 0, -EUCLEAN or -EIO.
 */
int morsel_pmem_resize(struct inode *inode, loff_t size)
{
	loff_t old = i_size_read(inode);

	if (size == old)
		return 0;
	return size > old ? morsel_pmem_grow(inode, size) : morsel_pmem_shrink(inode, size);
}

static int morsel_pmem_punch(struct inode *inode, loff_t begin, loff_t end)
{
	pgoff_t first = DIV_ROUND_UP_ULL(begin, PAGE_SIZE), last = end >> PAGE_SHIFT;
	int err = 0;

	if (morsel_of(inode)->seals & F_SEAL_WRITE)
		return -EPERM;
	if (last > first)
		err = morsel_pmem_cut(inode, first, last, false);
	return err ?: morsel_pmem_zero_range(inode, begin, end);
}

/* Add blocks of zeros where there are none. */
static int morsel_pmem_allocate(struct inode *inode, pgoff_t index, pgoff_t end)
{
	int err = 0;

	while (!err && index < end) {
		struct morsel_run run;

		err = fatal_signal_pending(current) ? -EINTR :
		      morsel_pmem_find(inode, index, &run);
		if (!err && run.page)
			index += run.pages;
		else if (!err)
			err = morsel_pmem_provide(inode, index,
						  morsel_pmem_level(&run, index, end));
		cond_resched();
	}
	return err;
}

static int morsel_pmem_extend(struct inode *inode, int mode, loff_t begin, loff_t end)
{
	int err = inode_newsize_ok(inode, end);

	if (!err && end > i_size_read(inode) && morsel_of(inode)->seals & F_SEAL_GROW)
		err = -EPERM;
	err = err ?: morsel_pmem_allocate(inode, begin >> PAGE_SHIFT,
					  DIV_ROUND_UP_ULL(end, PAGE_SIZE));
	if (!err && !(mode & FALLOC_FL_KEEP_SIZE) && end > i_size_read(inode))
		err = morsel_pmem_grow(inode, end);
	return err;
}

/**
 * morsel_pmem_fallocate - add blocks of zeros to a file, or remove blocks
 * @file: the file
 * @mode: FALLOC_FL_*
 * @begin: begin of the range
 * @length: its length
 *
 * Context: may sleep.
 * Return: 0, -EOPNOTSUPP, -EPERM if a seal forbids it, -ENOSPC, or another error.
 */
long morsel_pmem_fallocate(struct file *file, int mode, loff_t begin, loff_t length)
{
	struct inode *inode = file_inode(file);
	int err;

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
		return -EOPNOTSUPP;
	inode_lock(inode);
	err = file_modified(file);
	if (!err)
		err = mode & FALLOC_FL_PUNCH_HOLE ?
			      morsel_pmem_punch(inode, begin, begin + length) :
			      morsel_pmem_extend(inode, mode, begin, begin + length);
	morsel_pmem_touch(inode);
	inode_unlock(inode);
	return err;
}

static loff_t morsel_pmem_seek(const struct inode *inode, loff_t offset, int whence)
{
	loff_t size = i_size_read(inode);
	pgoff_t index = offset >> PAGE_SHIFT, end = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct morsel_run run;

	if (offset < 0 || offset >= size)
		return -ENXIO;
	for (; index < end; index += run.pages) {
		int err = morsel_pmem_find(inode, index, &run);

		if (err)
			return err;
		if (run.page ? whence == SEEK_DATA : whence == SEEK_HOLE)
			break;
	}
	if (index >= end && whence == SEEK_DATA)
		return -ENXIO;
	return clamp_t(loff_t, (loff_t)index << PAGE_SHIFT, offset, size);
}

/**
 * morsel_pmem_llseek - move the place of a file
 * @file: the file
 * @offset: where
 * @whence: SEEK_*
 *
 * Context: may sleep.
 * Return: the place, or an error.
 */
loff_t morsel_pmem_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);

	if (whence != SEEK_HOLE && whence != SEEK_DATA)
		return generic_file_llseek(file, offset, whence);
	inode_lock_shared(inode);
	offset = morsel_pmem_seek(inode, offset, whence);
	inode_unlock_shared(inode);
	return offset < 0 ? offset : vfs_setpos(file, offset, inode->i_sb->s_maxbytes);
}

/* Seals */

/* Whether a device or a pipe holds a page of a file. */
static bool morsel_pmem_is_pinned(struct inode *inode)
{
	const struct morsel_medium *medium = &morsel_pmem_of(inode)->medium;
	pgoff_t index, end = DIV_ROUND_UP_ULL(i_size_read(inode), PAGE_SIZE);
	struct morsel_run run;

	for (index = 0; index < end; index += run.pages) {
		if (morsel_pmem_find(inode, index, &run))
			return true;
		run.pages = min_t(u64, run.pages, run.page ? PMD_PAGES : run.pages);
		if (run.page && medium->is_held(medium, run.page, run.pages))
			return true;
		cond_resched();
	}
	return false;
}

/* Wait for pins. A mapping that may write excludes the seal. */
static int morsel_pmem_wait_for_pins(struct inode *inode)
{
	int tries = 0;

	if (atomic_read(&morsel_of(inode)->writers))
		return -EBUSY;
	/* get_user_pages_fast() may have read entries of a mapping that is gone. */
	synchronize_rcu();
	while (morsel_pmem_is_pinned(inode))
		if (tries++ == PIN_TRIES ||
		    schedule_timeout_killable(msecs_to_jiffies(PIN_PAUSE)))
			return -EBUSY;
	return 0;
}

/* Store the seals, after all content. */
static int morsel_pmem_set_seals(struct inode *inode, unsigned int seals)
{
	struct morsel *morsel = morsel_of(inode);
	u64 root;
	int err = morsel_pmem_write_back(inode, 0, ULONG_MAX);

	if (err)
		return err;
	mutex_lock(&morsel->adding);
	root = morsel->root | (u64)seals << 44;
	err = morsel_pmem_set_field(inode, MORSEL_INODE_ROOT, root);
	if (!err)
		WRITE_ONCE(morsel->root, root);
	mutex_unlock(&morsel->adding);
	inode_set_ctime_current(inode);
	err = err ?: morsel_pmem_set_times(inode);
	morsel_pmem_wait(inode);
	return err;
}

/**
 * morsel_pmem_seal - add seals to a file
 * @inode: the file
 * @seals: F_SEAL_* flags; set to those to add
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0, -EINVAL for seals that the format does not have, -EBUSY while the file can be
 * written, -EUCLEAN or -EIO.
 */
int morsel_pmem_seal(struct inode *inode, unsigned int *seals)
{
	struct address_space *mapping = inode->i_mapping;
	bool is_new = *seals & ~morsel_of(inode)->seals & F_SEAL_WRITE;
	int err;

	if (*seals & ~(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return -EINVAL;
	if (!is_new)
		return morsel_pmem_set_seals(inode, *seals);
	err = mapping_deny_writable(mapping);
	if (err)
		return err;
	*seals |= F_SEAL_SHRINK | F_SEAL_GROW;
	err = morsel_pmem_wait_for_pins(inode) ?: morsel_pmem_set_seals(inode, *seals);
	if (!err) {
		WRITE_ONCE(morsel_of(inode)->seals, morsel_of(inode)->seals | *seals);
		morsel_count(MORSEL_SEALED);
		trace_morsel_seal(inode);
	}
	/* From here on ->mmap() refuses writers. */
	mapping_allow_writable(mapping);
	return err;
}
