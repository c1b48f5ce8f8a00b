// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of persistent memory: reads, and mappings by page or by 2 MiB. Tables of sealed
 * morsels are attached instead, where they can be (pmem_fill.c).
 *
 * The words on the way to a page are checked each time: a program that writes to the device
 * beside the mount gets errors, and never a page outside the range. Page-table entries are
 * those of DAX (pte_devmap): they hold no reference of the page structure, and pins take
 * one.
 */

#include <linux/dax.h>
#include <linux/fs.h>
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/pfn_t.h>
#include <linux/splice.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "pmem.h"
#include "vma.h"

/* Reads */

/* Copy at most @length bytes from a place of the range. Return: number, or an error. */
static ssize_t morsel_pmem_copy(const struct morsel_pmem *pmem, const struct morsel_run *run,
				size_t offset, size_t length, struct iov_iter *to)
{
	long pages = DIV_ROUND_UP(offset + length, PAGE_SIZE);
	int id = dax_read_lock();
	ssize_t copied = -EIO;
	void *address;

	pages = morsel_pmem_reach(pmem, run->page, pages, &address);
	if (pages > 0)
		copied = dax_copy_to_iter(pmem->dax, pmem->first + run->page, address + offset,
					  min_t(size_t, length, pages * PAGE_SIZE - offset), to);
	dax_read_unlock(id);
	return copied;
}

/* Read a part. Return: number of bytes, or an error. */
static ssize_t morsel_pmem_read_some(struct inode *inode, loff_t at, size_t length,
				     struct iov_iter *to)
{
	size_t offset = offset_in_page(at);
	struct morsel_run run;
	ssize_t copied;
	int err = morsel_pmem_find(inode, at >> PAGE_SHIFT, &run);

	if (err)
		return err;
	length = min_t(u64, length, run.pages * PAGE_SIZE - offset);
	copied = run.page ? morsel_pmem_copy(morsel_pmem_of(inode), &run, offset, length, to) :
			    iov_iter_zero(length, to);
	return copied ?: -EFAULT;
}

static ssize_t morsel_pmem_read_all_of(struct inode *inode, struct kiocb *iocb,
				       struct iov_iter *to)
{
	loff_t size = i_size_read(inode);
	ssize_t done = 0;

	while (iov_iter_count(to) && iocb->ki_pos < size) {
		size_t length = min3(iov_iter_count(to), MORSEL_PMEM_CHUNK,
				     (size_t)(size - iocb->ki_pos));
		ssize_t copied = morsel_pmem_read_some(inode, iocb->ki_pos, length, to);

		if (copied < 0)
			return done ?: copied;
		iocb->ki_pos += copied;
		done += copied;
		if (fatal_signal_pending(current))
			return done;
		cond_resched();
	}
	return done;
}

static ssize_t morsel_pmem_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t done;

	/* Blocks stay meanwhile. */
	inode_lock_shared(inode);
	done = morsel_pmem_read_all_of(inode, iocb, to);
	inode_unlock_shared(inode);
	file_accessed(iocb->ki_filp);
	return done;
}

/* Mappings */

static bool morsel_pmem_is_beyond(const struct inode *inode, pgoff_t index)
{
	return index >= DIV_ROUND_UP(i_size_read(inode), PAGE_SIZE);
}

/* Copy a page for a write to a private mapping. */
static vm_fault_t morsel_pmem_copy_page(struct vm_fault *vmf, const struct morsel_run *run)
{
	const struct morsel_pmem *pmem = morsel_pmem_of(file_inode(vmf->vma->vm_file));
	void *to = page_address(vmf->cow_page);
	vm_fault_t fault;

	if (!run->page)
		clear_page(to);
	else if (pmem->medium.read(&pmem->medium, run->page << PAGE_SHIFT, to, PAGE_SIZE))
		return VM_FAULT_HWPOISON;
	__folio_mark_uptodate(page_folio(vmf->cow_page));
	fault = finish_fault(vmf);
	return fault ?: VM_FAULT_DONE_COW;
}

static vm_fault_t morsel_pmem_fault_of(int err)
{
	return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

/* Whether a fault changes the file, and not a copy. */
static bool morsel_pmem_writes(const struct vm_fault *vmf)
{
	return vmf->flags & FAULT_FLAG_WRITE && vmf->vma->vm_flags & VM_SHARED;
}

/* Map the page of zeros, or what another task has added meanwhile. */
static vm_fault_t morsel_pmem_map_hole(struct vm_fault *vmf, struct morsel_run *run)
{
	const struct inode *inode = file_inode(vmf->vma->vm_file);
	vm_fault_t fault = 0;

	guard(mutex)(&morsel_of(inode)->adding);
	if (morsel_pmem_find(inode, vmf->pgoff, run))
		return VM_FAULT_SIGBUS;
	if (!run->page)
		fault = vmf_insert_mixed(vmf->vma, vmf->address,
					 pfn_to_pfn_t(my_zero_pfn(vmf->address)));
	return fault;
}

static vm_fault_t morsel_pmem_map_page(struct vm_fault *vmf, const struct morsel_run *run)
{
	const struct morsel_pmem *pmem = morsel_pmem_of(file_inode(vmf->vma->vm_file));
	long pages;
	pfn_t pfn;

	pages = morsel_pmem_pfn(pmem, run->page, 1, &pfn);
	if (pages < 1)
		return pages == -EHWPOISON ? VM_FAULT_HWPOISON : VM_FAULT_SIGBUS;
	return morsel_pmem_writes(vmf) ? vmf_insert_mixed_mkwrite(vmf->vma, vmf->address, pfn) :
					 vmf_insert_mixed(vmf->vma, vmf->address, pfn);
}

/* Let a page be there that is about to be written. */
static int morsel_pmem_prepare(struct inode *inode, pgoff_t index, struct morsel_run *run)
{
	int err = morsel_pmem_note_written(inode, index) ?: morsel_pmem_find(inode, index, run);

	if (!err && !run->page)
		err = morsel_pmem_provide(inode, index, 0) ?:
		      morsel_pmem_find(inode, index, run);
	return err;
}

/* Map a page. Blocks stay meanwhile. */
static vm_fault_t morsel_pmem_fault_in(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct morsel_run run;
	vm_fault_t fault = 0;
	int err;

	if (morsel_pmem_is_beyond(inode, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	err = morsel_pmem_writes(vmf) ? morsel_pmem_prepare(inode, vmf->pgoff, &run) :
					morsel_pmem_find(inode, vmf->pgoff, &run);
	if (err)
		return morsel_pmem_fault_of(err);
	if (vmf->cow_page)
		return morsel_pmem_copy_page(vmf, &run);
	if (!run.page)
		fault = morsel_pmem_map_hole(vmf, &run);
	return fault ?: morsel_pmem_map_page(vmf, &run);
}

/* Map 2 MiB of a slot of the mapping that are whole in the file. Blocks stay meanwhile. */
static vm_fault_t morsel_pmem_fault_in_block(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	pgoff_t index = round_down(vmf->pgoff, PMD_PAGES);
	bool is_write = morsel_pmem_writes(vmf);
	struct morsel_run run;
	pfn_t pfn;

	if (morsel_pmem_is_beyond(inode, index + PMD_PAGES - 1) ||
	    morsel_pmem_find(inode, index, &run))
		return VM_FAULT_FALLBACK;
	if (is_write && !run.page && run.level)
		morsel_pmem_provide(inode, index, 1);
	if (!morsel_pmem_find_block(inode, index, PMD_PAGES, &pfn) ||
	    (is_write && morsel_pmem_note_written(inode, index)))
		return VM_FAULT_FALLBACK;
	return vmf_insert_pfn_pmd(vmf, pfn, is_write);
}

/* Call a function that maps a page or block, between what a write needs. */
static vm_fault_t morsel_pmem_handle(struct vm_fault *vmf,
				     vm_fault_t (*map)(struct vm_fault *vmf))
{
	struct file *file = vmf->vma->vm_file;
	bool is_write = morsel_pmem_writes(vmf);
	vm_fault_t fault;

	if (is_write) {
		sb_start_pagefault(file_inode(file)->i_sb);
		file_update_time(file);
	}
	filemap_invalidate_lock_shared(file->f_mapping);
	fault = map(vmf);
	filemap_invalidate_unlock_shared(file->f_mapping);
	if (is_write)
		sb_end_pagefault(file_inode(file)->i_sb);
	return fault;
}

static vm_fault_t morsel_pmem_fault(struct vm_fault *vmf)
{
	return morsel_pmem_handle(vmf, morsel_pmem_fault_in);
}

static vm_fault_t morsel_pmem_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	struct morsel_span span = morsel_vma_span(vmf->vma);

	if (order != PMD_ORDER || morsel_slot_level(&span, vmf->address) == MORSEL_PAGE ||
	    (vmf->flags & FAULT_FLAG_WRITE && !morsel_pmem_writes(vmf)))
		return VM_FAULT_FALLBACK;
	return morsel_pmem_handle(vmf, morsel_pmem_fault_in_block);
}

/* Mappings that may write are counted until no processor has an entry of theirs. */
static bool morsel_pmem_may_write_through(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE);
}

static void morsel_pmem_vm_open(struct vm_area_struct *vma)
{
	morsel_vm_open(vma);
	if (morsel_pmem_may_write_through(vma))
		atomic_inc(&morsel_in(vma)->writers);
}

static void morsel_pmem_vm_close(struct vm_area_struct *vma)
{
	if (morsel_pmem_may_write_through(vma))
		atomic_dec(&morsel_in(vma)->writers);
}

static const struct vm_operations_struct morsel_pmem_vm_ops = {
	.open = morsel_pmem_vm_open,
	.close = morsel_pmem_vm_close,
	.may_split = morsel_may_split,
	.mprotect = morsel_mprotect,
	.fault = morsel_pmem_fault,
	.huge_fault = morsel_pmem_huge_fault,
	/* Pages are mapped for writing only by a fault, which notes it. */
	.pfn_mkwrite = morsel_pmem_fault,
};

static int morsel_pmem_mmap(struct file *file, struct vm_area_struct *vma)
{
	int err = morsel_mmap(file, vma);

	vma->vm_ops = &morsel_pmem_vm_ops;
	if (!err && morsel_pmem_may_write_through(vma))
		atomic_inc(&morsel_in(vma)->writers);
	return err;
}

/**
 * morsel_pmem_is_file - whether a file is one of persistent memory
 * @file: any file
 *
 * Context: any.
 * Return: true if so.
 */
bool morsel_pmem_is_file(const struct file *file)
{
	return file->f_op == &morsel_pmem_file_operations;
}

const struct file_operations morsel_pmem_file_operations = {
	.open = morsel_open_file,
	.llseek = morsel_pmem_llseek,
	.read_iter = morsel_pmem_read_iter,
	.write_iter = morsel_pmem_write_iter,
	.mmap = morsel_pmem_mmap,
	.get_unmapped_area = morsel_get_unmapped_area,
	.fsync = morsel_pmem_fsync,
	.splice_read = copy_splice_read,
	.splice_write = iter_file_splice_write,
	.fallocate = morsel_pmem_fallocate,
};
