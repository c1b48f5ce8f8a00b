// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of hugetlb pages, and of a page with a memory failure. */
#ifndef STALE_HUGETLB_H
#define STALE_HUGETLB_H

#include "stale_huge.h"

enum { POOL_PAGES = 4 };

#ifndef MADV_HWPOISON
#define MADV_HWPOISON 100
#endif

/* Lets hugetlb have that number of pages; false if memory has no such blocks. */
static bool pool_set(long pages)
{
	return set_number(HUGETLB_POOL, (unsigned long)pages) && get_number(HUGETLB_POOL) == pages;
}

static void pool_empty(void)
{
	set(HUGETLB_POOL, "0");
}

static void hugetlb_prepare(void)
{
	if (access(HUGETLB_POOL, W_OK))
		not_possible(HUGETLB_POOL ": %s", strerror(errno));
	if (!pool_set(POOL_PAGES))
		not_possible(HUGETLB_POOL ": memory has no %d free huge pages", POOL_PAGES);
	atexit(pool_empty);
}

static char *hugetlb_at(char *at)
{
	char *block = map_as(at, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);

	return fill_each(block, REGION, PART);
}

/* Another process gets the page; then memory outside of hugetlb gets it. */
static void hugetlb_round(void)
{
	char *block;

	if (!pool_set(POOL_PAGES))
		not_possible(HUGETLB_POOL ": memory has no %d free huge pages", POOL_PAGES);
	block = hugetlb_at(BLOCK);
	touch_huge(block, any_use());
	unmap(block, REGION);
	if (new_child() == 0) {
		hugetlb_at(SPARE);
		_exit(0);
	}
	wait_for_children(1);
	pool_empty();
	renew_huge();
	rest();
}

static void hugetlb_cow_round(void)
{
	char *block = hugetlb_at(BLOCK);
	struct gate gate;

	touch_huge(block, READ | WRITE);
	waiting_child(&gate);
	touch_huge(block, READ | sometimes_on());
	fill_each(block, REGION, PART);
	settle();
	let_go(&gate);
	unmap(hugetlb_at(SPARE), REGION);
	finish(block, REGION);
}

/* Two pages, at the ends of the range of a table that processes can share. */
static char *fill_shared(char *start)
{
	fill_each(start, REGION, PART);
	fill_each(start + GIB - REGION, REGION, PART);
	return start;
}

/* Until `gate` opens, a child uses the same table. */
static void share_table(char *start, const struct gate *gate)
{
	if (new_child() == 0) {
		fill_shared(start);
		gate_wait(gate);
		_exit(0);
	}
	gate_gather(gate, 1);
}

/* A file's table that two processes share. A child that is forked later fills its own by faults, and so finds it. */
static char *map_shared(int fd, const struct gate *gate)
{
	char *start;

	resize(fd, GIB);
	start = fill_shared(map_as(BLOCK, GIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd));
	share_table(start, gate);
	return start;
}

/*
 * A change of a part makes the parent drop the table, and get one of its own. The toucher's own faults drop its
 * translations, so in two of four rounds its next use is a write after the call.
 */
static void hugetlb_unshare_round(void)
{
	int fd = memory_file(MFD_HUGETLB);
	struct gate gate = gate_new();
	char *start = map_shared(fd, &gate);

	touch_each(start, REGION, PART, READ | WRITE | (turn & 2 ? ON : 0));
	if (turn & 1)
		protect(start, REGION, PROT_READ);
	else
		unmap(start + GIB - REGION, REGION);
	touch_each(start, REGION, PART, WRITE);
	renew(PAGES);
	let_go(&gate);
	finish(start, GIB);
	close(fd);
}

/* The parent unmaps all of the table's range; the child still has the pages. */
static void hugetlb_unmap_round(void)
{
	int fd = memory_file(MFD_HUGETLB);
	struct gate gate = gate_new();
	char *start = map_shared(fd, &gate);

	touch_each(start, REGION, PART, READ | WRITE | (turn & 2 ? ON : 0));
	unmap(start, GIB);
	touch_each(start, REGION, PART, WRITE);
	renew(PAGES);
	let_go(&gate);
	rest();
	close(fd);
}

static void memory_failure_round(void)
{
	char *region = filled();

	touch(region, LENGTH, READ | ON);
	if (madvise(region + PAGE, PAGE, MADV_HWPOISON))
		not_possible("MADV_HWPOISON: %s", strerror(errno));
	finish(region, LENGTH);
}

#endif
