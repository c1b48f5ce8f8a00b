/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of the TLB model: every expected count can be derived by hand. */
#include "tlb.h"

#include "../user/tests/check.h"

#include <stdlib.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PAGE (4 * KIB)
#define REGION (2 * MIB)

/* 16 + 8 entries in the first level, 64 in a shared second level, all 4-way. */
static const struct tlb_config SMALL = {
	.l1 = { { 16, 4 }, { 8, 4 }, { 4, 4 } },
	.l2 = { { 64, 4 }, { 64, 4 }, { 4, 4 } },
	.l2_shared = true,
	.pde = { 4, 4 },
	.pdpte = { 2, 2 },
};

struct counts {
	unsigned int level[3];
};

/* An access without a hint. */
static enum tlb_level touch(struct tlb *tlb, uint64_t address, enum tlb_size size)
{
	uint32_t hint = 0;

	return tlb_access(tlb, address, size, &hint);
}

/* Touches `pages` pages `stride` bytes apart, `rounds` times. */
static struct counts sweep(struct tlb *tlb, enum tlb_size size, uint64_t stride,
			   unsigned int pages, unsigned int rounds)
{
	struct counts counts = { { 0 } };

	for (unsigned int round = 0; round < rounds; round++)
		for (unsigned int page = 0; page < pages; page++)
			counts.level[touch(tlb, GIB + page * stride, size)]++;
	return counts;
}

static struct tlb *make(const struct tlb_config *config)
{
	struct tlb *tlb = tlb_new(config);

	if (!tlb) {
		printf("no memory\n");
		exit(1);
	}
	return tlb;
}

static void check_sweep(enum tlb_size size, uint64_t stride, unsigned int pages,
			unsigned int rounds, unsigned int l1, unsigned int l2,
			unsigned int walks)
{
	struct tlb *tlb = make(&SMALL);
	struct counts counts = sweep(tlb, size, stride, pages, rounds);

	EXPECT("hits of L1", counts.level[TLB_L1], l1);
	EXPECT("hits of L2", counts.level[TLB_L2], l2);
	EXPECT("walks", counts.level[TLB_WALK], walks);
	tlb_free(tlb);
}

static void strides(void)
{
	/* One access per page: each page walks once, the rest hit L1. */
	check_sweep(TLB_4K, PAGE, 16, 10, 144, 0, 16);
	/* 17 pages in 4 sets: the set with five pages never hits, the others always. */
	check_sweep(TLB_4K, PAGE, 17, 10, 9 * 12, 9 * 5, 17);
	/* 64 pages fill L2 and thrash L1. */
	check_sweep(TLB_4K, PAGE, 64, 10, 0, 9 * 64, 64);
	/* 65 pages in 16 sets of L2: the set of five walks each time. */
	check_sweep(TLB_4K, PAGE, 65, 10, 0, 9 * 60, 65 + 9 * 5);
	/* Twice the reach: true LRU never hits in a sweep. */
	check_sweep(TLB_4K, PAGE, 128, 10, 0, 0, 1280);
	/* 64 accesses to each page (64 bytes apart) are 63 hits. */
	check_sweep(TLB_4K, 64, 128 * 64, 2, 2 * 128 * 63, 0, 2 * 128);
	/* The same bytes on 2 MiB pages: one walk. */
	check_sweep(TLB_2M, 64, 128 * 64, 2, 2 * 128 * 64 - 1, 0, 1);
}

static void conflicts(void)
{
	/* A stride of 4 pages puts all into one set of L1: 4 fit, 5 do not. */
	check_sweep(TLB_4K, 4 * PAGE, 4, 10, 36, 0, 4);
	check_sweep(TLB_4K, 4 * PAGE, 5, 10, 0, 45, 5);
	/* A stride of 16 pages puts all into one set of L2 as well. */
	check_sweep(TLB_4K, 16 * PAGE, 5, 10, 0, 0, 50);
	/* 2 MiB pages: two sets of L1, sixteen of L2. */
	check_sweep(TLB_2M, REGION, 8, 10, 72, 0, 8);
	check_sweep(TLB_2M, 2 * REGION, 5, 10, 0, 45, 5);
	check_sweep(TLB_2M, 16 * REGION, 5, 10, 0, 0, 50);
}

/* True LRU: of 4 ways, the least recently used one is evicted. */
static void recency(void)
{
	struct tlb *tlb = make(&SMALL);
	uint64_t way = 16 * PAGE;

	sweep(tlb, TLB_4K, way, 4, 1);
	EXPECT("page 0", touch(tlb, GIB, TLB_4K), TLB_L1);
	EXPECT("page 4", touch(tlb, GIB + 4 * way, TLB_4K), TLB_WALK);
	EXPECT("page 0 again", touch(tlb, GIB, TLB_4K), TLB_L1);
	/*
	 * L2 did not see page 0 hit in L1, so page 0 was evicted there, and page 1 was
	 * not.
	 */
	EXPECT("page 1", touch(tlb, GIB + way, TLB_4K), TLB_L2);
	EXPECT("page 3", touch(tlb, GIB + 3 * way, TLB_4K), TLB_L1);
	tlb_free(tlb);
}

/*
 * In the shared array both sizes compete; with a limit, 2 MiB pages get at most that many
 * ways.
 */
static void sharing(void)
{
	struct tlb_config config = SMALL;
	struct tlb *tlb = make(&config);

	for (int page = 0; page < 4; page++)
		touch(tlb, (uint64_t)page * 16 * PAGE, TLB_4K);
	for (int page = 0; page < 4; page++)
		touch(tlb, GIB + (uint64_t)page * 16 * REGION, TLB_2M);
	/* All four ways went to 2 MiB pages; L1 still has the 4 KiB pages. */
	EXPECT("4 KiB in L1", touch(tlb, 0, TLB_4K), TLB_L1);
	for (int page = 1; page < 5; page++)
		touch(tlb, PAGE + (uint64_t)page * 4 * PAGE - PAGE, TLB_4K);
	EXPECT("4 KiB in L2", touch(tlb, 0, TLB_4K), TLB_WALK);
	tlb_free(tlb);

	config.l2[TLB_2M].ways = 2;
	tlb = make(&config);
	EXPECT("walks with 2 of 4 ways",
	       sweep(tlb, TLB_2M, 16 * REGION, 3, 10).level[TLB_WALK], 3);
	tlb_free(tlb);
	/* Three pages fit L1's four ways; five do not, and L2 keeps two of them. */
	tlb = make(&config);
	EXPECT("walks with 2 of 4 ways",
	       sweep(tlb, TLB_2M, 16 * REGION, 5, 10).level[TLB_WALK], 50);
	tlb_free(tlb);
}

static void separate(void)
{
	struct tlb_config config = SMALL;
	struct tlb *tlb;

	config.l2_shared = false;
	config.l2[TLB_2M] = (struct tlb_shape){ 0, 0 };
	tlb = make(&config);
	/* No second level for 2 MiB pages: nine pages in two sets of four. */
	EXPECT("hits of L2", sweep(tlb, TLB_2M, REGION, 9, 10).level[TLB_L2], 0);
	tlb_free(tlb);
	tlb = make(&config);
	EXPECT("walks", sweep(tlb, TLB_2M, REGION, 9, 10).level[TLB_WALK], 4 + 50);
	tlb_free(tlb);
}

static void invalidation(void)
{
	struct tlb *tlb = make(&SMALL);

	sweep(tlb, TLB_4K, PAGE, 16, 1);
	tlb_invalidate(tlb, GIB + PAGE, GIB + 3 * PAGE);
	EXPECT("page 0", touch(tlb, GIB, TLB_4K), TLB_L1);
	EXPECT("page 1", touch(tlb, GIB + PAGE, TLB_4K), TLB_WALK);
	EXPECT("page 2", touch(tlb, GIB + 2 * PAGE, TLB_4K), TLB_WALK);
	EXPECT("page 3", touch(tlb, GIB + 3 * PAGE, TLB_4K), TLB_L1);
	/* A range longer than the scan's threshold, and one byte of a huge page. */
	tlb_invalidate(tlb, GIB, GIB + 100 * PAGE);
	EXPECT("walks", sweep(tlb, TLB_4K, PAGE, 16, 1).level[TLB_WALK], 16);
	touch(tlb, 8 * GIB, TLB_2M);
	tlb_invalidate(tlb, 8 * GIB + 4096, 8 * GIB + 4097);
	EXPECT("huge", touch(tlb, 8 * GIB, TLB_2M), TLB_WALK);
	tlb_invalidate(tlb, 0, 1ull << 47);
	EXPECT("huge, all gone", touch(tlb, 8 * GIB, TLB_2M), TLB_WALK);
	tlb_free(tlb);
}

static void steps(void)
{
	struct tlb *tlb = make(&SMALL);

	touch(tlb, GIB, TLB_4K);
	EXPECT("first walk", tlb->steps, 4);
	touch(tlb, GIB + PAGE, TLB_4K);
	EXPECT("same directory", tlb->steps, 1);
	touch(tlb, GIB + REGION, TLB_4K);
	EXPECT("same gigabyte", tlb->steps, 2);
	touch(tlb, GIB + 2 * REGION, TLB_2M);
	EXPECT("huge, same gigabyte", tlb->steps, 1);
	touch(tlb, 5 * GIB, TLB_2M);
	EXPECT("huge, other gigabyte", tlb->steps, 3);
	touch(tlb, 7 * GIB, TLB_1G);
	EXPECT("1 GiB page", tlb->steps, 2);
	tlb_free(tlb);
}

/* Hints affect only the time: the same counts with and without. */
static void hints(void)
{
	struct tlb *with = make(&SMALL), *without = make(&SMALL);
	uint32_t hint[100] = { 0 };
	uint32_t random = 1, differences = 0;

	for (int i = 0; i < 100000; i++) {
		uint64_t page;

		random = random * 1103515245 + 12345;
		page = (random >> 16) % (i % 1000 < 500 ? 20 : 100);
		differences += tlb_access(with, page * PAGE, TLB_4K, &hint[page]) !=
			       touch(without, page * PAGE, TLB_4K);
	}
	EXPECT("differences", differences, 0);
	tlb_free(with);
	tlb_free(without);
}

/* An access with a page size that only the walk determines. */
static enum tlb_level find(struct tlb *tlb, enum tlb_side side, uint64_t address,
			   enum tlb_size size)
{
	enum tlb_level level = tlb_lookup(tlb, side, address);

	if (level == TLB_WALK)
		tlb_insert(tlb, side, address, size);
	return level;
}

/* Both kinds of lookup give the same counts on one side. */
static void unknown_size(void)
{
	struct tlb *with = make(&SMALL), *without = make(&SMALL);
	uint32_t random = 1, differences = 0;

	for (int i = 0; i < 100000; i++) {
		uint64_t address;
		enum tlb_size size;

		random = random * 1103515245 + 12345;
		size = (random >> 30) & 1;
		address = size * GIB + ((random >> 16) % 40 << tlb_shift(size));
		differences += find(with, TLB_DATA, address, size) !=
			       touch(without, address, size);
	}
	EXPECT("differences", differences, 0);
	tlb_free(with);
	tlb_free(without);
}

/* Code has its own first level, and shares the second with data. */
static void sides(void)
{
	struct tlb_config config = SMALL;
	struct tlb *tlb;

	config.l1_code[TLB_4K] = (struct tlb_shape){ 8, 4 };
	tlb = make(&config);
	EXPECT("data", find(tlb, TLB_DATA, GIB, TLB_4K), TLB_WALK);
	EXPECT("code after data", find(tlb, TLB_CODE, GIB, TLB_4K), TLB_L2);
	EXPECT("code again", find(tlb, TLB_CODE, GIB, TLB_4K), TLB_L1);
	tlb_invalidate(tlb, GIB, GIB + PAGE);
	EXPECT("code, invalidated", find(tlb, TLB_CODE, GIB, TLB_4K), TLB_WALK);
	tlb_invalidate(tlb, 0, 1ull << 47);
	EXPECT("code, all invalidated", find(tlb, TLB_CODE, GIB, TLB_4K), TLB_WALK);
	EXPECT("steps", tlb->steps, 4);
	find(tlb, TLB_CODE, GIB + PAGE, TLB_4K);
	EXPECT("steps with caches", tlb->steps, 1);
	tlb_invalidate_structures(tlb, 0, 1ull << 47);
	find(tlb, TLB_CODE, GIB + 2 * PAGE, TLB_4K);
	EXPECT("steps without", tlb->steps, 4);
	tlb_free(tlb);
}

static void impossible(void)
{
	struct tlb_config config = SMALL;

	config.l1[TLB_4K].ways = 5;
	EXPECT("16 entries in 5 ways", tlb_new(&config) == NULL, 1);
	config.l1[TLB_4K].ways = 0;
	EXPECT("16 entries in no way", tlb_new(&config) == NULL, 1);
}

int main(void)
{
	strides();
	conflicts();
	recency();
	sharing();
	separate();
	invalidation();
	steps();
	hints();
	unknown_size();
	sides();
	impossible();
	return finish("tlb-model");
}
