/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _FS_MORSEL_SLOT_H
#define _FS_MORSEL_SLOT_H

#include <linux/types.h>

/**
 * struct morsel_span - the properties of a mapping that its slots depend on
 * @begin: first address
 * @end: end address
 * @offset: offset in the morsel of @begin, in bytes
 */
struct morsel_span {
	unsigned long begin;
	unsigned long end;
	u64 offset;
};

/**
 * enum morsel_level - level of the entry that maps an address
 * @MORSEL_PAGE: a page in the tables of the process
 * @MORSEL_PMD: a slot of 2 MiB: a page table of the morsel, or a leaf
 * @MORSEL_PUD: a slot of 1 GiB
 */
enum morsel_level {
	MORSEL_PAGE,
	MORSEL_PMD,
	MORSEL_PUD,
};

unsigned long morsel_slot_size(enum morsel_level level);
unsigned long morsel_slot_begin(unsigned long address, enum morsel_level level);
enum morsel_level morsel_slot_level(const struct morsel_span *span,
				    unsigned long address);
unsigned long morsel_alignment(unsigned long length, u64 offset);

#endif /* _FS_MORSEL_SLOT_H */
