/* SPDX-License-Identifier: GPL-2.0-only */
/* A model of the TLBs of one x86-64 core: see tlb.h. */
#include "tlb.h"

#include <stdlib.h>

/* Invalidations of more pages than this scan the arrays instead. */
#define SCAN_ABOVE 32

static bool array_init(struct tlb_array *array, struct tlb_shape shape)
{
	size_t tags;

	array->sets = 1;
	if (shape.entries) {
		if (!shape.ways || shape.entries % shape.ways)
			return false;
		array->sets = shape.entries / shape.ways;
		array->ways = shape.ways;
	}
	/* No entries: zero ways, and one tag that stays empty. */
	tags = shape.entries ? shape.entries : 1;
	array->tags = calloc(tags, sizeof(*array->tags));
	array->used = calloc(tags, sizeof(*array->used));
	return array->tags && array->used;
}

static void array_free(struct tlb_array *array)
{
	free(array->tags);
	free(array->used);
}

/* Returns the first tag of the set for a page number. */
static uint32_t first_of(const struct tlb_array *array, uint64_t number)
{
	uint32_t sets = array->sets;
	uint32_t set = sets & (sets - 1) ? number % sets : number & (sets - 1);

	return set * array->ways;
}

/* Looks a tag up; a hit becomes the most recently used. */
static bool touch(struct tlb *tlb, struct tlb_array *array, uint64_t number, uint64_t tag,
		  uint32_t *where)
{
	uint32_t first = first_of(array, number);

	for (uint32_t at = first; at < first + array->ways; at++) {
		if (array->tags[at] == tag) {
			array->used[at] = tlb->time;
			*where = at;
			return true;
		}
	}
	return false;
}

/* Stores a tag at a position. */
static uint32_t put(struct tlb *tlb, struct tlb_array *array, uint32_t at, uint64_t tag)
{
	if (array->ways) {
		array->tags[at] = tag;
		array->used[at] = tlb->time;
	}
	return at;
}

/*
 * Inserts a tag into its set, replacing the least recently used one; empty ones count as
 * oldest.
 */
static uint32_t fill(struct tlb *tlb, struct tlb_array *array, uint64_t number, uint64_t tag)
{
	uint32_t first = first_of(array, number), oldest = first;
	uint64_t least = array->used[first];

	for (uint32_t at = first + 1; at < first + array->ways; at++) {
		uint64_t used = array->used[at];

		oldest = used < least ? at : oldest;
		least = used < least ? used : least;
	}
	return put(tlb, array, oldest, tag);
}

/* Like fill(), but tags of the same page size hold at most `limit` ways of the set. */
static void fill_limited(struct tlb *tlb, struct tlb_array *array, uint64_t number,
			 uint64_t tag, uint32_t limit)
{
	uint32_t first = first_of(array, number), held = 0, oldest = first;

	for (uint32_t at = first; at < first + array->ways; at++) {
		if ((array->tags[at] & 3) != (tag & 3))
			continue;
		if (!held++ || array->used[at] < array->used[oldest])
			oldest = at;
	}
	if (held && held >= limit)
		put(tlb, array, oldest, tag);
	else
		fill(tlb, array, number, tag);
}

static void forget_at(struct tlb_array *array, uint32_t at)
{
	array->tags[at] = 0;
	array->used[at] = 0;
}

static void forget(struct tlb_array *array, uint64_t number, uint64_t tag)
{
	uint32_t first = first_of(array, number);

	for (uint32_t at = first; at < first + array->ways; at++)
		if (array->tags[at] == tag)
			forget_at(array, at);
}

/* Removes every tag with a page that overlaps start..end. */
static void forget_range(struct tlb_array *array, uint64_t start, uint64_t end)
{
	for (uint32_t at = 0; at < array->sets * array->ways; at++) {
		uint64_t tag = array->tags[at];
		unsigned int shift = tlb_shift((tag & 3) - 1);
		uint64_t page = tag >> 2 << shift;

		if (tag && page < end && page + (1ull << shift) > start)
			forget_at(array, at);
	}
}

struct tlb *tlb_new(const struct tlb_config *config)
{
	struct tlb *tlb = calloc(1, sizeof(*tlb));
	bool fine = tlb != NULL;

	if (!fine)
		return NULL;
	for (int size = 0; size < TLB_SIZES; size++) {
		fine &= array_init(&tlb->l1[TLB_DATA][size], config->l1[size]);
		fine &= array_init(&tlb->l1[TLB_CODE][size], config->l1_code[size]);
		fine &= array_init(&tlb->l2[size], config->l2[size]);
	}
	fine &= array_init(&tlb->pde, config->pde);
	fine &= array_init(&tlb->pdpte, config->pdpte);
	tlb->l2_shared = config->l2_shared;
	tlb->shared_2m_ways = config->l2[TLB_2M].ways;
	if (!fine) {
		tlb_free(tlb);
		return NULL;
	}
	return tlb;
}

void tlb_free(struct tlb *tlb)
{
	if (!tlb)
		return;
	for (int size = 0; size < TLB_SIZES; size++) {
		for (int side = 0; side < TLB_SIDES; side++)
			array_free(&tlb->l1[side][size]);
		array_free(&tlb->l2[size]);
	}
	array_free(&tlb->pde);
	array_free(&tlb->pdpte);
	free(tlb);
}

/* Whether a structure cache had the entry; inserts it otherwise. */
static bool cached(struct tlb *tlb, struct tlb_array *array, uint64_t number)
{
	uint64_t tag = tlb_tag(number, TLB_4K);
	uint32_t where;

	if (touch(tlb, array, number, tag, &where))
		return true;
	fill(tlb, array, number, tag);
	return false;
}

/*
 * Returns the number of table entries that a walk reads: four levels minus the cached
 * ones.
 */
static unsigned int walk(struct tlb *tlb, uint64_t address, enum tlb_size size)
{
	unsigned int levels = 4 - size;

	if (size == TLB_4K && cached(tlb, &tlb->pde, address >> 21))
		return 1;
	if (size <= TLB_2M && cached(tlb, &tlb->pdpte, address >> 30))
		return levels - 2;
	return levels;
}

static struct tlb_array *second_level(struct tlb *tlb, enum tlb_size size)
{
	return &tlb->l2[size == TLB_2M && tlb->l2_shared ? TLB_4K : size];
}

/* Inserts the result of a walk into the second level. */
static void fill_second(struct tlb *tlb, uint64_t number, enum tlb_size size)
{
	struct tlb_array *l2 = second_level(tlb, size);
	uint64_t tag = tlb_tag(number, size);

	if (size == TLB_2M && tlb->l2_shared)
		fill_limited(tlb, l2, number, tag, tlb->shared_2m_ways);
	else
		fill(tlb, l2, number, tag);
}

enum tlb_level tlb_access_slow(struct tlb *tlb, uint64_t address, enum tlb_size size,
			       uint32_t *hint)
{
	uint64_t number = address >> tlb_shift(size);
	uint64_t tag = tlb_tag(number, size);
	struct tlb_array *l2 = second_level(tlb, size);
	uint32_t where;

	tlb->time++;
	if (touch(tlb, &tlb->l1[TLB_DATA][size], number, tag, hint))
		return TLB_L1;
	*hint = fill(tlb, &tlb->l1[TLB_DATA][size], number, tag);
	if (touch(tlb, l2, number, tag, &where))
		return TLB_L2;
	fill_second(tlb, number, size);
	tlb->steps = walk(tlb, address, size);
	return TLB_WALK;
}

static bool in_first(struct tlb *tlb, enum tlb_side side, uint64_t address, enum tlb_size size)
{
	uint64_t number = address >> tlb_shift(size);

	return touch(tlb, &tlb->l1[side][size], number, tlb_tag(number, size), &tlb->where);
}

static bool in_second(struct tlb *tlb, enum tlb_side side, uint64_t address, enum tlb_size size)
{
	uint64_t number = address >> tlb_shift(size), tag = tlb_tag(number, size);

	if (!touch(tlb, second_level(tlb, size), number, tag, &tlb->where))
		return false;
	tlb->where = fill(tlb, &tlb->l1[side][size], number, tag);
	return true;
}

enum tlb_level tlb_lookup(struct tlb *tlb, enum tlb_side side, uint64_t address)
{
	tlb->time++;
	for (tlb->size = 0; tlb->size < TLB_SIZES; tlb->size++)
		if (in_first(tlb, side, address, tlb->size))
			return TLB_L1;
	for (tlb->size = 0; tlb->size < TLB_SIZES; tlb->size++)
		if (in_second(tlb, side, address, tlb->size))
			return TLB_L2;
	return TLB_WALK;
}

void tlb_insert(struct tlb *tlb, enum tlb_side side, uint64_t address, enum tlb_size size)
{
	uint64_t number = address >> tlb_shift(size);

	tlb->size = size;
	tlb->where = fill(tlb, &tlb->l1[side][size], number, tlb_tag(number, size));
	fill_second(tlb, number, size);
	tlb->steps = walk(tlb, address, size);
}

static void invalidate_pages(struct tlb *tlb, enum tlb_size size, uint64_t start,
			     uint64_t end)
{
	unsigned int shift = tlb_shift(size);
	uint64_t first = start >> shift, last = (end - 1) >> shift;

	if (last - first >= SCAN_ABOVE) {
		for (int side = 0; side < TLB_SIDES; side++)
			forget_range(&tlb->l1[side][size], start, end);
		forget_range(&tlb->l2[size], start, end);
		return;
	}
	for (uint64_t number = first; number <= last; number++) {
		for (int side = 0; side < TLB_SIDES; side++)
			forget(&tlb->l1[side][size], number, tlb_tag(number, size));
		forget(second_level(tlb, size), number, tlb_tag(number, size));
	}
}

/* A structure cache treats ranges of 1 << shift bytes as pages. */
static void invalidate_structure(struct tlb_array *array, unsigned int shift,
				 uint64_t start, uint64_t end)
{
	forget_range(array, start >> shift << 12, (((end - 1) >> shift) + 1) << 12);
}

void tlb_invalidate(struct tlb *tlb, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	for (int size = 0; size < TLB_SIZES; size++)
		invalidate_pages(tlb, size, start, end);
	/*
	 * In the shared array, the tags of a long 2 MiB range are mixed with 4 KiB tags.
	 */
	if (tlb->l2_shared)
		forget_range(&tlb->l2[TLB_4K], start, end);
	tlb_invalidate_structures(tlb, start, end);
}

void tlb_invalidate_structures(struct tlb *tlb, uint64_t start, uint64_t end)
{
	invalidate_structure(&tlb->pde, 21, start, end);
	invalidate_structure(&tlb->pdpte, 30, start, end);
}
