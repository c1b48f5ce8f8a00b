// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of transparent huge pages: collapse, split, unmap, copy on write. */
#ifndef STALE_HUGE_H
#define STALE_HUGE_H

#include "settings.h"
#include "stale_protect.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { FEW = 16 };

/* Of a huge page the toucher uses FEW 4 KiB parts. */
#define PART (REGION / FEW)

/* The huge pages in the mappings of this process, from smaps_rollup. */
static unsigned long mapped_huge(void)
{
	char text[2048], *line;

	if (!get("/proc/self/smaps_rollup", text, sizeof(text)))
		fail("/proc/self/smaps_rollup");
	line = strstr(text, "AnonHugePages:");
	return line ? strtoul(line + strlen("AnonHugePages:"), NULL, 10) / (REGION >> 10) : 0;
}

/* One huge page, if the kernel has one. */
static char *huge_page(char *at)
{
	char *block = map_at(at, REGION);

	advise(block, REGION, MADV_HUGEPAGE);
	*(volatile unsigned char *)block = RETURN;
	return fill_each(block, REGION, PART);
}

static void huge_prepare(void)
{
	unsigned long before;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		not_possible("the kernel has no transparent huge pages");
	before = mapped_huge();
	huge_page(BLOCK);
	if (mapped_huge() == before)
		not_possible("the kernel gave no huge page: see /sys/kernel/mm/transparent_hugepage/enabled");
	unmap(BLOCK, REGION);
}

static void touch_huge(char *block, unsigned int how)
{
	touch_each(block, REGION, PART, how);
}

/* The new owner of a huge page is a huge page. */
static void renew_huge(void)
{
	char *spare = huge_page(SPARE);

	settle();
	unmap(spare, REGION);
}

static void huge_munmap_round(void)
{
	char *block = huge_page(BLOCK);

	touch_huge(block, any_use());
	unmap(block, REGION);
	renew_huge();
	rest();
}

/* Other contents, so that a read of the old frames is wrong. */
static void change_parts(char *start, size_t length)
{
	for (size_t at = 0; at < length; at += PART)
		*(volatile unsigned char *)(start + at) = (unsigned char)(RETURN + 1);
}

/*
 * The first write splits the huge page, which flushes it: after that the toucher reads the other parts, by entries of
 * 4 KiB. It reads them again when they have been copied. Another fault of its own would drop what it should use.
 */
static void huge_cow_round(void)
{
	struct gate gate;
	char *block = huge_page(BLOCK);

	touch_huge(block, READ | WRITE);
	waiting_child(&gate);
	touch_huge(block, READ | sometimes_on());
	change_parts(block, PART);
	touch_huge(block, READ);
	change_parts(block + PART, REGION - PART);
	touch_huge(block, READ | sometimes_on());
	settle();
	let_go(&gate);
	renew_huge();
	finish(block, REGION);
}

/* One 4 KiB part goes, by either call; the huge page's frame is freed with its last part. */
static void split_round(void)
{
	char *block = huge_page(BLOCK), *part = block + PART;

	touch_huge(block, READ | WRITE | (turn & 2 ? ON : 0));
	if (turn & 1)
		unmap(part, PAGE);
	else
		advise(part, PAGE, MADV_DONTNEED);
	touch_huge(block, WRITE);
	unmap(block, REGION);
	renew_huge();
	rest();
}

/*
 * In every second pair of rounds the toucher goes on meanwhile. Its own faults drop the huge page, so in the others its
 * next use is a write after the call.
 */
static void split_protect_round(void)
{
	char *block = huge_page(BLOCK);

	touch_huge(block, READ | WRITE | (turn & 2 ? ON : 0));
	protect(block, REGION / 4, PROT_READ);
	touch_huge(block, WRITE);
	finish(block, REGION);
}

/* The frames of 4 KiB pages are free after a collapse. */
static void collapse(char *block)
{
	touch(block, REGION, turn & 1 ? READ | ON : READ | WRITE);
	note(block, REGION);
	if (madvise(block, REGION, MADV_COLLAPSE))
		not_possible("MADV_COLLAPSE: %s", strerror(errno));
	renew_and_finish(block, REGION);
}

static void collapse_round(void)
{
	char *block = map_at(BLOCK, REGION);

	advise(block, REGION, MADV_NOHUGEPAGE);
	fill(block, REGION);
	advise(block, REGION, MADV_HUGEPAGE);
	collapse(block);
}

static void collapse_file_round(void)
{
	int fd = memory_file(0);

	resize(fd, REGION);
	collapse(fill(map_file(BLOCK, REGION, fd), REGION));
	close(fd);
}

#endif
