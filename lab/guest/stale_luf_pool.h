// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of lazy unmap flush: frames that leave the pool for a new owner. */
#ifndef STALE_LUF_POOL_H
#define STALE_LUF_POOL_H

#include "stale_helper.h"
#include "stale_luf_file.h"

#include <sys/sysinfo.h>

/* The pool is full, and is flushed and released, as soon as the pages are in it. */
static void luf_cap_prepare(void)
{
	luf_file_prepare();
	luf_set(LUF_MOST, PAGES);
}

/* The pages do not fit into the pool at all. */
static void luf_refused_prepare(void)
{
	luf_file_prepare();
	luf_set(LUF_MOST, PAGES / 2);
}

static void luf_cap_round(void)
{
	char *region = luf_map(AREA, LENGTH);

	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	renew_and_finish(region, LENGTH);
}

static void luf_age_prepare(void)
{
	luf_file_prepare();
	luf_set(LUF_AGE, 10);
}

static bool luf_is_empty(void)
{
	return !get_number(LUF_PAGES);
}

static void luf_age_round(void)
{
	char *region = luf_map(AREA, LENGTH);

	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	wait_until(luf_is_empty, 200);
	renew_and_finish(region, LENGTH);
}

/* The pages have two batches: a writer flushes the first one. */
static void luf_batches_round(void)
{
	char *region = luf_map(AREA, LENGTH), *half = region + LENGTH / 2;

	touch(region, LENGTH, READ);
	advise(region, LENGTH / 2, MADV_PAGEOUT);
	close(luf_open(O_WRONLY));
	touch(half, LENGTH / 2, READ);
	advise(half, LENGTH / 2, MADV_PAGEOUT);
	renew_and_finish(region, LENGTH);
}

static void luf_kept_prepare(void)
{
	luf_file_pages_prepare(PAGES);
	luf_expect(LUF_KEPT);
}

/* Takes pages that nobody maps from the page cache, and frees them: without a flush of any kind. */
static void luf_drop_cache(void)
{
	errno = posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED);
	if (errno)
		fail("posix_fadvise");
}

/* Single frames, as those of the page cache are, get a new owner; econ may fill memory by larger blocks. */
static void luf_renew_single(void)
{
	int other = memory_file(0);

	luf_write_file(other, 2 * PAGES, CHANGED);
	close(other);
}

/* A pipe holds the pages: reclaim unmaps them and keeps them. */
static void luf_kept_round(void)
{
	char *region = luf_map(AREA, LENGTH);
	loff_t offset = 0;
	int ends[2];

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, (int)(4 * LENGTH)) < 0)
		fail("pipe");
	if (splice(file_fd, &offset, ends[1], NULL, LENGTH, 0) <= 0)
		fail("splice");
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	close(ends[0]);
	close(ends[1]);
	luf_drop_cache();
	luf_renew_single();
	finish(region, LENGTH);
}

/* --- shortage: a child uses the memory of the node of CPU 0 --- */

#define MIN_FREE "/proc/sys/vm/min_free_kbytes"

/* The low watermark is a quarter above this minimum. The child then has to use an eighth of the free memory. */
static void luf_make_memory_short(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		fail("sysinfo");
	luf_set(MIN_FREE, info.freeram / 1024 * info.mem_unit * 7 / 10);
}

/* A flush pays from one page on. */
static void luf_shortage_prepare(void)
{
	luf_file_prepare();
	helper_new();
	luf_make_memory_short();
	luf_set(LUF_BATCH, 1);
}

/* Until the pool is empty, and then its pages. The kernel may kill this instead. */
static _Noreturn void luf_use_memory(void)
{
	unsigned long mask = 1ul << node_of(0);

	helper_await(&helper->order, turn + 1);
	set_number("/proc/self/oom_score_adj", 1000);
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64ul))
		fail("set_mempolicy");
	while (!luf_is_empty())
		fill(anonymous(MIB), MIB);
	fill(anonymous(MIB), MIB);
	_exit(0);
}

static void luf_shortage_round(void)
{
	pid_t child = new_child();
	char *region;

	if (child == 0)
		luf_use_memory();
	region = luf_map(AREA, LENGTH);
	touch(region, LENGTH, READ);
	advise(region, LENGTH, MADV_PAGEOUT);
	helper_order();
	if (waitpid(child, NULL, 0) != child)
		fail("waitpid");
	finish(region, LENGTH);
}

/* --- a CPU that is idle keeps its translations, and drops them when it continues --- */

static int luf_wake[2], luf_slept[2];
static char *luf_sleepers_page;

static void luf_say(int fd)
{
	if (write(fd, "", 1) != 1)
		fail("write");
}

static void luf_hear(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		fail("read");
}

static void *luf_sleeper(void *unused)
{
	(void)unused;
	pin(1);
	for (;;) {
		luf_hear(luf_wake[0]);
		read_all(luf_sleepers_page, LENGTH);
		atomic_fetch_add(&board->touches, PAGES);
		luf_say(luf_slept[1]);
	}
	return NULL;
}

static void luf_lazy_prepare(void)
{
	pthread_t id;

	luf_cap_prepare();
	if (pipe(luf_wake) || pipe(luf_slept))
		fail("pipe");
	errno = pthread_create(&id, NULL, luf_sleeper, NULL);
	if (errno)
		fail("pthread_create");
}

static void luf_wake_sleeper(void)
{
	luf_say(luf_wake[1]);
	luf_hear(luf_slept[0]);
}

static void luf_lazy_round(void)
{
	char *spare;

	luf_sleepers_page = luf_map(AREA, LENGTH);
	luf_wake_sleeper();
	/* Until the CPU is idle. */
	usleep(10000);
	advise(luf_sleepers_page, LENGTH, MADV_PAGEOUT);
	spare = fill(map_at(SPARE, LENGTH), LENGTH);
	luf_wake_sleeper();
	unmap(spare, LENGTH);
	unmap(luf_sleepers_page, LENGTH);
}

#endif
