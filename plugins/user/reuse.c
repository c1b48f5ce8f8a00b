/* SPDX-License-Identifier: GPL-2.0-only */
/* Reuse distance of page-table cache lines: see reuse.h. */
#include "reuse.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Walks per epoch, as a power of two. */
#define EPOCH_SHIFT 4
/* Number of distinct epochs. */
#define EPOCHS (1u << 17)
/* Bytes of data that a line maps, as a power of two. */
#define LINE_SHIFT 15
/* 47 bits of address make 2^32 lines: 2^16 leaves of 2^16. */
#define LEAF_SHIFT 16
#define LEAVES (1u << 16)

struct reuse {
	/* Number of the next walk; 0 is never used. */
	uint64_t now;
	/* Epoch of tree index 0, combined with all earlier ones. */
	uint64_t oldest;
	uint64_t lines;
	uint32_t tree[EPOCHS + 1];
	/* Used while the tree is rebuilt. */
	uint32_t counts[EPOCHS / 2];
	/* Number of the last walk, per line. */
	uint64_t *leaf[LEAVES];
};

struct reuse *reuse_new(void)
{
	struct reuse *reuse = mmap(NULL, sizeof(*reuse), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (reuse == MAP_FAILED)
		return NULL;
	reuse->now = 1;
	return reuse;
}

void reuse_free(struct reuse *reuse)
{
	if (!reuse)
		return;
	for (unsigned int i = 0; i < LEAVES; i++)
		if (reuse->leaf[i])
			munmap(reuse->leaf[i], sizeof(uint64_t) << LEAF_SHIFT);
	munmap(reuse, sizeof(*reuse));
}

static void add(struct reuse *reuse, uint32_t epoch, int32_t count)
{
	for (uint32_t i = epoch + 1; i <= EPOCHS; i += i & -i)
		reuse->tree[i] += count;
}

/* Returns the number of lines with their last walk in epochs 0..=epoch. */
static uint32_t up_to(const struct reuse *reuse, uint32_t epoch)
{
	uint32_t sum = 0;

	for (uint32_t i = epoch + 1; i; i -= i & -i)
		sum += reuse->tree[i];
	return sum;
}

static uint32_t epoch_of(const struct reuse *reuse, uint64_t walk)
{
	uint64_t epoch = walk >> EPOCH_SHIFT;

	return epoch < reuse->oldest ? 0 : epoch - reuse->oldest;
}

/* Makes room for new epochs: the older half is merged into one. */
static void forget_half(struct reuse *reuse)
{
	uint32_t old = up_to(reuse, EPOCHS / 2 - 1), before = old;

	for (uint32_t i = EPOCHS / 2; i < EPOCHS; i++) {
		uint32_t sum = up_to(reuse, i);

		reuse->counts[i - EPOCHS / 2] = sum - before;
		before = sum;
	}
	reuse->counts[0] += old;
	memset(reuse->tree, 0, sizeof(reuse->tree));
	for (uint32_t i = 0; i < EPOCHS / 2; i++)
		if (reuse->counts[i])
			add(reuse, i, reuse->counts[i]);
	reuse->oldest += EPOCHS / 2;
}

/* Returns the address of a line's last walk number; NULL if memory is short. */
static uint64_t *last_walk(struct reuse *reuse, uint64_t address)
{
	uint64_t line = address >> LINE_SHIFT;
	uint64_t **leaf = &reuse->leaf[line >> LEAF_SHIFT & (LEAVES - 1)];

	if (!*leaf) {
		void *fresh = mmap(NULL, sizeof(uint64_t) << LEAF_SHIFT,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (fresh == MAP_FAILED)
			return NULL;
		*leaf = fresh;
	}
	return *leaf + (line & ((1u << LEAF_SHIFT) - 1));
}

/*
 * Returns the number of distinct other lines since walk `last`, which was of this line.
 */
static uint64_t distance(const struct reuse *reuse, uint64_t last)
{
	uint32_t epoch = epoch_of(reuse, last);
	uint64_t since = reuse->now - last - 1;
	uint64_t later = reuse->lines - up_to(reuse, epoch);
	uint64_t own = epoch ? up_to(reuse, epoch) - up_to(reuse, epoch - 1)
			     : up_to(reuse, epoch);
	uint64_t estimate = later + own / 2;

	return estimate < since ? estimate : since;
}

uint64_t reuse_walk(struct reuse *reuse, uint64_t address)
{
	uint64_t *last = last_walk(reuse, address);
	uint64_t lines;

	if (!last)
		return 0;
	if ((reuse->now >> EPOCH_SHIFT) - reuse->oldest >= EPOCHS)
		forget_half(reuse);
	if (*last) {
		lines = distance(reuse, *last);
		add(reuse, epoch_of(reuse, *last), -1);
	} else {
		lines = reuse->lines++;
	}
	add(reuse, epoch_of(reuse, reuse->now), 1);
	*last = reuse->now++;
	return lines;
}

uint32_t reuse_log2(uint64_t lines)
{
	/* 256 * log2(1 + i / 16), rounded. */
	static const uint8_t fraction[16] = { 0,   22,	44,  63,  82,  100, 118, 134,
					      150, 165, 179, 193, 207, 220, 232, 244 };
	uint64_t value = lines + 1;
	unsigned int whole = 63 - __builtin_clzll(value);
	unsigned int next = whole >= 4 ? value >> (whole - 4) & 15 : value << (4 - whole) & 15;

	return (LINE_SHIFT + whole) * 256 + fraction[next];
}
