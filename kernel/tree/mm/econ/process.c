// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles of processes and of their mms. Ownership is described in include/linux/econ.h.
 */

#include <linux/binfmts.h>
#include <linux/econ.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/cputime.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

#include "internal.h"

/* Protects signal_struct.econ of all processes. */
static DEFINE_SPINLOCK(profiles_lock);

/* Profiles */

/**
 * econ_new_profile - create a profile from text
 * @text: the text
 * @length: length in bytes
 * @error: set if -EINVAL is returned
 *
 * Context: may sleep.
 * Return: the profile, with one reference, or an error pointer.
 */
struct econ_holder *econ_new_profile(const char *text, size_t length,
				     struct econ_parse_error *error)
{
	u32 room = length / ECON_SHORTEST_ROW + 1;
	struct econ_profile profile = {};
	struct econ_holder *holder;

	profile.rows = kvmalloc_array(room, sizeof(*profile.rows), GFP_KERNEL);
	if (!profile.rows)
		return ERR_PTR(-ENOMEM);
	if (!econ_profile_parse(text, length, &profile, room, error)) {
		holder = ERR_PTR(-EINVAL);
		goto out;
	}
	holder = kvmalloc(struct_size(holder, rows, profile.nr_rows),
			  GFP_KERNEL_ACCOUNT);
	if (!holder) {
		holder = ERR_PTR(-ENOMEM);
		goto out;
	}
	memcpy(holder->rows, profile.rows,
	       profile.nr_rows * sizeof(*profile.rows));
	refcount_set(&holder->users, 1);
	holder->profile = profile;
	holder->profile.rows = holder->rows;
out:
	kvfree(profile.rows);
	return holder;
}

/**
 * econ_put_profile - drop a reference to a profile
 * @holder: the profile
 *
 * Context: any; the last task_struct of a process may be put under a spinlock.
 */
void econ_put_profile(struct econ_holder *holder)
{
	/* Large profiles are from vmalloc(), and vfree() may not be called in atomic context. */
	if (refcount_dec_and_test(&holder->users))
		kvfree_rcu(holder, rcu);
}

static struct econ_holder *econ_holder_get(struct econ_holder *holder)
{
	refcount_inc(&holder->users);
	return holder;
}

/* Processes */

/**
 * econ_get_profile - get the profile of a process
 * @signal: signal_struct of the process
 *
 * Context: process; takes a spinlock.
 * Return: the profile, with a reference for the caller, or NULL.
 */
struct econ_holder *econ_get_profile(struct signal_struct *signal)
{
	struct econ_holder *holder;

	guard(spinlock)(&profiles_lock);
	holder = rcu_dereference_protected(signal->econ,
					   lockdep_is_held(&profiles_lock));
	return holder ? econ_holder_get(holder) : NULL;
}

/* Set the profile of a process. Takes over the reference to @holder, which may be NULL. */
static void econ_set_signal_profile(struct signal_struct *signal,
				    struct econ_holder *holder)
{
	struct econ_holder *old;

	scoped_guard(spinlock, &profiles_lock)
		old = rcu_replace_pointer(signal->econ, holder,
					  lockdep_is_held(&profiles_lock));
	if (old)
		econ_put_profile(old);
}

void __econ_copy_signal(struct signal_struct *signal)
{
	RCU_INIT_POINTER(signal->econ, econ_get_profile(current->signal));
}

void __econ_free_signal(struct signal_struct *signal)
{
	econ_put_profile(rcu_dereference_protected(signal->econ, true));
}

/* Address spaces */

static u64 econ_process_time(struct task_struct *task)
{
	struct task_cputime time;

	thread_group_cputime(task, &time);
	return time.sum_exec_runtime;
}

/* CPU time of an earlier program, or without a profile, neither ages nor gives credit. */
static void econ_begin_now(struct econ_mm *econ, struct task_struct *task)
{
	unsigned int work;

	econ->ran_ns = econ_process_time(task);
	econ->begin_ns = econ->ran_ns;
	for (work = 0; work < ECON_WORKS; work++)
		econ->earned_ns[work] = econ->ran_ns;
}

/* A process of an mm: the current one, or else the owner, where the kernel knows it. */
static struct task_struct *econ_task_of(const struct mm_struct *mm)
{
	if (current->mm == mm)
		return current;
#ifdef CONFIG_MEMCG
	return rcu_dereference(mm->owner);
#else
	return NULL;
#endif
}

/* Minimum interval between sums of the CPU times of all threads. */
#define SUMMED_EVERY_NS		NSEC_PER_MSEC

/*
 * CPU time of the process. RCU is locked. If several processes share the mm, the one that
 * ran longest counts.
 */
static u64 econ_ran(struct econ_mm *econ, const struct mm_struct *mm)
{
	u64 now = ktime_get_ns(), summed = READ_ONCE(econ->summed_ns);
	u64 before = READ_ONCE(econ->ran_ns), ran;
	struct task_struct *task = econ_task_of(mm);

	if (!task || now - summed < SUMMED_EVERY_NS ||
	    cmpxchg64(&econ->summed_ns, summed, now) != summed)
		return before;
	ran = econ_process_time(task);
	if (ran <= before)
		return before;
	cmpxchg64(&econ->ran_ns, before, ran);
	return ran;
}

/**
 * econ_age - CPU time that a program has used
 * @econ: profile of its mm
 * @mm: the mm
 *
 * Context: RCU is locked; takes locks of run queues.
 * Return: nanoseconds, that of all threads, and before a fork that of the parent.
 */
u64 econ_age(struct econ_mm *econ, const struct mm_struct *mm)
{
	return econ_ran(econ, mm) - econ->begin_ns;
}

/**
 * econ_earned - CPU time of the current process that is not in a credit yet
 * @econ: profile of the mm of a fault
 * @mm: the mm
 * @work: kind of background work that the time pays for
 *
 * The caller adds the time to the credit of @work. A task that faults for another
 * process earns nothing.
 *
 * Context: a page fault, RCU is locked; takes locks of run queues.
 * Return: nanoseconds.
 */
u64 econ_earned(struct econ_mm *econ, const struct mm_struct *mm,
		enum econ_work work)
{
	u64 ran, before;

	if (current->mm != mm)
		return 0;
	ran = econ_ran(econ, mm);
	before = READ_ONCE(econ->earned_ns[work]);
	if (ran <= before || cmpxchg64(&econ->earned_ns[work], before, ran) != before)
		return 0;
	return ran - before;
}

static struct econ_mm *econ_mm_create(struct econ_holder *holder, bool is_counted)
{
	struct econ_mm *econ;

	econ = kvzalloc(struct_size(econ, rows, holder->profile.nr_rows),
			GFP_KERNEL_ACCOUNT);
	if (!econ)
		return NULL;
	econ->waiting = kvzalloc(econ_waiting_size(&holder->profile),
				 GFP_KERNEL_ACCOUNT);
	if (!econ->waiting) {
		kvfree(econ);
		return NULL;
	}
	mt_init_flags(&econ->ranges, MT_FLAGS_USE_RCU);
	mt_init_flags(&econ->mappings, MT_FLAGS_USE_RCU);
	econ->holder = econ_holder_get(holder);
	econ->is_counted = is_counted;
	econ->mode = ECON_AS_MACHINE;
	econ_waiting_init(econ->waiting, &holder->profile, &econ_costs);
	return econ;
}

static void econ_mm_destroy(struct econ_mm *econ)
{
	mtree_destroy(&econ->ranges);
	mtree_destroy(&econ->mappings);
	econ_put_profile(econ->holder);
	kvfree(econ->waiting);
	kvfree(econ);
}

static void econ_mm_destroy_work(struct work_struct *work)
{
	econ_mm_destroy(container_of(to_rcu_work(work), struct econ_mm, free));
}

/* Readers may still access the old one: free it after a grace period. */
static void econ_mm_replace(struct mm_struct *mm, struct econ_mm *econ)
{
	struct econ_mm *old = rcu_replace_pointer(mm->econ, econ, true);

	if (!old)
		return;
	INIT_RCU_WORK(&old->free, econ_mm_destroy_work);
	queue_rcu_work(system_unbound_wq, &old->free);
}

/*
 * @from does not change: the mmap lock is held. mtree_dup() would hold the tree's own
 * lock while it allocates.
 */
static int econ_copy_tree(struct maple_tree *to, struct maple_tree *from)
{
	unsigned long at = 0;

	for (;;) {
		struct ma_state mas;
		void *entry;
		int err;

		mas_init(&mas, from, at);
		rcu_read_lock();
		entry = mas_find(&mas, ULONG_MAX);
		rcu_read_unlock();
		if (!entry)
			return 0;
		err = mtree_store_range(to, mas.index, mas.last, entry,
					GFP_KERNEL);
		if (err)
			return err;
		at = mas.last + 1;
	}
}

/* If memory is short, the child has no profile. */
void __econ_copy_mm(struct mm_struct *mm, struct mm_struct *old)
{
	struct econ_mm *econ, *from;

	/* It is replaced with the mmap lock held for writing. */
	mmap_read_lock(old);
	from = rcu_dereference_protected(old->econ, true);
	econ = from ? econ_mm_create(from->holder, from->is_counted) : NULL;
	if (!econ)
		goto unlock;
	econ->mode = READ_ONCE(from->mode);
	rcu_read_lock();
	econ->begin_ns = -econ_age(from, old);
	rcu_read_unlock();
	memcpy(econ->ordinals, from->ordinals, sizeof(econ->ordinals));
	/* What the parent has touched is mapped in the child. */
	memcpy(econ->waiting, from->waiting, econ_waiting_size(&from->holder->profile));
	if (econ_copy_tree(&econ->ranges, &from->ranges) ||
	    econ_copy_tree(&econ->mappings, &from->mappings))
		econ_mm_destroy(econ);
	else
		rcu_assign_pointer(mm->econ, econ);
unlock:
	mmap_read_unlock(old);
}

void __econ_free_mm(struct mm_struct *mm)
{
	/* Interrupts may be off here. */
	econ_mm_replace(mm, NULL);
}

/* Whether a profile is for the program of a file, by name. */
static bool econ_profile_matches(const struct econ_holder *holder, const struct file *file)
{
	char name[ECON_NAME_BYTES];

	rcu_read_lock();
	/* Read a complete name: pairs with __d_alloc(). */
	strscpy(name, smp_load_acquire(&file->f_path.dentry->d_name.name),
		sizeof(name));
	rcu_read_unlock();
	return !strcmp(name, holder->profile.name);
}

void __econ_exec(struct linux_binprm *bprm)
{
	struct econ_holder *holder;
	struct econ_mm *econ = NULL;

	if (bprm->secureexec) {
		econ_set_signal_profile(current->signal, NULL);
		return;
	}
	holder = econ_get_profile(current->signal);
	if (!holder)
		return;
	if (econ_profile_matches(holder, bprm->file))
		econ = econ_mm_create(holder, true);
	econ_put_profile(holder);
	if (econ)
		econ_begin_now(econ, current);
	mmap_write_lock(current->mm);
	econ_mm_replace(current->mm, econ);
	mmap_write_unlock(current->mm);
}

/**
 * econ_set_profile - set or remove the profile of a process
 * @task: a task of the process
 * @mm: mm of the process; the caller holds a reference
 * @holder: the profile, NULL for none; its reference is taken over if 0 is returned
 *
 * Existing mappings were not counted, so only rows of the heap and the bss apply. If
 * the process had a profile before, the mode stays.
 *
 * Context: the caller holds the exec_update_lock of @task. Takes the mmap lock.
 * Return: 0, -ENOMEM, -EINTR.
 */
int econ_set_profile(struct task_struct *task, struct mm_struct *mm,
		     struct econ_holder *holder)
{
	struct file *file = get_mm_exe_file(mm);
	struct econ_mm *econ = NULL;
	bool applies = holder && file && econ_profile_matches(holder, file);

	if (file)
		fput(file);
	if (applies) {
		econ = econ_mm_create(holder, false);
		if (!econ)
			return -ENOMEM;
		econ_begin_now(econ, task);
	}
	if (mmap_write_lock_killable(mm)) {
		if (econ)
			econ_mm_destroy(econ);
		return -EINTR;
	}
	if (econ && econ_mm_locked(mm))
		econ->mode = READ_ONCE(econ_mm_locked(mm)->mode);
	econ_mm_replace(mm, econ);
	mmap_write_unlock(mm);
	econ_set_signal_profile(task->signal, holder);
	return 0;
}

/**
 * econ_set_mode - set the mode of a program
 * @mm: mm of the program
 * @mode: the mode
 *
 * Context: any.
 * Return: 0, or -ENODATA if the program has no profile.
 */
int econ_set_mode(struct mm_struct *mm, enum econ_mode mode)
{
	struct econ_mm *econ;

	guard(rcu)();
	econ = rcu_dereference(mm->econ);
	if (!econ)
		return -ENODATA;
	WRITE_ONCE(econ->mode, mode);
	return 0;
}

static int econ_get_mode(struct mm_struct *mm)
{
	struct econ_mm *econ;

	guard(rcu)();
	econ = rcu_dereference(mm->econ);
	return econ ? READ_ONCE(econ->mode) : -ENODATA;
}

/* Modes as numbered by prctl(). */
static const unsigned char econ_prctl_modes[ECON_MODES] = {
	[ECON_AS_MACHINE] = PR_ECON_MODE_DEFAULT,
	[ECON_OFF] = PR_ECON_MODE_OFF,
	[ECON_OBSERVE] = PR_ECON_MODE_OBSERVE,
	[ECON_ON] = PR_ECON_MODE_ON,
};

long econ_prctl(unsigned long action, unsigned long mode, unsigned long unused,
		unsigned long unused_too)
{
	int now;

	if (unused || unused_too)
		return -EINVAL;
	if (action == PR_ECON_GET_MODE && !mode) {
		now = econ_get_mode(current->mm);
		return now < 0 ? now : econ_prctl_modes[now];
	}
	if (action != PR_ECON_SET_MODE)
		return -EINVAL;
	for (now = 0; now < ECON_MODES; now++)
		if (econ_prctl_modes[now] == mode)
			return econ_set_mode(current->mm, now);
	return -EINVAL;
}
