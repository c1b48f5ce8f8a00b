/* SPDX-License-Identifier: GPL-2.0-only */
/* Address ranges in a treap: see spans.h. */
#include "spans.h"

#include <stdlib.h>

struct span_node {
	struct span span;
	uint64_t priority;
	struct span_node *left, *right;
};

static struct span_node *merge(struct span_node *low, struct span_node *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low->right = merge(low->right, high);
		return low;
	}
	high->left = merge(low, high->left);
	return high;
}

/* Splits into the spans that start below `address`, and the others. */
static void split(struct span_node *node, uint64_t address, struct span_node **low,
		  struct span_node **high)
{
	if (!node) {
		*low = *high = NULL;
	} else if (node->span.start < address) {
		split(node->right, address, &node->right, high);
		*low = node;
	} else {
		split(node->left, address, low, &node->left);
		*high = node;
	}
}

static uint64_t next_random(struct spans *spans)
{
	uint64_t x = spans->random ? spans->random : 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return spans->random = x;
}

/* Inserts a span into a free range. */
static bool insert(struct spans *spans, const struct span *span)
{
	struct span_node *node = calloc(1, sizeof(*node)), *low, *high;

	if (!node)
		return false;
	node->span = *span;
	node->priority = next_random(spans);
	split(spans->root, span->start, &low, &high);
	spans->root = merge(merge(low, node), high);
	return true;
}

/* Splits the span at `address`, if necessary. */
static void cut(struct spans *spans, uint64_t address)
{
	struct span *span = spans_at(spans, address);
	struct span rest;

	if (!span || span->start == address)
		return;
	rest = *span;
	rest.start = address;
	span->end = address;
	insert(spans, &rest);
}

void spans_cut(struct spans *spans, uint64_t start, uint64_t end)
{
	cut(spans, start);
	cut(spans, end);
}

static void free_all(struct span_node *node)
{
	if (!node)
		return;
	free_all(node->left);
	free_all(node->right);
	free(node);
}

void spans_remove(struct spans *spans, uint64_t start, uint64_t end)
{
	struct span_node *low, *middle, *high;

	if (start >= end)
		return;
	spans_cut(spans, start, end);
	split(spans->root, start, &low, &middle);
	split(middle, end, &middle, &high);
	free_all(middle);
	spans->root = merge(low, high);
}

bool spans_put(struct spans *spans, const struct span *span)
{
	if (span->start >= span->end)
		return true;
	spans_remove(spans, span->start, span->end);
	return insert(spans, span);
}

struct span *spans_from(const struct spans *spans, uint64_t address)
{
	struct span_node *node = spans->root;
	struct span *found = NULL;

	while (node) {
		if (node->span.end > address) {
			found = &node->span;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return found;
}
