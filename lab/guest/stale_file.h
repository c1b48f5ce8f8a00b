// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of shared file mappings. */
#ifndef STALE_FILE_H
#define STALE_FILE_H

#include "stale_memory.h"

static int file_fd;

static void file_prepare(void)
{
	file_fd = any_file();
}

static void disk_prepare(void)
{
	file_fd = disk_file();
}

static char *map_new_pages(void)
{
	resize(file_fd, 0);
	resize(file_fd, LENGTH);
	return fill(map_file(AREA, LENGTH, file_fd), LENGTH);
}

static void truncate_round(void)
{
	char *region = map_new_pages();

	touch(region, LENGTH, any_use());
	resize(file_fd, 0);
	renew_and_finish(region, LENGTH);
}

/* A punched page that the toucher uses is a new page of zeroes. */
static void punch_round(void)
{
	char *region = map_new_pages();

	touch(region, LENGTH, any_use());
	punch(file_fd, LENGTH);
	renew_and_finish(region, LENGTH);
}

/* Writeback makes a page clean and read-only, so that the next write is noticed. */
static void msync_round(void)
{
	char *region = map_new_pages();

	touch(region, LENGTH, WRITE | ON);
	if (msync(region, LENGTH, MS_SYNC))
		fail("msync");
	finish(region, LENGTH);
}

static void pageout_file_prepare(void)
{
	disk_prepare();
	unmap(map_new_pages(), LENGTH);
	if (fsync(file_fd))
		fail("fsync");
}

static void pageout_file_round(void)
{
	char *region = map_as(AREA, LENGTH, PROT_READ, MAP_SHARED, file_fd);

	read_all(region, LENGTH);
	touch(region, LENGTH, READ | sometimes_on());
	note(region, LENGTH);
	advise(region, LENGTH, MADV_PAGEOUT);
	renew_and_finish(region, LENGTH);
}

#endif
