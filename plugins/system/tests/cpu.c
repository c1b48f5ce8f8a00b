/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of a virtual CPU's TLBs with handmade page tables: every count can be derived. */
#include "../cpu.h"

#include "../../user/tests/check.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096ull
#define REGION (2ull << 20)
#define GIB (1ull << 30)
#define USER_AT 0x500000000000ull
#define KERNEL_AT 0xffff888000000000ull

#define PRESENT 1ull
#define RW 2ull
#define USER 4ull
#define LARGE 0x80ull
#define GLOBAL 0x100ull

static const struct tlb_config SMALL = {
	.l1 = { { 16, 4 }, { 8, 4 }, { 4, 4 } },
	.l1_code = { { 16, 4 }, { 8, 4 }, { 4, 4 } },
	.l2 = { { 64, 4 }, { 64, 4 }, { 4, 4 } },
	.l2_shared = true,
	.pde = { 4, 4 },
	.pdpte = { 2, 2 },
};

/* Physical memory that holds only page tables. */
static struct {
	uint64_t words[64 * 512];
	uint64_t used; /* pages */
} memory;

static bool read_word(void *context, uint64_t physical, uint64_t *entry)
{
	(void)context;
	if (physical / 8 >= sizeof(memory.words) / 8)
		return false;
	*entry = memory.words[physical / 8];
	return true;
}

static uint64_t new_table(void)
{
	return memory.used++ * PAGE;
}

/* Maps one page of a size in the tables of `root`. */
static void map(uint64_t root, uint64_t address, enum tlb_size size, uint64_t frame, uint64_t flags)
{
	uint64_t table = root;

	for (int level = 3; level > (int)size; level--) {
		uint64_t *entry = &memory.words[table / 8 + (address >> (12 + 9 * level) & 511)];

		if (!*entry)
			*entry = new_table() | PRESENT | RW | USER;
		table = *entry & ~(PAGE - 1);
	}
	if (size)
		flags |= LARGE;
	memory.words[table / 8 + (address >> (12 + 9 * size) & 511)] = frame | flags | PRESENT;
}

/* New tables with 32 user pages, two user regions of 2 MiB, and 32 global kernel pages. */
static uint64_t new_space(void)
{
	uint64_t root = new_table();

	for (uint64_t page = 0; page < 32; page++) {
		map(root, USER_AT + page * PAGE, TLB_4K, page * PAGE, RW | USER);
		map(root, KERNEL_AT + page * PAGE, TLB_4K, page * PAGE, RW | GLOBAL);
	}
	for (uint64_t region = 0; region < 2; region++)
		map(root, USER_AT + GIB + region * REGION, TLB_2M, region * REGION, RW | USER);
	return root;
}

static struct cpu cpu;

static uint64_t start(void)
{
	uint64_t root;

	memset(&memory, 0, sizeof(memory));
	memory.used = 1;
	root = new_space();
	if (!cpu_init(&cpu, &SMALL, read_word, NULL)) {
		printf("no memory\n");
		exit(1);
	}
	cpu_write_cr3(&cpu, root, false);
	return root;
}

/* Loads from `pages` pages; returns the real TLB's load misses. */
static uint64_t sweep(uint64_t address, unsigned int pages)
{
	uint64_t before = cpu.counts[DTLB_LOAD_MISSES];

	for (unsigned int page = 0; page < pages; page++)
		cpu_access(&cpu, ACCESS_LOAD, address + page * PAGE);
	return cpu.counts[DTLB_LOAD_MISSES] - before;
}

static struct walker walker;

static void walks(void)
{
	uint64_t root = start();
	struct leaf leaf;

	walker_init(&walker, read_word, NULL);
	EXPECT("small", walk(&walker, root, USER_AT + 3 * PAGE + 5, &leaf), true);
	EXPECT("size", leaf.size, TLB_4K);
	EXPECT("frame", leaf.frame, 3 * PAGE);
	EXPECT("writable", leaf.writable, true);
	EXPECT("user", leaf.user, true);
	EXPECT("global", leaf.global, false);
	EXPECT("huge", walk(&walker, root, USER_AT + GIB + REGION + 7 * PAGE, &leaf), true);
	EXPECT("size", leaf.size, TLB_2M);
	EXPECT("frame", leaf.frame, REGION);
	EXPECT("kernel", walk(&walker, root, KERNEL_AT, &leaf), true);
	EXPECT("global", leaf.global, true);
	EXPECT("user", leaf.user, false);
	EXPECT("nothing", walk(&walker, root, USER_AT + 40 * PAGE, &leaf), false);
	EXPECT("table that cannot be read", walk(&walker, 1ull << 40, 0, &leaf), false);
	cpu_destroy(&cpu);
}

static uint64_t words_read;

static bool read_and_count(void *context, uint64_t physical, uint64_t *entry)
{
	words_read++;
	return read_word(context, physical, entry);
}

static uint64_t words_of(uint64_t root, uint64_t address, struct leaf *leaf)
{
	uint64_t before = words_read;

	EXPECT("mapped", walk(&walker, root, address, leaf), true);
	return words_read - before;
}

/* A walk starts at the lowest known table, until an invalidation. */
static void tables_are_remembered(void)
{
	uint64_t root = start(), other = new_space();
	struct leaf leaf;

	walker_init(&walker, read_and_count, NULL);
	EXPECT("from the root", words_of(root, USER_AT, &leaf), 4);
	EXPECT("the same 2 MiB", words_of(root, USER_AT + PAGE, &leaf), 1);
	EXPECT("writable", leaf.writable, true);
	EXPECT("user", leaf.user, true);
	EXPECT("a huge page", words_of(root, USER_AT + GIB, &leaf), 3);
	EXPECT("the same 1 GiB", words_of(root, USER_AT + GIB + REGION, &leaf), 1);
	EXPECT("other tables", words_of(other, USER_AT, &leaf), 4);
	EXPECT("in place of the first", words_of(root, USER_AT, &leaf), 4);
	walker_forget(&walker);
	EXPECT("after an invalidation", words_of(root, USER_AT, &leaf), 4);
	/* Upper levels restrict permissions. */
	memory.words[root / 8 + (USER_AT >> 39 & 511)] &= ~RW;
	walker_forget(&walker);
	words_of(root, USER_AT, &leaf);
	EXPECT("read-only", leaf.writable, false);
	words_of(root, USER_AT + PAGE, &leaf);
	EXPECT("read-only, remembered", leaf.writable, false);
	cpu_destroy(&cpu);
}

static void misses(void)
{
	start();
	EXPECT("cold", sweep(USER_AT, 16), 16);
	EXPECT("warm", sweep(USER_AT, 16), 0);
	EXPECT("other words of the pages", sweep(USER_AT + 8, 16), 0);
	/* A huge page is one translation. */
	EXPECT("huge", sweep(USER_AT + GIB, 512), 1);
	cpu_access(&cpu, ACCESS_STORE, USER_AT + 20 * PAGE);
	EXPECT("store", cpu.counts[DTLB_STORE_MISSES], 1);
	/* Code has a first level of its own and shares the second. */
	cpu_access(&cpu, ACCESS_CODE, USER_AT);
	EXPECT("code, known to the second level", cpu.counts[ITLB_MISSES], 0);
	cpu_access(&cpu, ACCESS_CODE, USER_AT + 21 * PAGE);
	EXPECT("code", cpu.counts[ITLB_MISSES], 1);
	EXPECT("not mapped", sweep(USER_AT + 40 * PAGE, 1), 0);
	EXPECT("shadow", cpu.counts[SHADOW_DTLB_LOAD_MISSES], cpu.counts[DTLB_LOAD_MISSES]);
	cpu_destroy(&cpu);
}

static void invalidations(void)
{
	uint64_t root = start();

	sweep(USER_AT, 8);
	sweep(KERNEL_AT, 8);
	cpu_invlpg(&cpu, USER_AT + PAGE + 100, false);
	cpu_invlpg(&cpu, KERNEL_AT, false);
	EXPECT("one user page", sweep(USER_AT, 8), 1);
	EXPECT("one global page", sweep(KERNEL_AT, 8), 1);
	cpu_write_cr3(&cpu, root, false);
	EXPECT("all user pages", sweep(USER_AT, 8), 8);
	EXPECT("no global page", sweep(KERNEL_AT, 8), 0);
	cpu_flush_global(&cpu, false);
	EXPECT("global pages too", sweep(KERNEL_AT, 8), 8);
	EXPECT("invlpgs", cpu.counts[INVLPGS], 2);
	EXPECT("full flushes", cpu.counts[FULL_FLUSHES], 3);
	cpu_destroy(&cpu);
}

/*
 * A page with tables changed without a flush keeps its old translation, as in hardware.
 */
static void stale(void)
{
	uint64_t root = start();

	sweep(USER_AT + GIB, 1);
	memory.words[root / 8 + (USER_AT >> 39 & 511)] = 0;
	EXPECT("still there, and huge", sweep(USER_AT + GIB, 512), 0);
	cpu_invlpg(&cpu, USER_AT + GIB, false);
	EXPECT("not mapped any more", sweep(USER_AT + GIB, 1), 0);
	EXPECT("walks in all", cpu.counts[DTLB_LOAD_MISSES], 1);
	cpu_destroy(&cpu);
}

static void spaces(void)
{
	const uint64_t keep = 1ull << 63;
	uint64_t one = start(), other = new_space();

	cpu_write_cr3(&cpu, one | 1, false);
	sweep(USER_AT, 8);
	cpu_write_cr3(&cpu, other | 2 | keep, false);
	EXPECT("another space", sweep(USER_AT, 8), 8);
	cpu_write_cr3(&cpu, one | 1 | keep, false);
	EXPECT("back, kept", sweep(USER_AT, 8), 0);
	cpu_write_cr3(&cpu, other | 2, false);
	EXPECT("flushed", sweep(USER_AT, 8), 8);
	cpu_write_cr3(&cpu, one | 1 | keep, false);
	EXPECT("the other one was not", sweep(USER_AT, 8), 0);
	/* As announced, independent of the value. */
	cpu.is_keep_announced = true;
	cpu_write_cr3(&cpu, other | 2, false);
	EXPECT("announced as kept", sweep(USER_AT, 8), 0);
	cpu_write_cr3(&cpu, other | 2, false);
	EXPECT("an announcement holds once", sweep(USER_AT, 8), 8);
	cpu_destroy(&cpu);
}

static uint64_t flush_induced(void)
{
	return cpu.counts[DTLB_LOAD_MISSES] - cpu.counts[SHADOW_DTLB_LOAD_MISSES];
}

static void flush_induced_misses(void)
{
	uint64_t root = start();

	sweep(USER_AT, 8);
	cpu_invlpg(&cpu, USER_AT, true);
	sweep(USER_AT, 8);
	EXPECT("one page of a batch", flush_induced(), 1);
	cpu_write_cr3(&cpu, root, true);
	sweep(USER_AT, 8);
	EXPECT("a full flush of a batch", flush_induced(), 1 + 8);
	cpu_write_cr3(&cpu, root, false);
	sweep(USER_AT, 8);
	EXPECT("any other flush", flush_induced(), 1 + 8);
	/* A page that returns in another frame has lost its translation in any case. */
	cpu_invlpg(&cpu, USER_AT, true);
	map(root, USER_AT, TLB_4K, 40 * PAGE, RW | USER);
	sweep(USER_AT, 8);
	EXPECT("a page that moved", flush_induced(), 1 + 8);
	cpu_destroy(&cpu);
}

static void watched(void)
{
	start();
	cpu.watch_start = USER_AT + 2 * PAGE;
	cpu.watch_end = USER_AT + 5 * PAGE;
	sweep(USER_AT, 8);
	cpu_access(&cpu, ACCESS_STORE, USER_AT + GIB);
	EXPECT("watched", cpu.counts[WATCHED_LOAD_MISSES], 3);
	EXPECT("not watched", cpu.counts[WATCHED_STORE_MISSES], 0);
	EXPECT("small", cpu.counts[WALKS_4K], 8);
	EXPECT("huge", cpu.counts[WALKS_2M], 1);
	cpu_destroy(&cpu);
}

int main(void)
{
	walks();
	tables_are_remembered();
	misses();
	invalidations();
	stale();
	spaces();
	flush_induced_misses();
	watched();
	return finish("system/cpu");
}
