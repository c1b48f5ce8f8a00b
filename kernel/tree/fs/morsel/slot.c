// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which part of a mapping is served by which slot: arithmetic alone.
 *
 * A slot is an entry of a page table of the process: 1 GiB of a PUD table, or
 * 2 MiB of a PMD table. It can hold what the morsel has there if the address and
 * the place in the morsel are aligned to it alike, and if the whole slot belongs
 * to the mapping: what is left of it would be somebody else's.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/minmax.h>
#include <linux/pgtable.h>
#include <linux/types.h>

#include "slot.h"

/**
 * morsel_slot_size - how much a slot maps
 * @level: its level
 *
 * Return: bytes, a power of two.
 */
unsigned long morsel_slot_size(enum morsel_level level)
{
	switch (level) {
	case MORSEL_PUD:
		return PUD_SIZE;
	case MORSEL_PMD:
		return PMD_SIZE;
	default:
		return PAGE_SIZE;
	}
}

/**
 * morsel_slot_begin - the first address of the slot
 * @address: somewhere in it
 * @level: its level
 *
 * Return: the address.
 */
unsigned long morsel_slot_begin(unsigned long address, enum morsel_level level)
{
	return address & ~(morsel_slot_size(level) - 1);
}

static bool morsel_slot_fits(const struct morsel_span *span, unsigned long address,
			     enum morsel_level level)
{
	unsigned long size = morsel_slot_size(level);
	unsigned long begin = morsel_slot_begin(address, level);

	return !((span->begin - span->offset) & (size - 1)) &&
	       begin >= span->begin && span->end - begin >= size;
}

/**
 * morsel_slot_level - what serves an address
 * @span: the mapping
 * @address: in it
 *
 * Return: the largest slot that belongs to the mapping as a whole.
 */
enum morsel_level morsel_slot_level(const struct morsel_span *span,
				    unsigned long address)
{
	enum morsel_level level;

	for (level = MORSEL_PUD; level > MORSEL_PAGE; level--)
		if (morsel_slot_fits(span, address, level))
			break;
	return level;
}

/**
 * morsel_alignment - how an address has to be aligned to be served by slots
 * @length: of the mapping, in bytes
 * @offset: what of the morsel it begins with, in bytes
 *
 * Return: the size of the largest slot of which one fits into the mapping
 * wherever it begins in its slot as @offset does, or that of a page.
 */
unsigned long morsel_alignment(unsigned long length, u64 offset)
{
	enum morsel_level level;

	for (level = MORSEL_PUD; level > MORSEL_PAGE; level--) {
		unsigned long size = morsel_slot_size(level);
		unsigned long before = -offset & (size - 1);

		if (length >= before && length - before >= size)
			break;
	}
	return morsel_slot_size(level);
}
