// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Cases of morsels: a mapping shares the page tables of its file, and gives them up together. The table above them
 * stays: else the kernel would flush because it frees that one.
 */
#ifndef STALE_MORSEL_H
#define STALE_MORSEL_H

#include "stale_move.h"
#include "stale_unmap.h"

#include <sys/mount.h>

#define MORSELS "/tmp/stale-morsels"

/* Shares a table of 4 KiB pages, or one that leads to such tables. */
#define SMALL (AREA + REGION)
#define LARGE BLOCK

static void morsel_prepare(void)
{
	mkdir("/tmp", 01777);
	mkdir(MORSELS, 0700);
	if (mount("none", MORSELS, "morselfs", 0, "huge=never"))
		not_possible("morselfs: %s", strerror(errno));
}

static int morsel_new(size_t length)
{
	int fd = open(MORSELS, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0)
		fail(MORSELS);
	resize(fd, length);
	return fd;
}

/* Lets the toucher use the first pages of a small morsel. */
static char *morsel_touched(int fd)
{
	char *region = fill(map_file(SMALL, REGION, fd), LENGTH);

	touch(region, LENGTH, any_use());
	return region;
}

/* Frees the pages, and the tables that nobody maps, and ends the round. */
static void morsel_end(int fd)
{
	resize(fd, 0);
	renew(PAGES);
	rest();
	close(fd);
}

static void morsel_munmap_round(void)
{
	int fd = morsel_new(REGION);
	char *region = morsel_touched(fd);

	unmap(region, REGION);
	morsel_end(fd);
}

static void morsel_large_round(void)
{
	int fd = morsel_new(GIB);
	char *region = fill_tables_of(map_file(LARGE, GIB, fd));

	touch_each(region, TABLES * REGION, REGION, any_use());
	unmap(region, GIB);
	morsel_end(fd);
}

static void morsel_punch_round(void)
{
	int fd = morsel_new(REGION);
	char *region = morsel_touched(fd);

	punch(fd, LENGTH);
	renew(PAGES);
	finish(region, REGION);
	close(fd);
}

static void morsel_mremap_round(void)
{
	int fd = morsel_new(REGION);
	char *region = morsel_touched(fd);

	move(region, REGION, ASIDE);
	renew(PAGES);
	rest();
	unmap(ASIDE, REGION);
	close(fd);
}

/* An idle CPU still has the tables that are freed. */
static void morsel_lazy_round(void)
{
	int fd = morsel_new(GIB);
	char *region = fill_tables_of(map_file(LARGE, GIB, fd));

	sleeper_start(region, 300000);
	unmap(region, GIB);
	resize(fd, 0);
	/* The tables are freed after a grace period. */
	usleep(150000);
	renew(2 * TABLES);
	sleeper_join();
	close(fd);
}

#define MORSEL_CASES \
	{ "morsel-munmap", morsel_prepare, morsel_munmap_round, 40, "morselfs" }, \
	{ "morsel-large", morsel_prepare, morsel_large_round, 40, "morselfs" }, \
	{ "morsel-punch", morsel_prepare, morsel_punch_round, 40, "morselfs" }, \
	{ "morsel-mremap", morsel_prepare, morsel_mremap_round, 40, "morselfs" }, \
	{ "morsel-lazy", morsel_prepare, morsel_lazy_round, 10, "morselfs" }

#endif
