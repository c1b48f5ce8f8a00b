// SPDX-License-Identifier: GPL-2.0-only
/* Tests of what populates a morsel, and of what tells which pages exist. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "morsel.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

#define SMALL	"/tmp/morsel-small"

/* A mount where files have single pages only, with a limit. */
static void mount_small(const char *options)
{
	mkdir(SMALL, 0700);
	CHECK(!mount("none", SMALL, "morselfs", 0, options));
	mounted = SMALL;
}

static void unmount_small(void)
{
	mounted = MOUNT;
	CHECK(!umount(SMALL));
	rmdir(SMALL);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Return: number of faults that reading all pages takes. */
static long read_faults(const char *memory, size_t size)
{
	long before = faults();

	for (size_t at = 0; at < size; at += PAGE)
		load(memory + at);
	return faults() - before;
}

static int by_nothing(char *memory, size_t size)
{
	(void)memory;
	(void)size;
	return 0;
}

static int by_lock_on_fault(char *memory, size_t size)
{
	return mlock2(memory, size, MLOCK_ONFAULT);
}

static int by_reading(char *memory, size_t size)
{
	return madvise(memory, size, MADV_POPULATE_READ);
}

static int by_writing(char *memory, size_t size)
{
	return madvise(memory, size, MADV_POPULATE_WRITE);
}

static int lock(char *memory, size_t size)
{
	return mlock(memory, size);
}

static const struct way {
	int flags;
	int (*call)(char *memory, size_t size);
} ways[] = {
	{ MAP_POPULATE, by_nothing },
	{ MAP_LOCKED, by_nothing },
	{ 0, lock },
	{ 0, by_lock_on_fault },
	{ 0, by_reading },
	{ 0, by_writing },
};

/* Attached, with single pages at the end, and all by page. */
static const int rights[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_READ | PROT_EXEC };

static void is_populated(int fd, size_t size, int protection, const struct way *way)
{
	char *memory = mmap(NULL, size, protection, MAP_SHARED | way->flags, fd, 0);

	CHECK(memory != MAP_FAILED && !way->call(memory, size));
	CHECK(read_faults(memory, size) < 4);
	for (size_t at = 0; at < size; at += PAGE)
		CHECK(load(memory + at) == (at == 3 * MIB ? word_of(at) : 0));
	munmap(memory, size);
}

static void holes_are_populated(void)
{
	size_t size = 6 * MIB + 3 * PAGE;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(rights); j++) {
			long pages = count("pages");
			uint64_t word = word_of(3 * MIB);
			int fd = make(size);

			if (ways[i].call == by_writing && !(rights[j] & PROT_WRITE)) {
				close(fd);
				continue;
			}
			CHECK(pwrite(fd, &word, 8, 3 * MIB) == 8);
			if (!(rights[j] & PROT_WRITE))
				CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
			is_populated(fd, size, rights[j], &ways[i]);
			CHECK(count("pages") - pages == (long)(size / PAGE));
			close(fd);
		}
	}
}

/* What was attached before is populated as well. */
static void a_part_is_populated(void)
{
	size_t size = 4 * MIB;
	long pages, converted = count("stats/converted");
	char *memory;
	int fd;

	mount_small("huge=never");
	fd = make(size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	store(memory, 1);
	pages = count("pages");
	CHECK(!mlock(memory + 3 * MIB, MIB));
	CHECK(count("pages") - pages == MIB / PAGE);
	CHECK(read_faults(memory + 3 * MIB, MIB) == 0);
	CHECK(!munlock(memory + 3 * MIB, MIB));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * MIB, PAGE));
	CHECK(!madvise(memory, size, MADV_POPULATE_WRITE));
	CHECK(count("pages") - pages == (long)(size / PAGE) - 1);
	CHECK(read_faults(memory, size) == 0);
	CHECK(count("stats/converted") == converted);
	munmap(memory, size);
	close(fd);
	unmount_small();
}

/* A whole one is not walked again, however it is mapped. */
static void populating_a_whole_one_is_nothing(void)
{
	size_t size = 6 * MIB + PAGE;
	int fd = make_sealed(size, PAGE);
	long before = count("stats/faults"), pages = count("pages");
	char *memory;

	memory = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(!mlock(memory, size));
	CHECK(count("stats/faults") == before && count("pages") == pages);
	munmap(memory, size);
	/* It ends where the file ends. */
	memory = mmap(NULL, size + 4 * MIB, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(mlock(memory, size + 4 * MIB) && errno == ENOMEM);
	CHECK(madvise(memory, size + 4 * MIB, MADV_POPULATE_READ) && errno == EFAULT);
	munmap(memory, size + 4 * MIB);
	close(fd);
}

/* As on a full tmpfs. */
static void no_room_is_an_error(void)
{
	size_t size = 4 * MIB;
	char *memory;
	int fd;

	mount_small("huge=never,size=1M");
	fd = make(size);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	CHECK(memory != MAP_FAILED);
	CHECK(mlock(memory, size) && errno == ENOMEM);
	CHECK(madvise(memory, size, MADV_POPULATE_WRITE) && errno == EFAULT);
	CHECK(!mlock(memory, MIB / 2) && read_faults(memory, MIB / 2) == 0);
	munmap(memory, size);
	close(fd);
	unmount_small();
}

static void seeks_find_data_and_holes(void)
{
	size_t size = 5 * MIB + 100;
	int fd;

	mount_small("huge=never");
	fd = make(size);
	CHECK(lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO);
	CHECK(!lseek(fd, 0, SEEK_HOLE));
	CHECK(pwrite(fd, "x", 1, 10) == 1 && pwrite(fd, "x", 1, 3 * MIB + PAGE) == 1);
	CHECK(!fallocate(fd, 0, 4 * MIB, MIB + 100));
	CHECK(lseek(fd, 5, SEEK_DATA) == 5);
	CHECK(lseek(fd, 5, SEEK_HOLE) == PAGE && lseek(fd, 0, SEEK_CUR) == PAGE);
	CHECK(lseek(fd, PAGE, SEEK_DATA) == 3 * MIB + PAGE);
	CHECK(lseek(fd, 3 * MIB + PAGE + 7, SEEK_DATA) == 3 * MIB + PAGE + 7);
	CHECK(lseek(fd, 3 * MIB + PAGE, SEEK_HOLE) == 3 * MIB + 2 * PAGE);
	CHECK(lseek(fd, 3 * MIB + 2 * PAGE + 5, SEEK_HOLE) == 3 * MIB + 2 * PAGE + 5);
	CHECK(lseek(fd, 3 * MIB + 2 * PAGE, SEEK_DATA) == 4 * MIB);
	CHECK(lseek(fd, 4 * MIB, SEEK_HOLE) == (off_t)size);
	CHECK(lseek(fd, size, SEEK_HOLE) < 0 && errno == ENXIO);
	CHECK(lseek(fd, size, SEEK_DATA) < 0 && errno == ENXIO);
	CHECK(lseek(fd, -1, SEEK_DATA) < 0 && errno == ENXIO);
	CHECK(lseek(fd, 0, SEEK_CUR) == (off_t)size);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * MIB, size));
	CHECK(lseek(fd, 4 * MIB, SEEK_DATA) < 0 && errno == ENXIO);
	CHECK(!ftruncate(fd, 11) && lseek(fd, 0, SEEK_HOLE) == 11);
	close(fd);
	unmount_small();
}

/* Also between pages that are a leaf of 2 MiB. */
static void seeks_pass_blocks(void)
{
	int fd = make(8 * MIB);

	CHECK(!fallocate(fd, 0, 2 * MIB, 4 * MIB));
	CHECK(lseek(fd, 0, SEEK_DATA) == 2 * MIB);
	CHECK(lseek(fd, 3 * MIB, SEEK_DATA) == 3 * MIB);
	CHECK(lseek(fd, 3 * MIB, SEEK_HOLE) == 6 * MIB);
	CHECK(lseek(fd, 6 * MIB, SEEK_DATA) < 0 && errno == ENXIO);
	close(fd);
}

/* One page of three in each stretch of seven. */
static bool should_exist(size_t page)
{
	return page % 7 < 3;
}

static void mincore_is_true_for(int fd, size_t size, int protection)
{
	static unsigned char vector[2048];
	char *memory = map(fd, size, protection);

	CHECK(memory != MAP_FAILED && size / PAGE <= sizeof(vector));
	for (int is_touched = 0; is_touched < 2; is_touched++) {
		CHECK(!mincore(memory, size, vector));
		for (size_t page = 0; page < size / PAGE; page++)
			CHECK((vector[page] & 1) == should_exist(page));
		for (size_t page = 0; page < size / PAGE; page += 7)
			load(memory + page * PAGE);
	}
	munmap(memory, size);
}

static void mincore_is_true(void)
{
	size_t size = 4 * MIB + 5 * PAGE;
	int fd;

	mount_small("huge=never");
	fd = make(size);
	for (size_t page = 0; page < size / PAGE; page++)
		if (should_exist(page))
			CHECK(pwrite(fd, "x", 1, page * PAGE) == 1);
	mincore_is_true_for(fd, size, PROT_READ | PROT_WRITE);
	mincore_is_true_for(fd, size, PROT_READ);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	mincore_is_true_for(fd, size, PROT_READ);
	mincore_is_true_for(fd, size, PROT_READ | PROT_EXEC);
	close(fd);
	unmount_small();
}

const struct test morsel_populate_tests[] = {
	TEST(holes_are_populated),
	TEST(a_part_is_populated),
	TEST(populating_a_whole_one_is_nothing),
	TEST(no_room_is_an_error),
	TEST(seeks_find_data_and_holes),
	TEST(seeks_pass_blocks),
	TEST(mincore_is_true),
	{}
};
