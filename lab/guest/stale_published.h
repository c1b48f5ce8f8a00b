// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases that published bugs of Linux need: a third CPU acts while memory moves, or rights differ within a folio. */
#ifndef STALE_PUBLISHED_H
#define STALE_PUBLISHED_H

#include "stale_helper.h"
#include "stale_hugetlb.h"
#include "stale_move.h"
#include "stale_file.h"
#include "stale_swap.h"

/* --- mremap() beside a change of the file --- */

static void punch_all(void)
{
	punch(file_fd, LENGTH);
}

static void mremap_punch_prepare(void)
{
	file_fd = memory_file(0);
	helper_on_third_cpu(punch_all);
}

/* A CPU keeps references to the pages that it has filled last. */
static void fill_others(void)
{
	renew(64);
}

/* The pages are freed by way of their new address, as soon as they are there. */
static void mremap_punch_round(void)
{
	char *region = map_new_pages();

	fill_others();
	touch(region, LENGTH, READ | WRITE);
	helper_order();
	move(region, LENGTH, ASIDE);
	helper_await(&helper->obeyed, turn + 1);
	renew(PAGES);
	rest();
	unmap(ASIDE, LENGTH);
}

/* The helper is another process, and has another table. */
static void collapse_file_block(void)
{
	char *block = map_file(BLOCK, REGION, file_fd);

	read_all(block, REGION);
	madvise(block, REGION, MADV_COLLAPSE);
	unmap(block, REGION);
}

static void mremap_collapse_prepare(void)
{
	huge_prepare();
	file_fd = memory_file(0);
	helper_on_third_cpu(collapse_file_block);
}

/* The table that moves is emptied and removed meanwhile. */
static void mremap_collapse_round(void)
{
	char *block;

	resize(file_fd, 0);
	resize(file_fd, REGION);
	block = fill(map_file(BLOCK, REGION, file_fd), REGION);
	touch_huge(block, READ | WRITE);
	helper_order();
	move(block, REGION, ASIDE);
	touch_huge(ASIDE, READ | WRITE);
	helper_await(&helper->obeyed, turn + 1);
	rest();
	unmap(ASIDE, REGION);
}

/* --- pages that may be dropped, of a folio that is shared in part --- */

/* A child that shares the second half, and ends with 1 if it changed. */
static void child_with_half(const struct gate *gate, const char *half)
{
	if (new_child()) {
		gate_gather(gate, 1);
		return;
	}
	gate_wait(gate);
	for (size_t at = 0; at < REGION / 2; at += PART)
		if (*(const volatile unsigned char *)(half + at) != RETURN)
			_exit(1);
	_exit(0);
}

/* The kernel may drop all of it, but finds that its first page was written again. */
static void reclaim_dirty(char *block)
{
	for (int i = 0; i < 4; i++) {
		*(volatile unsigned char *)block = RETURN;
		if (!set_number(GROUP_RECLAIM, 2 * REGION) && errno != EAGAIN)
			fail(GROUP_RECLAIM);
	}
}

static void free_shared_prepare(void)
{
	huge_prepare();
	reclaim_prepare();
}

/* What the child has must stay read-only here. */
static void free_shared_round(void)
{
	struct gate gate = gate_new();
	char *block = huge_page(BLOCK), *half = block + REGION / 2;

	touch_huge(block, READ | WRITE);
	advise(block, REGION, MADV_FREE);
	advise(block, REGION / 2, MADV_DONTFORK);
	child_with_half(&gate, half);
	advise(block, REGION / 2, MADV_DOFORK);
	reclaim_dirty(block);
	touch_each(half, REGION / 2, PART, READ | WRITE);
	change_parts(half, REGION / 2);
	let_go(&gate);
	finish(block, REGION);
}

#endif
