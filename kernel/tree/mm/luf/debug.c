// SPDX-License-Identifier: GPL-2.0-only
/*
 * LUF_DEBUG: report uses of pages that wait for their flush. Each page has a
 * record from its lazy unmap until it is flushed. While the page still has an owner
 * it may be used but not freed. Once it is taken for a pool it may not be used
 * either. A violation is reported with the record.
 */

#define pr_fmt(fmt) "luf: " fmt

#include <linux/delay.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/page_ext.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "internal.h"

/**
 * struct luf_record - a page that was unmapped lazily
 * @since: when it was unmapped first, in jiffies; 0 if no flush is pending
 * @first: generation of the oldest batch that it waits for
 * @last: generation of the newest one
 * @node: node in the list of the run that unmapped it, until it is taken
 * @path: path that unmapped it
 * @pid: task that unmapped it
 * @is_taken: whether it is frozen, for a pool
 */
struct luf_record {
	unsigned long since;
	u64 first;
	u64 last;
	struct list_head node;
	int path;
	pid_t pid;
	bool is_taken;
};

/* Protects the lists of runs and the records. Taken where pages are freed: anywhere. */
static DEFINE_SPINLOCK(luf_debug_lock);

static bool __init luf_debug_is_needed(void)
{
	return true;
}

struct page_ext_operations luf_debug_ops = {
	.size = sizeof(struct luf_record),
	.need = luf_debug_is_needed,
};

static struct luf_record *luf_debug_record(struct page_ext *ext)
{
	return page_ext_data(ext, &luf_debug_ops);
}

static void luf_debug_report(const struct page *page, const struct luf_record *record,
			     const char *how)
{
	static bool said;

	if (xchg(&said, true))
		return;
	pr_err("page 0x%lx is %s, and waits for batches %llu to %llu (drained: %llu) since %u ms: unmapped by task %d, path %d\n",
	       page_to_pfn(page), how, record->first, record->last,
	       READ_ONCE(luf_batches.drained),
	       jiffies_to_msecs(jiffies - record->since), record->pid,
	       record->path);
	WARN(1, "luf: a page is used before its flush");
}

/* Pages are freed in interrupts too, so the lock of the batches is not taken. */
static bool luf_debug_is_pending(u64 generation)
{
	const struct luf_batch *batch;

	if (luf_is_drained(&luf_batches, generation))
		return false;
	for (batch = luf_batches.slots;
	     batch < luf_batches.slots + LUF_BATCHES; batch++) {
		enum luf_batch_state state;

		if (READ_ONCE(batch->generation) != generation)
			continue;
		state = READ_ONCE(batch->state);
		/* A reused slot gets its new generation first. */
		smp_rmb();
		return READ_ONCE(batch->generation) == generation &&
		       (state == LUF_BATCH_OPEN || state == LUF_BATCH_CLOSED);
	}
	return false;
}

static bool luf_record_is_flushed(const struct luf_record *record)
{
	u64 generation;

	for (generation = record->first; generation <= record->last; generation++)
		if (luf_debug_is_pending(generation))
			return false;
	return true;
}

static void luf_record_begin(struct luf_record *record, struct luf_run *run,
			     u64 first, u64 last)
{
	record->first = first;
	record->last = last;
	record->path = run->path;
	record->pid = current->pid;
	WRITE_ONCE(record->since, jiffies ?: 1);
}

static void luf_record_end(struct luf_record *record)
{
	lockdep_assert_held(&luf_debug_lock);
	if (!record->since)
		return;
	if (!record->is_taken)
		list_del(&record->node);
	WRITE_ONCE(record->is_taken, false);
	WRITE_ONCE(record->since, 0);
}

/**
 * luf_debug_begin - initialise the records of a run
 * @run: the run
 *
 * Context: process.
 */
void luf_debug_begin(struct luf_run *run)
{
	INIT_LIST_HEAD(&run->unflushed);
}

/**
 * luf_debug_unmap - record that an entry was cleared without a flush
 * @run: run that cleared it
 * @page: page that it mapped
 * @generation: generation of the batch that covers it
 *
 * Context: the page-table lock is held; takes a spinlock.
 */
void luf_debug_unmap(struct luf_run *run, struct page *page, u64 generation)
{
	struct page_ext *ext = page_ext_get(page);
	struct luf_record *record;

	if (!ext)
		return;
	record = luf_debug_record(ext);
	scoped_guard(spinlock_irqsave, &luf_debug_lock) {
		if (record->since) {
			record->first = min(record->first, generation);
			record->last = max(record->last, generation);
			list_move_tail(&record->node, &run->unflushed);
		} else {
			luf_record_begin(record, run, generation, generation);
			list_add_tail(&record->node, &run->unflushed);
		}
	}
	page_ext_put(ext);
}

/**
 * luf_debug_settle - end the records of a run after its kept folios are flushed
 * @run: the run
 *
 * Context: any; takes a spinlock.
 */
void luf_debug_settle(struct luf_run *run)
{
	struct luf_record *record, *next;

	guard(spinlock_irqsave)(&luf_debug_lock);
	list_for_each_entry_safe(record, next, &run->unflushed, node)
		luf_record_end(record);
}

/**
 * luf_debug_end - check a run at its end
 * @run: the run
 *
 * Warns if a page of it is neither taken nor flushed.
 *
 * Context: any; takes a spinlock.
 */
void luf_debug_end(struct luf_run *run)
{
	WARN_ONCE(!list_empty(&run->unflushed),
		  "luf: pages of path %d were unmapped and neither taken nor flushed\n",
		  run->path);
	luf_debug_settle(run);
}

/**
 * luf_debug_defer - record that a folio is taken for a pool
 * @folio: the folio, frozen: no other task accesses its records
 * @run: run that takes it
 *
 * Context: any; takes a spinlock.
 */
void luf_debug_defer(struct folio *folio, struct luf_run *run)
{
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		struct page_ext *ext = page_ext_get(folio_page(folio, i));
		struct luf_record *record;

		if (!ext)
			continue;
		record = luf_debug_record(ext);
		scoped_guard(spinlock_irqsave, &luf_debug_lock) {
			luf_record_end(record);
			luf_record_begin(record, run, run->first, run->last);
			/* Pairs with luf_debug_use(). */
			smp_store_release(&record->is_taken, true);
		}
		page_ext_put(ext);
	}
}

/* End records. With @how, report those that end before the flush. */
static void luf_debug_drop(const struct page *page, unsigned long nr,
			   const char *how)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		struct page_ext *ext = page_ext_get((struct page *)page + i);
		struct luf_record *record;

		if (!ext)
			continue;
		record = luf_debug_record(ext);
		if (READ_ONCE(record->since)) {
			if (how && !luf_record_is_flushed(record))
				luf_debug_report(page + i, record, how);
			scoped_guard(spinlock_irqsave, &luf_debug_lock)
				luf_record_end(record);
		}
		page_ext_put(ext);
	}
}

/**
 * luf_debug_release - check that a folio of a pool is flushed before its release
 * @folio: the folio
 *
 * Context: any; takes a spinlock.
 */
void luf_debug_release(struct folio *folio)
{
	luf_debug_drop(&folio->page, folio_nr_pages(folio), "released");
}

/**
 * luf_debug_forget - end the records of a folio that the task's own batch flushes
 * @folio: the folio, unmapped lazily in some places and eagerly in others
 *
 * Context: any; takes a spinlock.
 */
void luf_debug_forget(const struct folio *folio)
{
	luf_debug_drop(folio_page(folio, 0), folio_nr_pages(folio), NULL);
}

/**
 * luf_debug_waits - whether a page waits for its flush, for tests
 * @page: the page
 *
 * Context: any.
 * Return: true if no flush of the page was seen yet.
 */
bool luf_debug_waits(struct page *page)
{
	struct page_ext *ext = page_ext_get(page);
	bool waits = ext && READ_ONCE(luf_debug_record(ext)->since);

	if (ext)
		page_ext_put(ext);
	return waits;
}

void luf_debug_free(struct page *page, unsigned int order)
{
	luf_debug_drop(page, 1UL << order, "freed");
}

void luf_debug_use(const struct page *page, unsigned int nr, const char *how)
{
	unsigned int i;

	/* An entry may map an address without a struct page. */
	if (!pfn_valid(page_to_pfn(page)))
		return;
	for (i = 0; i < nr; i++) {
		struct page_ext *ext = page_ext_get((struct page *)page + i);
		struct luf_record *record;

		if (!ext)
			continue;
		record = luf_debug_record(ext);
		/* Pairs with luf_debug_defer(). */
		if (smp_load_acquire(&record->is_taken))
			luf_debug_report(page + i, record, how);
		page_ext_put(ext);
	}
}
EXPORT_SYMBOL_GPL(luf_debug_use);

void luf_debug_alloc(const struct page *page, unsigned int order)
{
	luf_debug_use(page, 1U << order, "allocated");
}

/* Planted delays */

/* Above 0: duration of the delay of the next flush of a pool; below 0: in progress. */
int luf_debug_delay_ms;

/**
 * luf_debug_delay - delay one flush, if a test requested it
 *
 * Called between the flush of a pool's pages and their return, so that tests find
 * the flush in progress.
 *
 * Context: may sleep.
 */
void luf_debug_delay(void)
{
	int ms = READ_ONCE(luf_debug_delay_ms);

	if (ms <= 0 || cmpxchg(&luf_debug_delay_ms, ms, -ms) != ms)
		return;
	msleep(ms);
	cmpxchg(&luf_debug_delay_ms, -ms, 0);
}
