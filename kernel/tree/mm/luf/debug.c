// SPDX-License-Identifier: GPL-2.0-only
/*
 * LUF_DEBUG: what waits for its flush may not be used. Each page has a record
 * from the moment when it is taken to the moment when it is released; whoever
 * uses it in between is reported with that record.
 */

#define pr_fmt(fmt) "luf: " fmt

#include <linux/mm.h>
#include <linux/page_ext.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * struct luf_record - a page that waits
 * @since: when it was taken, in jiffies, never 0; 0: it does not wait
 * @first: the oldest batch that it waits for
 * @last: the newest one
 * @path: who took it
 * @pid: the task
 */
struct luf_record {
	unsigned long since;
	u64 first;
	u64 last;
	int path;
	pid_t pid;
};

static bool __init is_needed(void)
{
	return true;
}

struct page_ext_operations luf_debug_ops = {
	.size = sizeof(struct luf_record),
	.need = is_needed,
};

static struct luf_record *record_of(struct page_ext *ext)
{
	return page_ext_data(ext, &luf_debug_ops);
}

static void report(const struct page *page, const struct luf_record *record,
		   const char *how)
{
	static bool said;

	if (xchg(&said, true))
		return;
	pr_err("page 0x%lx is %s, and waits for batches %llu to %llu (drained: %llu) since %u ms: taken by task %d, path %d\n",
	       page_to_pfn(page), how, record->first, record->last,
	       READ_ONCE(luf_batches.drained),
	       jiffies_to_msecs(jiffies - record->since), record->pid,
	       record->path);
	WARN(1, "luf: a page is used before its flush");
}

static bool is_flushed(const struct luf_record *record)
{
	u64 generation;

	for (generation = record->first; generation <= record->last; generation++)
		if (!luf_is_flushed(&luf_batches, generation))
			return false;
	return true;
}

/* The folio is frozen: nobody else may look at its records yet. */
void luf_debug_defer(struct folio *folio, const struct luf_run *run)
{
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		struct page_ext *ext = page_ext_get(folio_page(folio, i));
		struct luf_record *record;

		if (!ext)
			continue;
		record = record_of(ext);
		record->first = run->first;
		record->last = run->last;
		record->path = run->path;
		record->pid = current->pid;
		/* Pairs with luf_debug_use(). */
		smp_store_release(&record->since, jiffies ?: 1);
		page_ext_put(ext);
	}
}

void luf_debug_release(struct folio *folio)
{
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		struct page_ext *ext = page_ext_get(folio_page(folio, i));
		struct luf_record *record;

		if (!ext)
			continue;
		record = record_of(ext);
		if (record->since && !is_flushed(record))
			report(folio_page(folio, i), record, "released");
		WRITE_ONCE(record->since, 0);
		page_ext_put(ext);
	}
}

void luf_debug_use(const struct page *page, unsigned int nr, const char *how)
{
	unsigned int i;

	/* An entry may stand for what is no memory. */
	if (!pfn_valid(page_to_pfn(page)))
		return;
	for (i = 0; i < nr; i++) {
		struct page_ext *ext = page_ext_get((struct page *)page + i);
		struct luf_record *record;

		if (!ext)
			continue;
		record = record_of(ext);
		/* Pairs with luf_debug_defer(). */
		if (smp_load_acquire(&record->since))
			report(page + i, record, how);
		page_ext_put(ext);
	}
}
EXPORT_SYMBOL_GPL(luf_debug_use);
