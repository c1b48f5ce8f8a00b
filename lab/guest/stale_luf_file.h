// SPDX-License-Identifier: MIT OR Apache-2.0
/* For the cases of lazy unmap flush: its settings, and a file that nobody has open for writing. */
#ifndef STALE_LUF_FILE_H
#define STALE_LUF_FILE_H

#include "stale_file.h"
#include "stale_move.h"
#include "stale_swap.h"
#include "stale_uffd.h"

#define LUF "/sys/kernel/mm/luf/"
#define LUF_ON LUF "enabled"
#define LUF_MOST LUF "pool_max_pages"
#define LUF_AGE LUF "max_age_ms"
#define LUF_BATCH LUF "direct_batch_pages"
#define LUF_DRAIN LUF "drain"
#define LUF_PAGES LUF "pool_pages"
#define LUF_DEFERRED LUF "stats/deferred_direct"
#define LUF_KEPT LUF "stats/flushes_kept"

/* The pages have RETURN at first. */
enum { CHANGED = RETURN + 1 };

/* A counter of the kernel that the case must raise: else it checks nothing. */
static const char *luf_counter;
static long luf_before;

static void luf_prepare(void)
{
	if (get_number(LUF_ON) != 1)
		not_possible(LUF_ON " is not 1");
}

static void luf_check(void)
{
	if (get_number(luf_counter) > luf_before)
		return;
	fflush(stdout);
	fprintf(stderr, "stale: %s did not change\n", luf_counter);
	_exit(1);
}

/* The last part of the preparation. */
static void luf_expect(const char *counter)
{
	luf_counter = counter;
	luf_before = get_number(counter);
	atexit(luf_check);
}

/* Settings that the case has changed. */
static struct {
	const char *path;
	unsigned long before;
} luf_changed[4];
static unsigned int luf_changes;

static void luf_set_back(void)
{
	while (luf_changes--)
		set_number(luf_changed[luf_changes].path, luf_changed[luf_changes].before);
}

/* Until the program ends. */
static void luf_set(const char *path, unsigned long value)
{
	luf_changed[luf_changes].path = path;
	luf_changed[luf_changes].before = (unsigned long)get_number(path);
	if (!luf_changes++)
		atexit(luf_set_back);
	if (!set_number(path, value))
		fail(path);
}

/* --- files: nobody has them open for writing while their pages are unmapped --- */

static char *luf_path;

/* Pages of RETURN in a file that only this program uses. */
static void luf_write_file(int fd, size_t pages, int value)
{
	char page[PAGE];

	memset(page, value, sizeof(page));
	for (size_t i = 0; i < pages; i++)
		if (pwrite(fd, page, PAGE, (off_t)(i * PAGE)) != (ssize_t)PAGE)
			fail("pwrite");
}

static int luf_open(int flags)
{
	int fd = open(luf_path, flags | O_CLOEXEC);

	if (fd < 0)
		fail(luf_path);
	return fd;
}

/* From now on file_fd is for reading. */
static void luf_file_pages_prepare(size_t pages)
{
	char path[64];

	luf_prepare();
	file_fd = disk_file();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	luf_path = realpath(path, NULL);
	if (!luf_path)
		fail(path);
	luf_write_file(file_fd, pages, RETURN);
	if (fsync(file_fd))
		fail("fsync");
	close(file_fd);
	file_fd = luf_open(O_RDONLY);
}

static void luf_file_prepare(void)
{
	luf_file_pages_prepare(PAGES);
	luf_expect(LUF_DEFERRED);
}

static void luf_writer_prepare(void)
{
	luf_file_pages_prepare(PAGES);
}

static char *luf_map(char *at, size_t length)
{
	char *region = map_as(at, length, PROT_READ, MAP_SHARED, file_fd);

	read_all(region, length);
	return region;
}

/* The file as it was; its pages are clean. */
static void luf_restore(void)
{
	int fd = luf_open(O_WRONLY);

	luf_write_file(fd, PAGES, RETURN);
	if (fsync(fd))
		fail("fsync");
	close(fd);
}

/* The region has new content; the toucher must find it. */
static void luf_finish_changed(char *region)
{
	read_all(region, LENGTH);
	touch(region, LENGTH, READ);
	finish(region, LENGTH);
}

#endif
