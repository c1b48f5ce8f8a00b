/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Disjoint address ranges, each with a few words of data: a treap, so that tens of
 * thousands of mappings are added and removed in logarithmic time.
 */
#ifndef TOLL_SPANS_H
#define TOLL_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start, end;
	/* Bits defined by the user of the map. */
	uint32_t flags;
	uint32_t block;
	/* Address of the block's first page: a span may be the rest of a longer one. */
	uint64_t base;
};

struct span_node;

struct spans {
	struct span_node *root;
	uint64_t random;
};

/* Inserts a span and replaces overlapping ones. False if memory is short. */
bool spans_put(struct spans *spans, const struct span *span);

/* Removes start..end and shortens overlapping spans. */
void spans_remove(struct spans *spans, uint64_t start, uint64_t end);

/* Returns the first span that ends after `address`; NULL if none. */
struct span *spans_from(const struct spans *spans, uint64_t address);

/* Returns the span that contains `address`; NULL if none. */
static inline struct span *spans_at(const struct spans *spans, uint64_t address)
{
	struct span *span = spans_from(spans, address);

	return span && span->start <= address ? span : NULL;
}

/* Splits spans so that start..end consists of whole ones. */
void spans_cut(struct spans *spans, uint64_t start, uint64_t end);

#endif
