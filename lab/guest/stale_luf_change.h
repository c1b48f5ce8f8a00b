// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of lazy unmap flush: addresses that get a new content. */
#ifndef STALE_LUF_CHANGE_H
#define STALE_LUF_CHANGE_H

#include "stale_luf_file.h"

/* --- writers of files --- */

static void luf_change(int fd)
{
	luf_write_file(fd, PAGES, CHANGED);
}

static void luf_write_round(void)
{
	char *region;
	int fd;

	luf_restore();
	region = luf_map(AREA, LENGTH);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	fd = luf_open(O_WRONLY);
	luf_change(fd);
	close(fd);
	luf_finish_changed(region);
}

/* The writer is there before the pages are unmapped. */
static void luf_writer_round(void)
{
	char *region;
	int fd;

	luf_restore();
	region = luf_map(AREA, LENGTH);
	fd = luf_open(O_WRONLY);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_change(fd);
	close(fd);
	luf_finish_changed(region);
}

/* A file of memory has writers that nobody counts. */
static void luf_memfd_prepare(void)
{
	luf_prepare();
	swap_prepare();
	file_fd = memory_file(0);
}

static void luf_memfd_round(void)
{
	char *region;

	luf_write_file(file_fd, PAGES, RETURN);
	region = luf_map(AREA, LENGTH);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_change(file_fd);
	luf_finish_changed(region);
}

/* --- entries that become writable, and addresses that get other pages --- */

static void luf_swap_prepare(void)
{
	luf_prepare();
	swap_prepare();
	luf_expect(LUF_DEFERRED);
}

static void luf_fill(char *region)
{
	for (size_t at = 0; at < LENGTH; at += PAGE)
		*(volatile unsigned char *)(region + at) = CHANGED;
}

/* Pages that came from swap are clean. */
static char *luf_clean(void)
{
	char *region = filled();

	advise(region, LENGTH, MADV_PAGEOUT);
	return region;
}

/*
 * A child that has ended leaves them read-only. Then no page of this program is to be copied any more, and what the
 * kernel takes for pending is flushed: else the next madvise() does it.
 */
static void luf_protect_by_fork(char *region)
{
	pid_t child;

	read_all(region, LENGTH);
	child = new_child();
	if (child == 0)
		_exit(0);
	wait_for_children(1);
	advise(region, LENGTH, MADV_COLD);
}

/* A store swaps the page in, and the entry is writable. */
static void luf_swap_round(void)
{
	char *region = luf_clean();

	luf_protect_by_fork(region);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_fill(region);
	luf_finish_changed(region);
}

static void luf_reuse_prepare(void)
{
	reclaim_prepare();
	luf_swap_prepare();
	/* Reclaim must find nothing but the region. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		fail("mlockall");
}

/*
 * While a child shares them, pages that are swapped in are read-only; once it has ended, a store only changes the
 * entry. madvise() reclaims no shared page.
 */
static void luf_reuse_round(void)
{
	char *region;
	pid_t child;

	region = filled();
	if (munlock(region, LENGTH))
		fail("munlock");
	advise(region, LENGTH, MADV_PAGEOUT);
	read_all(region, LENGTH);
	advise(region, LENGTH, MADV_COLD);
	child = new_child();
	if (child == 0)
		for (;;)
			pause();
	/* The next store to it would flush. */
	errno = 0;
	touch(region, LENGTH, READ);
	if (!set_number(GROUP_RECLAIM, 2 * LENGTH) && errno != EAGAIN)
		fail(GROUP_RECLAIM);
	read_all(region, LENGTH);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	luf_fill(region);
	luf_finish_changed(region);
}

/* A debugger writes to memory that is read-only. */
static void luf_poke_round(void)
{
	char *region = luf_clean(), byte = (char)CHANGED;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail("/proc/self/mem");
	protect(region, LENGTH, PROT_READ);
	read_all(region, LENGTH);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	read_all(region, LENGTH);
	for (size_t at = 0; at < LENGTH; at += PAGE)
		if (pwrite(fd, &byte, 1, (off_t)(uintptr_t)(region + at)) != 1)
			fail("/proc/self/mem");
	close(fd);
	luf_finish_changed(region);
}

/* A store to a private mapping of a file gets a copy. */
static void luf_private_round(void)
{
	char *region = map_as(AREA, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_fd);

	read_all(region, LENGTH);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_fill(region);
	luf_finish_changed(region);
}

static void luf_move_prepare(void)
{
	luf_swap_prepare();
	uffd_prepare(UFFD_FEATURE_MOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
}

static void luf_watch(char *region)
{
	if (uffd_register(uffd, region, LENGTH, UFFDIO_REGISTER_MODE_WP))
		fail("UFFDIO_REGISTER");
}

/* The swapped pages move away; the zero page comes to their address. */
static void luf_move_round(void)
{
	char *region = luf_clean(), *there = map_at(ASIDE, LENGTH);

	read_all(region, LENGTH);
	luf_watch(region);
	luf_watch(there);
	if (uffd_protect(uffd, region, LENGTH, true))
		fail("UFFDIO_WRITEPROTECT");
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	if (uffd_move(uffd, there, region, LENGTH))
		fail("UFFDIO_MOVE");
	luf_finish_changed(region);
	unmap(there, LENGTH);
}

/* The kernel may drop the content of the region: the zero page comes to its address. */
static void luf_free_round(void)
{
	char *region = filled();

	advise(region, LENGTH, MADV_FREE);
	protect(region, LENGTH, PROT_READ);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	luf_finish_changed(region);
}

static void luf_remap_round(void)
{
	char *region = luf_map(AREA, LENGTH);

	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	if (mmap(region, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != region)
		fail("mmap");
	luf_fill(region);
	luf_finish_changed(region);
}

#endif
