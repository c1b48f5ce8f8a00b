// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases that unmap: munmap, exit, exec, madvise, brk, page tables. */
#ifndef STALE_UNMAP_H
#define STALE_UNMAP_H

#include "stale_memory.h"

#include <sys/shm.h>

static void munmap_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	unmap(region, LENGTH);
	renew(PAGES);
	rest();
}

/* The flush comes after all of them are unmapped: the toucher has time for old translations. */
enum { MANY = 2048 };

static void munmap_many_round(void)
{
	char *region = fill(map_at(AREA + GIB / 2, MANY * PAGE), MANY * PAGE);

	touch(region, MANY * PAGE, any_use() | ON);
	unmap(region, MANY * PAGE);
	renew(MANY);
	rest();
}

static void munmap_file_round(void)
{
	int fd = memory_file(0);
	char *region;

	resize(fd, LENGTH);
	region = fill(map_file(AREA, LENGTH, fd), LENGTH);
	touch(region, LENGTH, any_use());
	unmap(region, LENGTH);
	resize(fd, 0);
	renew(PAGES);
	rest();
	close(fd);
}

static void remap_file_round(void)
{
	int fd = memory_file(0);
	char *region = filled();

	resize(fd, LENGTH);
	touch(region, LENGTH, any_use());
	if (mmap(region, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != region)
		fail("mmap");
	renew_and_finish(region, LENGTH);
	close(fd);
}

/* A child with a toucher of its own ends by `end`; then the parent gets the frames. */
static void end_child(void (*end)(void))
{
	pid_t child = new_child();

	if (child == 0) {
		touch(filled(), LENGTH, any_use());
		end();
		_exit(1);
	}
	wait_for_children(1);
	atomic_store(&board->how, 0);
	renew(PAGES);
}

static void end_by_exit(void)
{
	_exit(0);
}

static void end_by_exec(void)
{
	char *const words[] = { (char *)"stale", (char *)"end", NULL };

	execv("/proc/self/exe", words);
}

static void exit_round(void)
{
	end_child(end_by_exit);
}

static void exec_round(void)
{
	end_child(end_by_exec);
}

static void dontneed_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	advise(region, LENGTH, MADV_DONTNEED);
	renew_and_finish(region, LENGTH);
}

/* A page that is written after MADV_FREE stays; so the toucher writes only before it. */
static void free_round(void)
{
	char *region = filled();

	touch(region, LENGTH, READ | WRITE);
	touch(region, LENGTH, turn & 2 ? READ | sometimes_on() : WRITE);
	note(region, LENGTH);
	advise(region, LENGTH, MADV_FREE);
	settle();
	advise(region, LENGTH, MADV_PAGEOUT);
	renew_and_finish(region, LENGTH);
}

static void brk_round(void)
{
	char *end = sbrk(0), *region;
	size_t extra = -(uintptr_t)end & (PAGE - 1);

	if (sbrk((intptr_t)(LENGTH + extra)) != end)
		fail("sbrk");
	region = fill(end + extra, LENGTH);
	touch(region, LENGTH, any_use());
	if (brk(end))
		fail("brk");
	renew(PAGES);
	rest();
}

static void shmdt_round(void)
{
	int id = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);
	char *region;

	if (id < 0)
		not_possible("shmget: %s", strerror(errno));
	region = shmat(id, AREA + REGION, 0);
	if (shmctl(id, IPC_RMID, NULL) || region != AREA + REGION)
		fail("shmat");
	touch(fill(region, LENGTH), LENGTH, any_use());
	if (shmdt(region))
		fail("shmdt");
	renew(PAGES);
	rest();
}

/*
 * A page at each end of TABLES tables, all of them below two tables of the next level: the toucher uses them all, and
 * those inside are unmapped together with their tables. Tables are pages, and get a new owner as well.
 */
enum { TABLES = 8 };

static char *fill_tables_of(char *region)
{
	return fill_each(region, TABLES * REGION, REGION);
}

static char *fill_tables(char *start)
{
	return fill_tables_of(map_at(start, TABLES * REGION));
}

static void tables_round(void)
{
	char *region = fill_tables(BLOCK + GIB - TABLES / 2 * REGION);

	touch_each(region, TABLES * REGION, REGION, any_use());
	unmap(region + REGION, (TABLES - 2) * REGION);
	renew(2 * TABLES);
	finish(region, TABLES * REGION);
}

static struct sleeper {
	pthread_t id;
	char *region;
	unsigned int us;
} sleeper;

static void *use_and_sleep(void *unused)
{
	pin(1);
	for (int i = 0; i < TABLES; i++)
		*(volatile char *)(sleeper.region + i * REGION);
	atomic_fetch_add(&board->touches, TABLES);
	usleep(sleeper.us);
	return unused;
}

/*
 * Lets CPU 1 use each table, and be idle for that many microseconds: it keeps the address space until something else
 * runs there.
 */
static void sleeper_start(char *region, unsigned int us)
{
	unsigned long before = atomic_load(&board->touches);

	sleeper.region = region;
	sleeper.us = us;
	errno = pthread_create(&sleeper.id, NULL, use_and_sleep, NULL);
	if (errno)
		fail("pthread_create");
	while (atomic_load(&board->touches) == before)
		wait_a_little();
	/* Until the CPU is idle. */
	usleep(5000);
}

static void sleeper_join(void)
{
	pthread_join(sleeper.id, NULL);
}

/* CPUs that are idle may leave out flushes, but not those of freed tables. */
static void tables_lazy_round(void)
{
	char *region = fill_tables(BLOCK + GIB - TABLES / 2 * REGION);

	sleeper_start(region, 20000);
	unmap(region, TABLES * REGION);
	renew(2 * TABLES);
	sleeper_join();
}

/* The tables move and are freed, again and again, while the toucher walks them. */
static void tables_race_round(void)
{
	char *region = fill_tables(BLOCK), *aside = ASIDE;

	touch_each(region, TABLES * REGION, REGION, READ | ON);
	for (int i = 0; i < TABLES; i += 2)
		if (mremap(region + i * REGION, REGION, REGION, MREMAP_MAYMOVE | MREMAP_FIXED, aside + i * REGION) == MAP_FAILED)
			fail("mremap");
	unmap(aside, TABLES * REGION);
	renew(TABLES);
	finish(region, TABLES * REGION);
}

#endif
