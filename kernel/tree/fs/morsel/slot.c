// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots of a mapping. This file contains arithmetic only.
 *
 * A slot is an entry of a page table of the process: 1 GiB of a PUD table, or 2 MiB of
 * a PMD table. A morsel can be attached to it if the address and the offset in the
 * morsel have the same alignment, and if the whole slot belongs to the mapping: the
 * rest may belong to another one.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/minmax.h>
#include <linux/pgtable.h>
#include <linux/types.h>

#include "slot.h"

/**
 * morsel_slot_size - size of a slot
 * @level: level of the slot
 *
 * Context: any.
 * Return: size in bytes, a power of two.
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
 * morsel_slot_begin - first address of a slot
 * @address: address in the slot
 * @level: level of the slot
 *
 * Context: any.
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
 * morsel_slot_level - level of the slot that can map an address
 * @span: the mapping
 * @address: address in it
 *
 * Context: any.
 * Return: level of the largest slot that belongs to the mapping as a whole.
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
 * morsel_alignment - alignment of a mapping that allows slots
 * @length: length of the mapping, in bytes
 * @offset: offset in the morsel, in bytes
 *
 * Context: any.
 * Return: size of the largest slot that fits into a mapping at an address
 * congruent to @offset modulo that size, or the size of a page.
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
