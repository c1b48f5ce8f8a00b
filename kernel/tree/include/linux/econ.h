/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * econ: every operation of memory management has a cost and a benefit to user
 * space, and is done only if it pays. See Documentation/mm/econ.rst.
 *
 * What the rest of the kernel calls so that a process has a profile: the places
 * where operations are decided call mm/econ/hooks.h.
 *
 * Whose is what
 * =============
 *
 * A *profile* is text that was made of an earlier run of a program. Parsed, it
 * never changes; processes share it by counted references. A process has it by
 * its signal_struct, so that a launcher can write it before it executes the
 * program; children inherit it, and it is dropped where executing a file raises
 * privileges. It is written under exec_update_lock, by a caller that may attach to the
 * program which the process runs then.
 *
 * An *mm* has what the profile says of its own addresses: struct econ_mm, made
 * when a program begins whose name the profile has, copied by fork, freed with
 * the mm. Its address ranges are written under the mmap lock, held for writing,
 * and read by faults under RCU, with no lock of the mm at all or with that of one
 * mapping. Whoever replaces an mm's struct econ_mm waits for a grace period
 * before it frees the old one; rows of a profile live as long as what refers to
 * them.
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
 * econ_init_mm - an mm begins with nothing that is known of it
 * @mm: the mm; nobody else sees it yet
 */
static inline void econ_init_mm(struct mm_struct *mm)
{
	RCU_INIT_POINTER(mm->econ, NULL);
}

/**
 * econ_copy_mm - a child has the ranges of its parent
 * @mm: of the child; not used yet
 * @old: of the parent
 */
static inline void econ_copy_mm(struct mm_struct *mm, struct mm_struct *old)
{
	if (unlikely(rcu_access_pointer(old->econ)))
		__econ_copy_mm(mm, old);
}

/**
 * econ_free_mm - nobody uses an mm any more
 * @mm: the mm
 */
static inline void econ_free_mm(struct mm_struct *mm)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_free_mm(mm);
}

/**
 * econ_copy_signal - a child inherits the profile of its parent
 * @signal: of the child; nobody else sees it yet
 */
static inline void econ_copy_signal(struct signal_struct *signal)
{
	if (unlikely(rcu_access_pointer(current->signal->econ)))
		__econ_copy_signal(signal);
}

/**
 * econ_free_signal - the last thread of a process is gone
 * @signal: of the process
 */
static inline void econ_free_signal(struct signal_struct *signal)
{
	if (unlikely(rcu_access_pointer(signal->econ)))
		__econ_free_signal(signal);
}

/**
 * econ_exec - a program begins
 * @bprm: the program; the task has its mm, in which nothing is mapped but its
 *	stack
 */
static inline void econ_exec(struct linux_binprm *bprm)
{
	if (unlikely(rcu_access_pointer(current->signal->econ)))
		__econ_exec(bprm);
}

/**
 * econ_mapped - a mapping was made
 * @mm: where; its mmap lock is held for writing
 * @begin: its address, or an error
 * @length: its bytes
 * @protection: PROT_READ and others
 * @flags: MAP_PRIVATE and others
 * @file: what is mapped, or NULL
 */
static inline void econ_mapped(struct mm_struct *mm, unsigned long begin,
			       unsigned long length, unsigned long protection,
			       unsigned long flags, struct file *file)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_mapped(mm, begin, length, protection, flags, file);
}

/**
 * econ_moved - a mapping or a part of one was moved, or has grown
 * @mm: where; its mmap lock is held for writing
 * @old: its address before
 * @old_length: its bytes before; what the mapping has beyond stays
 * @new: its address now, or an error
 * @new_length: its bytes now
 */
static inline void econ_moved(struct mm_struct *mm, unsigned long old,
			      unsigned long old_length, unsigned long new,
			      unsigned long new_length)
{
	if (unlikely(rcu_access_pointer(mm->econ)))
		__econ_moved(mm, old, old_length, new, new_length);
}

/**
 * econ_prctl - gets or sets the mode of the program that the caller runs
 * @action: PR_ECON_SET_MODE or PR_ECON_GET_MODE
 * @mode: for the former, one of PR_ECON_MODE_*, else 0
 * @unused: 0
 * @unused_too: 0
 *
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
