/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of the range map, compared with an array of addresses. */
#include "../spans.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESSES 512

/* Expected owner of each address; 0: none. */
static uint32_t expected[ADDRESSES];

static void put(struct spans *spans, uint64_t start, uint64_t end, uint32_t block)
{
	struct span span = { .start = start, .end = end, .block = block, .base = start };

	spans_put(spans, &span);
	for (uint64_t at = start; at < end; at++)
		expected[at] = block;
}

static void compare(const struct spans *spans)
{
	uint64_t before = 0;

	for (uint64_t at = 0; at < ADDRESSES; at++) {
		const struct span *span = spans_at(spans, at);

		EXPECT("block", span ? span->block : 0, expected[at]);
	}
	for (const struct span *span = spans_from(spans, 0); span;
	     span = spans_from(spans, span->end)) {
		EXPECT("in order", span->start >= before && span->start < span->end, 1);
		before = span->end;
	}
}

static void by_hand(void)
{
	struct spans spans = { 0 };
	struct span *span;

	put(&spans, 100, 200, 1);
	put(&spans, 150, 160, 2);
	EXPECT("left of the hole", spans_at(&spans, 149)->end, 150);
	span = spans_at(&spans, 160);
	EXPECT("right of the hole", span->start, 160);
	EXPECT("its base", span->base, 100);
	EXPECT("next from 200", spans_from(&spans, 200) == NULL, 1);
	spans_cut(&spans, 110, 120);
	EXPECT("cut", spans_at(&spans, 115)->start, 110);
	EXPECT("cut", spans_at(&spans, 115)->end, 120);
	compare(&spans);
	spans_remove(&spans, 0, ADDRESSES);
	EXPECT("empty", spans_from(&spans, 0) == NULL, 1);
	memset(expected, 0, sizeof(expected));
}

static void at_random(void)
{
	struct spans spans = { 0 };

	srand(1);
	for (uint32_t step = 1; step < 3000; step++) {
		uint64_t start = rand() % ADDRESSES;
		uint64_t end = start + rand() % (ADDRESSES - start + 1);

		switch (rand() % 3) {
		case 0:
			put(&spans, start, end, step);
			break;
		case 1:
			spans_remove(&spans, start, end);
			for (uint64_t at = start; at < end; at++)
				expected[at] = 0;
			break;
		default:
			spans_cut(&spans, start, end);
		}
		compare(&spans);
	}
}

int main(void)
{
	by_hand();
	at_random();
	return finish("spans");
}
