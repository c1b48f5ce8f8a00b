/* SPDX-License-Identifier: GPL-2.0-only */
/* A model of the data TLBs of one x86-64 core: see tlb.h. */
#include "tlb.h"

#include <stdlib.h>
#include <string.h>

/* Invalidations of more pages than this scan the arrays instead. */
#define SCAN_ABOVE 32

static bool array_init(struct tlb_array *array, struct tlb_shape shape)
{
	array->sets = 1;
	array->ways = 1;
	if (shape.entries) {
		if (!shape.ways || shape.entries % shape.ways)
			return false;
		array->sets = shape.entries / shape.ways;
		array->ways = shape.ways;
	}
	array->tags = calloc((size_t)array->sets * array->ways, sizeof(uint64_t));
	if (!array->tags)
		return false;
	/* No entries: one way that nothing is ever put into. */
	if (!shape.entries)
		array->ways = 0;
	return true;
}

/* Moves the way at `position` of a set to the front and makes it `tag`. */
static void to_front(uint64_t *set, uint32_t position, uint64_t tag)
{
	memmove(set + 1, set, position * sizeof(*set));
	set[0] = tag;
}

/* Looks a tag up; if it is there it becomes the most recently used. */
static bool touch(struct tlb_array *array, uint64_t number, uint64_t tag)
{
	uint64_t *set = tlb_set(array, number);

	for (uint32_t way = 0; way < array->ways; way++) {
		if (set[way] == tag) {
			to_front(set, way, tag);
			return true;
		}
	}
	return false;
}

/* Puts a tag into its set, in place of the least recently used one. */
static void fill(struct tlb_array *array, uint64_t number, uint64_t tag)
{
	uint64_t *set = tlb_set(array, number);
	uint32_t way = 0;

	if (!array->ways)
		return;
	while (way < array->ways - 1 && set[way])
		way++;
	to_front(set, way, tag);
}

/* As fill(), but tags of the same page size hold at most `limit` ways of the set. */
static void fill_limited(struct tlb_array *array, uint64_t number, uint64_t tag,
			 uint32_t limit)
{
	uint64_t *set = tlb_set(array, number);
	uint32_t held = 0, last = 0;

	for (uint32_t way = 0; way < array->ways; way++) {
		if ((set[way] & 3) == (tag & 3)) {
			held++;
			last = way;
		}
	}
	if (held && held >= limit)
		to_front(set, last, tag);
	else
		fill(array, number, tag);
}

static void forget(struct tlb_array *array, uint64_t number, uint64_t tag)
{
	uint64_t *set = tlb_set(array, number);

	for (uint32_t way = 0; way < array->ways; way++) {
		if (set[way] == tag) {
			memmove(set + way, set + way + 1,
				(array->ways - 1 - way) * sizeof(*set));
			set[array->ways - 1] = 0;
			return;
		}
	}
}

/* Forgets every tag whose page overlaps start..end. */
static void forget_range(struct tlb_array *array, uint64_t start, uint64_t end)
{
	for (uint32_t index = 0; index < array->sets; index++) {
		uint64_t *set = array->tags + (size_t)index * array->ways;
		uint32_t kept = 0;

		for (uint32_t way = 0; way < array->ways && set[way]; way++) {
			unsigned int shift = tlb_shift((set[way] & 3) - 1);
			uint64_t first = (set[way] >> 2) << shift;

			if (first >= end || first + (1ull << shift) <= start)
				set[kept++] = set[way];
		}
		while (kept < array->ways && set[kept])
			set[kept++] = 0;
	}
}

struct tlb *tlb_new(const struct tlb_config *config)
{
	struct tlb *tlb = calloc(1, sizeof(*tlb));
	bool fine = tlb != NULL;

	if (!fine)
		return NULL;
	for (int size = 0; size < TLB_SIZES; size++) {
		fine &= array_init(&tlb->l1[size], config->l1[size]);
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
		free(tlb->l1[size].tags);
		free(tlb->l2[size].tags);
	}
	free(tlb->pde.tags);
	free(tlb->pdpte.tags);
	free(tlb);
}

/* Whether a structure cache had the entry; it has now. */
static bool cached(struct tlb_array *array, uint64_t number)
{
	uint64_t tag = tlb_tag(number, TLB_4K);

	if (touch(array, number, tag))
		return true;
	fill(array, number, tag);
	return false;
}

/* The number of table entries that a walk reads: four levels less what the caches know. */
static unsigned int walk(struct tlb *tlb, uint64_t address, enum tlb_size size)
{
	unsigned int levels = 4 - size;

	if (size == TLB_4K && cached(&tlb->pde, address >> 21)) {
		return 1;
	}
	if (size <= TLB_2M && cached(&tlb->pdpte, address >> 30))
		return levels - 2;
	return levels;
}

static struct tlb_array *second_level(struct tlb *tlb, enum tlb_size size)
{
	return &tlb->l2[size == TLB_2M && tlb->l2_shared ? TLB_4K : size];
}

enum tlb_level tlb_access_slow(struct tlb *tlb, uint64_t address, enum tlb_size size)
{
	uint64_t number = address >> tlb_shift(size);
	uint64_t tag = tlb_tag(number, size);
	struct tlb_array *l2 = second_level(tlb, size);

	if (touch(&tlb->l1[size], number, tag))
		return TLB_L1;
	fill(&tlb->l1[size], number, tag);
	if (touch(l2, number, tag))
		return TLB_L2;
	if (size == TLB_2M && tlb->l2_shared)
		fill_limited(l2, number, tag, tlb->shared_2m_ways);
	else
		fill(l2, number, tag);
	tlb->steps = walk(tlb, address, size);
	return TLB_WALK;
}

static void invalidate_pages(struct tlb *tlb, enum tlb_size size, uint64_t start,
			     uint64_t end)
{
	unsigned int shift = tlb_shift(size);
	uint64_t first = start >> shift, last = (end - 1) >> shift;

	if (last - first >= SCAN_ABOVE) {
		forget_range(&tlb->l1[size], start, end);
		forget_range(&tlb->l2[size], start, end);
		return;
	}
	for (uint64_t number = first; number <= last; number++) {
		forget(&tlb->l1[size], number, tlb_tag(number, size));
		forget(second_level(tlb, size), number, tlb_tag(number, size));
	}
}

/* A structure cache holds numbers of 1 << shift bytes as if they were pages. */
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
	/* With the shared array, a long 2 MiB range lies among 4 KiB tags. */
	if (tlb->l2_shared)
		forget_range(&tlb->l2[TLB_4K], start, end);
	invalidate_structure(&tlb->pde, 21, start, end);
	invalidate_structure(&tlb->pdpte, 30, start, end);
}
