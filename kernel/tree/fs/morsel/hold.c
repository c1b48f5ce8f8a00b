// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds of whole morsels, by devices. The contract is in linux/morsel_device.h.
 */

#include <linux/export.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/morsel_device.h>

#include <trace/events/morsel.h>

#include "internal.h"
#include "pmem.h"

/**
 * morsel_is_enabled - whether morsels are attached, see /sys/kernel/mm/morsel/enabled
 *
 * Context: any.
 * Return: true if so.
 */
bool morsel_is_enabled(void)
{
	return static_branch_likely(&morsel_key);
}

static int morsel_check_hold(const struct file *file)
{
	unsigned int seals = READ_ONCE(morsel_of(file_inode(file))->seals);

	if (!(file->f_mode & FMODE_READ))
		return -EACCES;
	if (seals & F_SEAL_WRITE)
		return 0;
	/* The leaves of an open morsel are writable. */
	if (seals & F_SEAL_FUTURE_WRITE)
		return -EPERM;
	return file->f_mode & FMODE_WRITE ? 0 : -EACCES;
}

static bool morsel_is_whole(struct morsel *morsel, pgoff_t end)
{
	pgoff_t whole = READ_ONCE(morsel->whole);

	return end && (whole >= end || morsel_find_hole(morsel, whole, end) == end);
}

static long morsel_hold_locked(struct file *file)
{
	struct morsel *morsel = morsel_of(file_inode(file));
	pgoff_t end = DIV_ROUND_UP_ULL(i_size_read(&morsel->inode), PAGE_SIZE);
	int err = morsel_check_hold(file);

	if (err)
		return err;
	if (!morsel_is_whole(morsel, end))
		return -ENODATA;
	morsel->holds++;
	get_file(file);
	morsel_count(MORSEL_HELD);
	trace_morsel_hold(&morsel->inode, morsel->holds);
	return DIV_ROUND_UP(end, PUD_PAGES);
}

/**
 * morsel_hold - keep size, pages and tables of a morsel for a device
 * @file: any file
 *
 * As long as it is held, what would change them fails with -EBUSY.
 *
 * Context: may sleep; takes the lock of the inode.
 * Return: the number of its GiB, at least 1; -EINVAL if @file is not a morsel, -EOPNOTSUPP
 * for one in persistent memory or if morsels are switched off, -EACCES or -EPERM if the
 * device could do what @file may not, -ENODATA if a page is missing.
 */
long morsel_hold(struct file *file)
{
	struct inode *inode = file_inode(file);
	long slots;

	if (!morsel_is_file(file))
		return -EINVAL;
	if (!morsel_is_enabled() || morsel_pmem_is_file(file))
		return -EOPNOTSUPP;
	inode_lock(inode);
	slots = morsel_hold_locked(file);
	inode_unlock(inode);
	return slots;
}
EXPORT_SYMBOL_GPL(morsel_hold);

/**
 * morsel_unhold - end morsel_hold()
 * @file: the file, detached from the device
 *
 * Context: may sleep; takes the lock of the inode.
 */
void morsel_unhold(struct file *file)
{
	struct morsel *morsel = morsel_of(file_inode(file));

	inode_lock(&morsel->inode);
	morsel->holds--;
	trace_morsel_unhold(&morsel->inode, morsel->holds);
	inode_unlock(&morsel->inode);
	fput(file);
}
EXPORT_SYMBOL_GPL(morsel_unhold);

/**
 * morsel_held_entry - entry that maps a GiB of a held morsel
 * @file: the file
 * @slot: number of the GiB
 *
 * Context: any; the morsel is held.
 * Return: its PUD entry: a table, or a leaf.
 */
u64 morsel_held_entry(struct file *file, unsigned long slot)
{
	return pud_val(READ_ONCE(*morsel_pud(morsel_of(file_inode(file)), slot * PUD_PAGES)));
}
