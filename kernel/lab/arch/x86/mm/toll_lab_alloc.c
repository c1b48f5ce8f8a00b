// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations of pages that the virtual PMU counts one by one.
 *
 * "ORDER HOW COUNT KEEP PAUSE", written to toll_lab_alloc in debugfs, makes
 * COUNT allocations of 2^ORDER pages, with PAUSE microseconds after each. The
 * last KEEP blocks are held; when write() returns all of them are free again.
 * HOW is one of:
 *
 * kernel	sleeps, and reclaims where it must
 * huge		the same as a fault in memory that asked for huge pages: what
 *		sleeps for large blocks in practice
 * atomic	does not sleep, and may use reserves
 * nowait	does not sleep, and may use none
 *
 * Reading the same open file says how many allocations were made through it,
 * and how many of them failed.
 *
 * What is written to toll_lab_drain gives the pages that each CPU keeps for itself
 * back to the free blocks that they are parts of.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <asm/toll_lab.h>

/* A line that is longer asks for nothing. */
#define MAX_LINE 128

struct alloc_request {
	unsigned int order;
	gfp_t gfp;
	unsigned long count, keep, pause;
};

/* What was made through one open file. */
struct alloc_totals {
	struct mutex lock; /* one request at a time */
	unsigned long allocs, failures;
};

static const struct {
	const char *name;
	gfp_t gfp;
} kinds[] = {
	{ "kernel", GFP_KERNEL },
	{ "huge", GFP_TRANSHUGE },
	{ "atomic", GFP_ATOMIC },
	{ "nowait", GFP_NOWAIT },
};

static bool toll_lab_parse_kind(const char *name, gfp_t *gfp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(name, kinds[i].name))
			continue;
		*gfp = kinds[i].gfp | __GFP_COMP | __GFP_NOWARN;
		return true;
	}
	return false;
}

static bool toll_lab_parse_request(const char *line, struct alloc_request *request)
{
	int count;
	char **words = argv_split(GFP_KERNEL, line, &count);
	bool is_right;

	if (!words)
		return false;
	is_right = count == 5 &&
		   !kstrtouint(words[0], 10, &request->order) &&
		   request->order <= MAX_PAGE_ORDER &&
		   toll_lab_parse_kind(words[1], &request->gfp) &&
		   !kstrtoul(words[2], 10, &request->count) &&
		   request->count &&
		   !kstrtoul(words[3], 10, &request->keep) &&
		   !kstrtoul(words[4], 10, &request->pause) &&
		   request->pause <= USEC_PER_SEC;
	argv_free(words);
	return is_right;
}

static struct page *toll_lab_allocate(const struct alloc_request *request)
{
	struct page *page;

	toll_lab_say(TOLL_LAB_ALLOC_BEGIN, 0, 0);
	page = alloc_pages(request->gfp, request->order);
	toll_lab_say(TOLL_LAB_ALLOC_END, !page, 0);
	return page;
}

static void toll_lab_free_oldest(struct list_head *blocks, unsigned int order)
{
	struct page *page = list_first_entry(blocks, struct page, lru);

	list_del(&page->lru);
	__free_pages(page, order);
}

static int toll_lab_make_blocks(struct alloc_totals *totals, const struct alloc_request *request)
{
	LIST_HEAD(blocks);
	unsigned long held = 0, i;

	for (i = 0; i < request->count && !fatal_signal_pending(current); i++) {
		struct page *page = toll_lab_allocate(request);

		totals->allocs++;
		if (page) {
			list_add_tail(&page->lru, &blocks);
			held++;
		} else {
			totals->failures++;
		}
		if (held > request->keep) {
			toll_lab_free_oldest(&blocks, request->order);
			held--;
		}
		if (request->pause)
			usleep_range(request->pause, request->pause + 1);
		else
			cond_resched();
	}
	while (!list_empty(&blocks)) {
		toll_lab_free_oldest(&blocks, request->order);
		cond_resched();
	}
	return i == request->count ? 0 : -EINTR;
}

static int toll_lab_alloc_open(struct inode *inode, struct file *file)
{
	struct alloc_totals *totals = kzalloc(sizeof(*totals), GFP_KERNEL);

	if (!totals)
		return -ENOMEM;
	mutex_init(&totals->lock);
	file->private_data = totals;
	return 0;
}

static int toll_lab_alloc_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static ssize_t toll_lab_alloc_write(struct file *file, const char __user *from,
				    size_t length, loff_t *at)
{
	struct alloc_totals *totals = file->private_data;
	struct alloc_request request;
	bool is_right;
	char *line;
	int err;

	if (length > MAX_LINE)
		return -EINVAL;
	line = memdup_user_nul(from, length);
	if (IS_ERR(line))
		return PTR_ERR(line);
	is_right = toll_lab_parse_request(line, &request);
	kfree(line);
	if (!is_right)
		return -EINVAL;
	err = mutex_lock_killable(&totals->lock);
	if (err)
		return err;
	err = toll_lab_make_blocks(totals, &request);
	mutex_unlock(&totals->lock);
	return err ?: length;
}

static ssize_t toll_lab_alloc_read(struct file *file, char __user *to, size_t length,
				   loff_t *at)
{
	const struct alloc_totals *totals = file->private_data;
	char text[64];
	int size = scnprintf(text, sizeof(text), "allocs %lu\nfailures %lu\n",
			     READ_ONCE(totals->allocs),
			     READ_ONCE(totals->failures));

	return simple_read_from_buffer(to, length, at, text, size);
}

static const struct file_operations alloc_file = {
	.owner = THIS_MODULE,
	.open = toll_lab_alloc_open,
	.release = toll_lab_alloc_release,
	.write = toll_lab_alloc_write,
	.read = toll_lab_alloc_read,
	.llseek = default_llseek,
};

static ssize_t toll_lab_drain_write(struct file *file, const char __user *from,
				    size_t length, loff_t *at)
{
	lru_add_drain_all();
	drain_all_pages(NULL);
	return length;
}

static const struct file_operations drain_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = toll_lab_drain_write,
	.llseek = noop_llseek,
};

static int __init toll_lab_alloc_init(void)
{
	debugfs_create_file("toll_lab_drain", 0200, NULL, NULL, &drain_file);
	debugfs_create_file("toll_lab_alloc", 0600, NULL, NULL, &alloc_file);
	return 0;
}
late_initcall(toll_lab_alloc_init);
