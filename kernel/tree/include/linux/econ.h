/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * econ: every operation of memory management has a cost and a benefit to user
 * space, and is done only if it pays. See Documentation/mm/econ.rst.
 *
 * This is the interface that maintains the profile of a process. The places that
 * decide about operations use mm/econ/hooks.h.
 *
 * Ownership
 * =========
 *
 * A *profile* is text made from an earlier run of a program. Once parsed it never
 * changes; processes share it by counted references. The signal_struct of a process
 * refers to it, so that a launcher can write it before it executes the program.
 * Children inherit it, and executing a file that raises privileges drops it. It is
 * written under exec_update_lock, by a caller that may attach to the program that the
 * process runs at that time.
 *
 * An *mm* has the part of the profile that applies to its addresses: struct econ_mm,
 * created when a program with the name in the profile starts, copied by fork, freed
 * with the mm. Its address ranges are written under the mmap lock, held for writing,
 * and read by faults under RCU, with no lock of the mm or with the lock of one VMA.
 * Replacing the struct econ_mm of an mm defers freeing the old one by a grace period.
 * Rows of a profile live as long as the structures that refer to them.
 *
 * A fault of a process without a profile pays one branch.
 */
#ifndef _LINUX_ECON_H
#define _LINUX_ECON_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <uapi/linux/econ.h>

struct econ_holder;
struct econ_mm;
struct linux_binprm;

#ifdef CONFIG_ECON

extern const struct file_operations econ_profile_operations;
extern const struct file_operations econ_ledger_operations;

void __econ_copy_mm(struct mm_struct *mm, struct mm_struct *old);
void __econ_free_mm(struct mm_struct *mm);
void __econ_copy_signal(struct signal_struct *signal);
void __econ_free_signal(struct signal_struct *signal);
void __econ_exec(struct linux_binprm *bprm);
void __econ_mapped(struct mm_struct *mm, unsigned long begin,
		   unsigned long length, unsigned long protection,
		   unsigned long flags, struct file *file);
void __econ_moved(struct mm_struct *mm, unsigned long old,
		  unsigned long old_length, unsigned long new,
		  unsigned long new_length);

/**
 * econ_init_mm - initialise a new mm without a profile
 * @mm: the mm, not visible to other tasks yet
 *
 * Context: any.
 */
static inline void econ_init_mm(struct mm_struct *mm)
{
	RCU_INIT_POINTER(mm->econ, NULL);
}

/**
 * econ_copy_mm - copy the address ranges of a parent to its child
 * @mm: mm of the child, not in use yet
 * @old: mm of the parent
 *
 * Context: may sleep; takes the mmap lock of @old.
 */
static inline void econ_copy_mm(struct mm_struct *mm, struct mm_struct *old)
{
	if (unlikely(rcu_access_pointer(old->econ)))
		__econ_copy_mm(mm, old);
}

/**
 * econ_free_mm - free the econ state of an mm that is not in use any more
 * @mm: the mm
 *
 * Context: any; interrupts may be disabled.
 */
static inline void econ_free_mm(struct mm_struct *mm)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_free_mm(mm);
}

/**
 * econ_copy_signal - let a child inherit the profile of its parent
 * @signal: signal_struct of the child, not visible to other tasks yet
 *
 * Context: process; takes a spinlock.
 */
static inline void econ_copy_signal(struct signal_struct *signal)
{
	if (unlikely(rcu_access_pointer(current->signal->econ)))
		__econ_copy_signal(signal);
}

/**
 * econ_free_signal - drop the profile of a process after its last thread exited
 * @signal: signal_struct of the process
 *
 * Context: any, including atomic.
 */
static inline void econ_free_signal(struct signal_struct *signal)
{
	if (unlikely(rcu_access_pointer(signal->econ)))
		__econ_free_signal(signal);
}

/**
 * econ_exec - apply the profile of a process to the program that it executes
 * @bprm: the program; the task has its new mm, in which only the stack is mapped
 *
 * Context: may sleep; takes the mmap lock.
 */
static inline void econ_exec(struct linux_binprm *bprm)
{
	if (unlikely(rcu_access_pointer(current->signal->econ)))
		__econ_exec(bprm);
}

/**
 * econ_mapped - apply the profile to a new mapping
 * @mm: the mm
 * @begin: address of the mapping, or an error
 * @length: length in bytes
 * @protection: PROT_* flags
 * @flags: MAP_* flags
 * @file: mapped file, or NULL
 *
 * Context: may sleep; the mmap lock is held for writing.
 */
static inline void econ_mapped(struct mm_struct *mm, unsigned long begin,
			       unsigned long length, unsigned long protection,
			       unsigned long flags, struct file *file)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_mapped(mm, begin, length, protection, flags, file);
}

/**
 * econ_moved - update the ranges of a mapping that was moved or resized
 * @mm: the mm
 * @old: old address
 * @old_length: old length in bytes; the rest of the mapping stays in place
 * @new: new address, or an error
 * @new_length: new length in bytes
 *
 * Context: may sleep; the mmap lock is held for writing.
 */
static inline void econ_moved(struct mm_struct *mm, unsigned long old,
			      unsigned long old_length, unsigned long new,
			      unsigned long new_length)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_moved(mm, old, old_length, new, new_length);
}

/**
 * econ_prctl - get or set the mode of the calling program
 * @action: PR_ECON_SET_MODE or PR_ECON_GET_MODE
 * @mode: one of PR_ECON_MODE_* to set, 0 to get
 * @unused: 0
 * @unused_too: 0
 *
 * Context: process.
 * Return: 0 or the mode, -EINVAL, or -ENODATA if the program has no profile.
 */
long econ_prctl(unsigned long action, unsigned long mode, unsigned long unused,
		unsigned long unused_too);

#else /* !CONFIG_ECON */

static inline void econ_init_mm(struct mm_struct *mm)
{
}

static inline void econ_copy_mm(struct mm_struct *mm, struct mm_struct *old)
{
}

static inline void econ_free_mm(struct mm_struct *mm)
{
}

static inline void econ_copy_signal(struct signal_struct *signal)
{
}

static inline void econ_free_signal(struct signal_struct *signal)
{
}

static inline void econ_exec(struct linux_binprm *bprm)
{
}

static inline void econ_mapped(struct mm_struct *mm, unsigned long begin,
			       unsigned long length, unsigned long protection,
			       unsigned long flags, struct file *file)
{
}

static inline void econ_moved(struct mm_struct *mm, unsigned long old,
			      unsigned long old_length, unsigned long new,
			      unsigned long new_length)
{
}

#endif /* !CONFIG_ECON */

#endif /* _LINUX_ECON_H */
