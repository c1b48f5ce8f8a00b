/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address ranges without overlap, each with a few words about it: a treap, so
 * that tens of thousands of mappings come and go in logarithmic time.
 */
#ifndef TOLL_SPANS_H
#define TOLL_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start, end;
	/* Bits that the user of the map defines. */
	uint32_t flags;
	uint32_t block;
	/* Address of the block's first page: a span may be what is left of a longer one. */
	uint64_t base;
};

struct span_node;

struct spans {
	struct span_node *root;
	uint64_t random;
};

/* Puts a span in place of whatever was there. False if memory is short. */
bool spans_put(struct spans *spans, const struct span *span);

/* Removes start..end, shortening what overlaps it. */
void spans_remove(struct spans *spans, uint64_t start, uint64_t end);

/* The first span that ends after `address`; NULL if none. */
struct span *spans_from(const struct spans *spans, uint64_t address);

/* The span that holds `address`; NULL if none. */
static inline struct span *spans_at(const struct spans *spans, uint64_t address)
{
	struct span *span = spans_from(spans, address);

	return span && span->start <= address ? span : NULL;
}

/* Cuts spans so that start..end is made of whole ones. */
void spans_cut(struct spans *spans, uint64_t start, uint64_t end);

#endif
