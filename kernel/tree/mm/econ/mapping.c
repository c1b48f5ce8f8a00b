// SPDX-License-Identifier: GPL-2.0-only
/* Address ranges that a profile applies to: they follow the mappings of an mm. */

#include <linux/econ.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/maple_tree.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "internal.h"

/* Store only where there is an entry: a store may allocate memory. */
static void econ_tree_erase(struct maple_tree *tree, unsigned long begin,
			    unsigned long end)
{
	unsigned long at = begin;

	if (begin >= end)
		return;
	if (mt_find(tree, &at, end - 1))
		mtree_store_range(tree, begin, end - 1, NULL, GFP_KERNEL);
}

static void econ_forget_range(struct econ_mm *econ, unsigned long begin,
			      unsigned long end)
{
	econ_tree_erase(&econ->ranges, begin, end);
	econ_tree_erase(&econ->mappings, begin, end);
}

/* Store the rows of a mapping. Without memory some rows are missing. */
static void econ_store_rows(struct econ_mm *econ, const struct econ_row *first, u32 nr,
			    unsigned long begin, unsigned long end)
{
	const struct econ_row *row;

	mtree_store_range(&econ->mappings, begin, end - 1,
			  xa_mk_value(first - econ->holder->rows), GFP_KERNEL);
	for (row = first; row < first + nr && row->begin < end - begin; row++)
		mtree_store_range(&econ->ranges, begin + row->begin,
				  min(begin + row->end, end) - 1, (void *)row,
				  GFP_KERNEL);
}

void __econ_mapped(struct mm_struct *mm, unsigned long begin,
		   unsigned long length, unsigned long protection,
		   unsigned long flags, struct file *file)
{
	struct econ_mm *econ = econ_mm_locked(mm);
	struct econ_site_key key = {
		.site = ECON_MMAP,
		.protection = protection & (ECON_PROTECTIONS - 1),
	};
	const struct econ_row *first;
	u32 nr;

	if (IS_ERR_VALUE(begin))
		return;
	econ_forget_range(econ, begin, begin + length);
	if (file || (flags & MAP_TYPE) != MAP_PRIVATE || flags & MAP_HUGETLB)
		return;
	key.class = ilog2(length);
	key.ordinal = econ->ordinals[key.class][key.protection]++;
	if (!econ->is_counted)
		return;
	first = econ_rows_of(&econ->holder->profile, &key, &nr);
	if (nr)
		econ_store_rows(econ, first, nr, begin, begin + length);
}

/* Copy the entries of a range of a tree to another address. */
static void econ_copy_range(struct maple_tree *tree, unsigned long from,
			    unsigned long to, unsigned long length)
{
	unsigned long at = from, end = from + length;

	while (at < end) {
		struct ma_state mas;
		unsigned long last;
		void *entry;

		mas_init(&mas, tree, at);
		rcu_read_lock();
		entry = mas_find(&mas, end - 1);
		rcu_read_unlock();
		if (!entry)
			return;
		at = max(mas.index, at);
		last = min(mas.last, end - 1);
		mtree_store_range(tree, at - from + to, last - from + to, entry,
				  GFP_KERNEL);
		at = last + 1;
	}
}

/* Return: the rows of the mapping that begins at an address, or NULL. */
static const struct econ_row *econ_rows_from(struct econ_mm *econ,
					     unsigned long begin, u32 *nr)
{
	const struct econ_row *first;
	struct ma_state mas;
	void *entry;

	mas_init(&mas, &econ->mappings, begin);
	rcu_read_lock();
	entry = mas_walk(&mas);
	rcu_read_unlock();
	if (!entry || mas.index != begin)
		return NULL;
	first = econ->holder->rows + xa_to_value(entry);
	return econ_rows_of(&econ->holder->profile, &first->key, nr);
}

void __econ_moved(struct mm_struct *mm, unsigned long old,
		  unsigned long old_length, unsigned long new,
		  unsigned long new_length)
{
	unsigned long kept = min(old_length, new_length);
	struct econ_mm *econ = econ_mm_locked(mm);
	const struct econ_row *first;
	u32 nr;

	if (IS_ERR_VALUE(new))
		return;
	first = econ_rows_from(econ, old, &nr);
	/* Remove stale entries of the new range first. */
	if (new == old) {
		econ_forget_range(econ, new + kept, new + new_length);
	} else {
		econ_forget_range(econ, new, new + new_length);
		econ_copy_range(&econ->ranges, old, new, kept);
		econ_copy_range(&econ->mappings, old, new, kept);
		econ_forget_range(econ, old, old + old_length);
	}
	/* A whole mapping that has grown gets the rows of its new part, too. */
	if (first && new_length > old_length)
		econ_store_rows(econ, first, nr, new, new + new_length);
}
