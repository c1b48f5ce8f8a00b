// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/mm_profile and /proc/PID/mm_ledger: what is known of a process, and
 * what was decided for it. See Documentation/admin-guide/mm/econ.rst.
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
#include <linux/uaccess.h>

#include "../../mm/econ/internal.h"
#include "internal.h"

/* The process of an inode, for who might attach to it by ptrace. */
static struct task_struct *get_task(const struct inode *inode)
{
	struct task_struct *task = get_proc_task(inode);

	if (!task)
		return ERR_PTR(-ESRCH);
	if (ptrace_may_access(task, PTRACE_MODE_ATTACH_FSCREDS))
		return task;
	put_task_struct(task);
	return ERR_PTR(-EACCES);
}

static int may_open(const struct inode *inode)
{
	struct task_struct *task = get_task(inode);

	if (IS_ERR(task))
		return PTR_ERR(task);
	put_task_struct(task);
	return 0;
}

/* mm_profile */

/* A descriptor of it: what the last write through it found wrong. */
struct profile_file {
	struct inode *inode;
	struct mutex lock; /* of error */
	struct econ_parse_error error;
};

/* Where rows of mappings apply now: 0 where they do not. */
static unsigned long *find_places(struct econ_mm *econ)
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

static void show_key(struct seq_file *m, const struct econ_anchor_key *key)
{
	switch (key->anchor) {
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

/* As it was written, and behind a # what came of it. */
static void show_rows(struct seq_file *m, const struct econ_profile *profile,
		      const struct mm_struct *mm, const struct econ_mm *econ,
		      const unsigned long *places)
{
	u32 i;

	for (i = 0; i < profile->nr_rows; i++) {
		const struct econ_row *row = &profile->rows[i];
		unsigned long place;

		show_key(m, &row->key);
		seq_printf(m, " 0x%llx 0x%llx %llu %u %u", row->begin, row->end,
			   row->benefit_ns, row->touched, row->confidence);
		if (!econ) {
			seq_putc(m, '\n');
			continue;
		}
		place = row->key.anchor == ECON_HEAP ? mm->start_brk + row->begin :
			row->key.anchor == ECON_BSS ?
			PAGE_ALIGN(mm->end_data) + row->begin : places[i];
		seq_printf(m, " # at 0x%lx huge %u small %u\n", place,
			   atomic_read(&econ->regions[i][1]),
			   atomic_read(&econ->regions[i][0]));
	}
}

static void show_profile(struct seq_file *m, const struct econ_profile *profile,
			 struct mm_struct *mm)
{
	unsigned long *places = NULL;
	struct econ_mm *econ = NULL;

	seq_printf(m, "mm_profile 1\nprogram %s\nrun %llu\n", profile->name,
		   profile->run_ns);
	if (mm) {
		/* Who replaces it holds the lock for writing. */
		mmap_read_lock(mm);
		econ = rcu_dereference_protected(mm->econ, true);
		if (econ && &econ->holder->profile != profile)
			econ = NULL;
		if (econ)
			places = find_places(econ);
	}
	show_rows(m, profile, mm, places ? econ : NULL, places);
	if (mm)
		mmap_read_unlock(mm);
	kvfree(places);
	seq_printf(m, "end %u\n", profile->nr_rows);
}

static int profile_show(struct seq_file *m, void *unused)
{
	struct profile_file *own = m->private;
	struct econ_holder *holder;
	struct task_struct *task;
	struct mm_struct *mm;

	scoped_guard(mutex, &own->lock) {
		if (own->error.reason) {
			seq_printf(m, "line %u: %s\n", own->error.line,
				   own->error.reason);
			return 0;
		}
	}
	task = get_task(own->inode);
	if (IS_ERR(task))
		return PTR_ERR(task);
	holder = econ_get_from(task->signal);
	if (holder) {
		mm = get_task_mm(task);
		show_profile(m, &holder->profile, mm);
		if (mm)
			mmput(mm);
		econ_put(holder);
	}
	put_task_struct(task);
	return 0;
}

/* One write is one profile. Nothing takes what the process has away. */
static ssize_t profile_write(struct file *file, const char __user *buffer,
			     size_t count, loff_t *at)
{
	struct seq_file *m = file->private_data;
	struct profile_file *own = m->private;
	struct econ_parse_error error = {};
	struct econ_holder *holder = NULL;
	struct task_struct *task;
	int err = 0;
	char *text;

	if (count > ECON_PROFILE_BYTES)
		return -E2BIG;
	task = get_task(own->inode);
	if (IS_ERR(task))
		return PTR_ERR(task);
	text = vmemdup_user(buffer, count);
	if (IS_ERR(text)) {
		err = PTR_ERR(text);
		goto out;
	}
	holder = econ_parse(text, count, &error);
	kvfree(text);
	err = PTR_ERR_OR_ZERO(holder);
	if (!err)
		err = econ_give(task, holder);
	scoped_guard(mutex, &own->lock)
		own->error = error;
out:
	put_task_struct(task);
	return err ?: count;
}

static int profile_open(struct inode *inode, struct file *file)
{
	struct profile_file *own;
	int err = may_open(inode);

	if (err)
		return err;
	own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);
	if (!own)
		return -ENOMEM;
	own->inode = inode;
	mutex_init(&own->lock);
	err = single_open(file, profile_show, own);
	if (err)
		kfree(own);
	return err;
}

static int profile_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	kfree(m->private);
	return single_release(inode, file);
}

const struct file_operations econ_profile_operations = {
	.open = profile_open,
	.read = seq_read,
	.write = profile_write,
	.llseek = seq_lseek,
	.release = profile_release,
};

/* mm_ledger */

static void show_ledger(struct seq_file *m, const struct econ_mm *econ)
{
	unsigned int kind;

	seq_printf(m, "mode %s\n", econ_mode_names[READ_ONCE(econ->mode)]);
	for (kind = 0; kind < ECON_KINDS; kind++) {
		const struct econ_account *account = &econ->ledger[kind];

		seq_printf(m, "%s %lld %lld %lld %lld %lld\n",
			   econ_models[kind]->name,
			   atomic64_read(&account->asked),
			   atomic64_read(&account->gone),
			   atomic64_read(&account->cost),
			   atomic64_read(&account->benefit),
			   atomic64_read(&account->refused));
	}
}

static int ledger_show(struct seq_file *m, void *unused)
{
	struct task_struct *task = get_task(m->private);
	struct mm_struct *mm;
	struct econ_mm *econ;

	if (IS_ERR(task))
		return PTR_ERR(task);
	mm = get_task_mm(task);
	put_task_struct(task);
	if (!mm)
		return 0;
	rcu_read_lock();
	econ = rcu_dereference(mm->econ);
	if (econ)
		show_ledger(m, econ);
	rcu_read_unlock();
	mmput(mm);
	return 0;
}

static ssize_t ledger_write(struct file *file, const char __user *buffer,
			    size_t count, loff_t *at)
{
	struct seq_file *m = file->private_data;
	struct task_struct *task;
	struct mm_struct *mm;
	struct econ_mm *econ;
	char text[16] = {};
	int mode;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	mode = econ_parse_mode(text, ECON_MODES);
	if (mode < 0)
		return mode;
	task = get_task(m->private);
	if (IS_ERR(task))
		return PTR_ERR(task);
	mm = get_task_mm(task);
	put_task_struct(task);
	if (!mm)
		return -ESRCH;
	rcu_read_lock();
	econ = rcu_dereference(mm->econ);
	if (econ)
		WRITE_ONCE(econ->mode, mode);
	rcu_read_unlock();
	mmput(mm);
	return econ ? count : -ENODATA;
}

static int ledger_open(struct inode *inode, struct file *file)
{
	return may_open(inode) ?: single_open(file, ledger_show, inode);
}

const struct file_operations econ_ledger_operations = {
	.open = ledger_open,
	.read = seq_read,
	.write = ledger_write,
	.llseek = seq_lseek,
	.release = single_release,
};
