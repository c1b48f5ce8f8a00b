// SPDX-License-Identifier: GPL-2.0-only
/* Tests of blocks of 2 MiB and 1 GiB. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "morsel.h"

#define SPLIT	"/sys/kernel/debug/split_huge_pages"

/* A pipe that holds one reference to each of @pages pages. */
static bool hold_pages(int *pair, char *memory, size_t pages)
{
	struct iovec piece = { memory, pages * PAGE };

	return !pipe(pair) && fcntl(pair[1], F_SETPIPE_SZ, MIB) == (int)MIB &&
	       vmsplice(pair[1], &piece, 1, 0) == (ssize_t)(pages * PAGE);
}

static void drop_pages(const int *pair)
{
	close(pair[0]);
	close(pair[1]);
}

static void split_by_debugfs(const char *memory, size_t size)
{
	char text[96];

	snprintf(text, sizeof(text), "%d,0x%lx,0x%lx,0", getpid(), (unsigned long)memory,
		 (unsigned long)memory + size);
	write_text(SPLIT, text);
	write_text(SPLIT, "1");
}

/*
 * Linux splits a folio only if mappings and the page cache, with one reference for each
 * page, hold all its references. A block of a morsel has one reference. 511
 * others make it look like a folio of the page cache.
 */
static void try_to_split(int fd, size_t size, bool sealed)
{
	char *attached = map(fd, size, sealed ? PROT_READ : PROT_READ | PROT_WRITE);
	char *by_page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int first[2], second[2];
	pid_t pid;

	CHECK(attached != MAP_FAILED && by_page != MAP_FAILED);
	CHECK(load(attached) == word_of(0) && load(by_page) == word_of(0));
	CHECK(smaps_of(by_page, "FilePmdMapped:") == 2048 && mapped_by(by_page) == 1);
	CHECK(hold_pages(first, attached, 256));
	CHECK(hold_pages(second, attached + MIB, 255));

	CHECK(!madvise(by_page, PAGE, MADV_COLD));
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	CHECK(!madvise(by_page + PAGE, PAGE, MADV_PAGEOUT));
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	split_by_debugfs(by_page, 2 * MIB);
	split_by_debugfs(attached, 2 * MIB);
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	CHECK(smaps_of(by_page, "FilePmdMapped:") == 2048 && mapped_by(by_page) == 1);
	CHECK(others_see(fd, size, PAGE));

	/* The same with one more mapping of each kind in another process. */
	pid = fork();
	if (!pid) {
		char *mine = map(fd, size, PROT_READ);
		bool same = mine != MAP_FAILED && has_words(mine, 0, size, PAGE) &&
			    load(by_page) == word_of(0);

		split_by_debugfs(mine, 2 * MIB);
		split_by_debugfs(by_page, 2 * MIB);
		madvise(by_page, PAGE, MADV_COLD);
		_exit(same && has_words(mine, 0, size, PAGE) &&
		      has_words(by_page, 0, 2 * MIB, PAGE) ? 0 : 1);
	}
	CHECK(ends_well(pid));
	CHECK(has_words(attached, 0, size, PAGE) && mapped_by(by_page) == 1);
	if (sealed && dies_by(child_status(poison, by_page + 5 * PAGE), SIGBUS)) {
		CHECK(has_words(attached, 0, 5 * PAGE, PAGE));
		CHECK(has_words(attached + 6 * PAGE, 6 * PAGE, size - 6 * PAGE, PAGE));
	}
	drop_pages(first);
	drop_pages(second);
	munmap(by_page, size);
	munmap(attached, size);
}

static void a_block_is_never_split(void)
{
	size_t size = 4 * MIB;

	for (int sealed = 0; sealed < 2; sealed++) {
		long large = count("stats/filled_large");
		int fd = make(size);

		CHECK(!fallocate(fd, 0, 0, size));
		if (count("stats/filled_large") - large < 2) {
			lacks = "no blocks of 2 MiB";
			close(fd);
			return;
		}
		for (size_t at = 0; at < size; at += PAGE) {
			uint64_t word = word_of(at);

			CHECK(pwrite(fd, &word, 8, at) == 8);
		}
		if (sealed)
			CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		try_to_split(fd, size, sealed);
		/* The seal checks references: none is lost, none is leaked. */
		if (!sealed) {
			CHECK(others_see(fd, size, PAGE));
			CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
			CHECK(others_see(fd, size, PAGE));
		}
		close(fd);
	}
}

/* If the guest has a free one: attached as a leaf, partly mapped as single pages. */
static void a_gib_is_one_page(void)
{
	size_t size = GIB + 2 * MIB, step = 8 * MIB;
	long before = count("stats/filled_giant");
	char *memory, *part;
	struct iovec piece;
	int fd, pair[2];
	uint64_t word;

	mkdir("/tmp/giant", 0700);
	CHECK(!mount("none", "/tmp/giant", "morselfs", 0, "huge=1G,size=0"));
	mounted = "/tmp/giant";
	fd = make(size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	store(memory, word_of(0));
	if (count("stats/filled_giant") == before) {
		lacks = "no block of 1 GiB";
	} else {
		write_words(memory, size, step);
		part = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 8 * MIB);
		CHECK(part != MAP_FAILED && has_words(part, 8 * MIB, 4 * MIB, step));
		munmap(part, 4 * MIB);
		CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 6 * MIB));
		CHECK(!load(memory + 6 * MIB) && has_words(memory, 0, size, step));
		munmap(memory, size);
		CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		memory = map(fd, size, PROT_READ);
		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, step));
		part = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 8 * MIB);
		CHECK(part != MAP_FAILED && has_words(part, 8 * MIB, 4 * MIB, step));
		munmap(part, 4 * MIB);
		piece = (struct iovec){ memory + step, PAGE };
		CHECK(!pipe(pair) && vmsplice(pair[1], &piece, 1, 0) == PAGE);
		CHECK(read(pair[0], &word, 8) == 8 && word == word_of(step));
		close(pair[0]);
		close(pair[1]);
		CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
		CHECK(!munmap(memory + step, PAGE));
		CHECK(has_words(memory, 0, step, step));
		CHECK(others_see(fd, size, step));
	}
	munmap(memory, size);
	close(fd);
	mounted = MOUNT;
	CHECK(!umount("/tmp/giant"));
	rmdir("/tmp/giant");
}

static void *touch_first(void *argument)
{
	store(argument, 7);
	return NULL;
}

/*
 * A mapping of a part of a 1 GiB block has single pages. Between the two steps of a fault
 * the block is replaced by blocks of 2 MiB: they must not be mapped by a leaf that would
 * look like the morsel's own.
 */
static void a_part_of_a_gib_has_no_leaf(void)
{
	long giant = count("stats/filled_giant");
	pthread_t thread;
	char *memory, *by_page;
	int fd;

	if (!can_stop())
		return;
	mkdir("/tmp/giant", 0700);
	CHECK(!mount("none", "/tmp/giant", "morselfs", 0, "huge=1G,size=0"));
	mounted = "/tmp/giant";
	fd = make(GIB);
	mounted = MOUNT;
	memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && write_text(STOP_AT, "before_attach"));
	pthread_create(&thread, NULL, touch_first, memory);
	wait_for_stopped();
	if (count("stats/filled_giant") == giant)
		lacks = "no block of 1 GiB";
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, GIB));
	CHECK(!mount("none", "/tmp/giant", NULL, MS_REMOUNT, "huge=2M"));
	CHECK(write_text(STOP_AT, "nowhere"));
	pthread_join(thread, NULL);
	CHECK(load(memory) == 7);
	if (!lacks)
		CHECK(smaps_of(memory, "FilePmdMapped:") == 0);
	munmap(memory, 4 * MIB);
	by_page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(by_page != MAP_FAILED && load(by_page) == 7 && mapped_by(by_page) == 1);
	munmap(by_page, PAGE);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	close(fd);
	CHECK(!umount("/tmp/giant"));
	rmdir("/tmp/giant");
}

const struct test morsel_block_tests[] = {
	TEST(a_block_is_never_split),
	TEST(a_gib_is_one_page),
	TEST(a_part_of_a_gib_has_no_leaf),
	{}
};
