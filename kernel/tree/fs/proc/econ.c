// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/mm_profile and /proc/PID/mm_ledger: the profile of a process, and the
 * decisions for it. See Documentation/admin-guide/mm/econ.rst.
 */

#include <linux/econ.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../mm/econ/internal.h"
#include "internal.h"

/**
 * struct econ_file - an open file descriptor of one of these files
 * @inode: inode of the process
 * @mm: mm of the program that the process ran at open(); holds an mmgrab() reference
 * @lock: protects @error
 * @error: error of the last write
 *
 * The descriptor is valid for this program only. The process may execute another one
 * later, which the owner of the descriptor has no right to read or change.
 */
struct econ_file {
	struct inode *inode;
	struct mm_struct *mm;
	struct mutex lock; /* protects error */
	struct econ_parse_error error;
};

/*
 * Pin the program of a descriptor: until econ_leave() its process executes no other
 * one, and its mm stays. Copy the text of a write before: the writer may delay that
 * copy for as long as it wants.
 */
static struct task_struct *econ_enter(const struct econ_file *own)
{
	struct task_struct *task = get_proc_task(own->inode);
	int err;

	if (!task)
		return ERR_PTR(-ESRCH);
	err = down_read_killable(&task->signal->exec_update_lock);
	if (err)
		goto put;
	if (READ_ONCE(task->mm) != own->mm)
		err = -ESRCH;
	else if (!ptrace_may_access(task, PTRACE_MODE_ATTACH_FSCREDS))
		err = -EACCES;
	else if (!mmget_not_zero(own->mm))
		err = -ESRCH;
	if (!err)
		return task;
	up_read(&task->signal->exec_update_lock);
put:
	put_task_struct(task);
	return ERR_PTR(err);
}

static void econ_leave(const struct econ_file *own, struct task_struct *task)
{
	up_read(&task->signal->exec_update_lock);
	mmput(own->mm);
	put_task_struct(task);
}

static int econ_open(struct inode *inode, struct file *file,
		     int (*show)(struct seq_file *m, void *unused))
{
	struct econ_file *own;
	int err;

	own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);
	if (!own)
		return -ENOMEM;
	own->mm = proc_mem_open(inode, PTRACE_MODE_ATTACH);
	if (IS_ERR_OR_NULL(own->mm)) {
		err = own->mm ? PTR_ERR(own->mm) : -ESRCH;
		goto free;
	}
	own->inode = inode;
	mutex_init(&own->lock);
	err = single_open(file, show, own);
	if (!err)
		return 0;
	mmdrop(own->mm);
free:
	kfree(own);
	return err;
}

static int econ_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct econ_file *own = m->private;

	mmdrop(own->mm);
	kfree(own);
	return single_release(inode, file);
}

/* mm_profile */

/* Return: current address of each row of a mapping, 0 if it does not apply. */
static unsigned long *econ_find_row_addresses(struct econ_mm *econ)
{
	const struct econ_row *rows = econ->holder->rows, *row;
	unsigned long *places;
	struct ma_state mas;

	places = kvcalloc(econ->holder->profile.nr_rows + 1, sizeof(*places),
			  GFP_KERNEL);
	if (!places)
		return NULL;
	mas_init(&mas, &econ->ranges, 0);
	rcu_read_lock();
	mas_for_each(&mas, row, ULONG_MAX)
		places[row - rows] = mas.index;
	rcu_read_unlock();
	return places;
}

static void econ_show_site(struct seq_file *m, const struct econ_site_key *key)
{
	switch (key->site) {
	case ECON_HEAP:
		seq_puts(m, "heap");
		break;
	case ECON_BSS:
		seq_puts(m, "bss");
		break;
	default:
		seq_printf(m, "mmap %u %u %u", key->ordinal, key->class,
			   key->protection);
	}
}

/* The rows as written, with their current state in a comment. */
static void econ_show_rows(struct seq_file *m, const struct econ_profile *profile,
			   const struct mm_struct *mm, const struct econ_mm *econ,
			   const unsigned long *places)
{
	u32 i;

	for (i = 0; i < profile->nr_rows; i++) {
		const struct econ_row *row = &profile->rows[i];
		unsigned long place;

		econ_show_site(m, &row->key);
		seq_printf(m, " 0x%llx 0x%llx %llu %u %u", row->begin, row->end,
			   row->benefit_ns, row->touched, row->confidence);
		if (!econ) {
			seq_putc(m, '\n');
			continue;
		}
		place = row->key.site == ECON_HEAP ? mm->start_brk + row->begin :
			row->key.site == ECON_BSS ?
			PAGE_ALIGN(mm->end_data) + row->begin : places[i];
		seq_printf(m, " # at 0x%lx huge %u small %u observed %u used %u\n", place,
			   atomic_read(&econ->rows[i].huge),
			   atomic_read(&econ->rows[i].small),
			   READ_ONCE(econ->rows[i].observed),
			   READ_ONCE(econ->rows[i].used));
	}
}

static void econ_show_profile(struct seq_file *m, const struct econ_profile *profile,
			      struct mm_struct *mm)
{
	unsigned long *places = NULL;
	struct econ_mm *econ;

	seq_printf(m, "mm_profile 1\nprogram %s\nrun %llu\n", profile->name,
		   profile->run_ns);
	/* It is replaced with the same lock held for writing. */
	mmap_read_lock(mm);
	econ = rcu_dereference_protected(mm->econ, true);
	if (econ && &econ->holder->profile != profile)
		econ = NULL;
	if (econ)
		places = econ_find_row_addresses(econ);
	econ_show_rows(m, profile, mm, places ? econ : NULL, places);
	mmap_read_unlock(mm);
	kvfree(places);
	seq_printf(m, "end %u\n", profile->nr_rows);
}

static int econ_proc_profile_show(struct seq_file *m, void *unused)
{
	struct econ_file *own = m->private;
	struct econ_holder *holder;
	struct task_struct *task;

	scoped_guard(mutex, &own->lock) {
		if (own->error.reason) {
			seq_printf(m, "line %u: %s\n", own->error.line,
				   own->error.reason);
			return 0;
		}
	}
	task = econ_enter(own);
	if (IS_ERR(task))
		return PTR_ERR(task);
	holder = econ_get_profile(task->signal);
	if (holder) {
		econ_show_profile(m, &holder->profile, own->mm);
		econ_put_profile(holder);
	}
	econ_leave(own, task);
	return 0;
}

/* Whether a text removes the profile. */
static bool econ_is_none(const char *text, size_t length)
{
	if (length == strlen("none\n") && text[length - 1] == '\n')
		length--;
	return length == strlen("none") && !memcmp(text, "none", length);
}

static int econ_set_task_profile(const struct econ_file *own, struct econ_holder *holder)
{
	struct task_struct *task = econ_enter(own);
	int err;

	if (IS_ERR(task))
		return PTR_ERR(task);
	err = econ_set_profile(task, own->mm, holder);
	econ_leave(own, task);
	return err;
}

/* Each write is a whole profile, or none. */
static ssize_t econ_proc_profile_write(struct file *file, const char __user *buffer,
				       size_t count, loff_t *at)
{
	struct seq_file *m = file->private_data;
	struct econ_file *own = m->private;
	struct econ_parse_error error = {};
	struct econ_holder *holder = NULL;
	int err = 0;
	char *text;

	if (count > ECON_PROFILE_BYTES)
		return -E2BIG;
	text = vmemdup_user(buffer, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	if (!econ_is_none(text, count)) {
		holder = econ_new_profile(text, count, &error);
		err = PTR_ERR_OR_ZERO(holder);
	}
	kvfree(text);
	if (!err) {
		err = econ_set_task_profile(own, holder);
		if (err && holder)
			econ_put_profile(holder);
	}
	scoped_guard(mutex, &own->lock)
		own->error = error;
	return err ?: count;
}

static int econ_proc_profile_open(struct inode *inode, struct file *file)
{
	return econ_open(inode, file, econ_proc_profile_show);
}

const struct file_operations econ_profile_operations = {
	.open = econ_proc_profile_open,
	.read = seq_read,
	.write = econ_proc_profile_write,
	.llseek = seq_lseek,
	.release = econ_release,
};

/* mm_ledger */

static void econ_show_accounts(struct seq_file *m, const struct econ_mm *econ)
{
	unsigned int kind;

	seq_printf(m, "mode %s\n", econ_mode_names[READ_ONCE(econ->mode)]);
	for (kind = 0; kind < ECON_KINDS; kind++) {
		const struct econ_account *account = &econ->ledger[kind];

		seq_printf(m, "%s %lld %lld %lld %lld %lld\n",
			   econ_models[kind]->name,
			   atomic64_read(&account->asked),
			   atomic64_read(&account->approved),
			   atomic64_read(&account->cost),
			   atomic64_read(&account->benefit),
			   atomic64_read(&account->refused));
	}
}

static int econ_proc_ledger_show(struct seq_file *m, void *unused)
{
	struct econ_file *own = m->private;
	struct task_struct *task = econ_enter(own);
	struct econ_mm *econ;

	if (IS_ERR(task))
		return PTR_ERR(task);
	rcu_read_lock();
	econ = rcu_dereference(own->mm->econ);
	if (econ)
		econ_show_accounts(m, econ);
	rcu_read_unlock();
	econ_leave(own, task);
	return 0;
}

static ssize_t econ_proc_ledger_write(struct file *file, const char __user *buffer,
				      size_t count, loff_t *at)
{
	struct seq_file *m = file->private_data;
	struct econ_file *own = m->private;
	struct task_struct *task;
	char text[16] = {};
	int mode, err;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	mode = econ_parse_mode(text, ECON_MODES);
	if (mode < 0)
		return mode;
	task = econ_enter(own);
	if (IS_ERR(task))
		return PTR_ERR(task);
	err = econ_set_mode(own->mm, mode);
	econ_leave(own, task);
	return err ?: count;
}

static int econ_proc_ledger_open(struct inode *inode, struct file *file)
{
	return econ_open(inode, file, econ_proc_ledger_show);
}

const struct file_operations econ_ledger_operations = {
	.open = econ_proc_ledger_open,
	.read = seq_read,
	.write = econ_proc_ledger_write,
	.llseek = seq_lseek,
	.release = econ_release,
};
