// SPDX-License-Identifier: GPL-2.0-only
/* Tests of mappings of a morsel. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "morsel.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE	101
#endif

static void mapping_takes_one_store_a_gib(void)
{
	size_t size = 2 * GIB + 6 * MIB + 3 * PAGE;
	int fd = make_sealed(size, 512 * MIB);
	long puds = count("stats/attached_pud"), pmds = count("stats/attached_pmd");
	long faults = count("stats/faults");
	struct rusage before, after;
	char *memory;

	getrusage(RUSAGE_SELF, &before);
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED);
	CHECK(!((unsigned long)memory & (GIB - 1)));
	CHECK(has_words(memory, 0, size, 512 * MIB));
	getrusage(RUSAGE_SELF, &after);
	CHECK(count("stats/attached_pud") - puds == 2);
	CHECK(count("stats/attached_pmd") - pmds == 1);
	CHECK(count("stats/faults") == faults);
	CHECK(after.ru_minflt - before.ru_minflt < 4);
	CHECK(!munmap(memory, size));
	close(fd);
}

/* The first fault attaches everything that exists. */
static void an_open_one_takes_one_fault(void)
{
	size_t size = 6 * MIB;
	int fd = make(size);
	long pmds = count("stats/attached_pmd"), faults = count("stats/faults");
	char *memory;

	CHECK(!fallocate(fd, 0, 0, size));
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && count("stats/attached_pmd") == pmds);
	write_words(memory, size, PAGE);
	CHECK(count("stats/faults") - faults == 1);
	CHECK(count("stats/attached_pmd") - pmds == 3);
	leave(fd, memory, size);
}

/* A neighbour in the same page table, and the following mapping. */
static void neighbours_come_and_go(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *area = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *middle = (char *)(((unsigned long)area + 6 * MIB) & ~(2 * MIB - 1));
	char *memory;

	CHECK(area != MAP_FAILED);
	memory = mmap(middle, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory == middle);
	CHECK(has_words(memory, 0, size, PAGE));
	for (int i = 0; i < 20; i++) {
		char *below = mmap(middle - MIB, MIB, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		char *above = mmap(middle + size, MIB, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		memset(below, i, MIB);
		memset(above, i, MIB);
		munmap(below, MIB);
		munmap(above, MIB);
		CHECK(has_words(memory, 0, size, PAGE));
	}
	munmap(area, 16 * MIB);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void a_part_may_be_unmapped(void)
{
	size_t size = 8 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	long converted = count("stats/converted");

	CHECK(memory != MAP_FAILED);
	CHECK(!munmap(memory + 3 * MIB, MIB));
	CHECK(count("stats/converted") > converted);
	CHECK(has_words(memory, 0, 3 * MIB, PAGE));
	CHECK(has_words(memory + 4 * MIB, 4 * MIB, 4 * MIB, PAGE));
	CHECK(dies_by(child_status(touch_for_reading, memory + 3 * MIB), SIGSEGV));
	leave(fd, memory, size);
}

static void rights_may_change(void)
{
	size_t size = 4 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(!mprotect(memory, size, PROT_READ));
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	CHECK(!mprotect(memory, size, PROT_READ | PROT_WRITE));
	write_words(memory, size, PAGE);
	CHECK(!mprotect(memory + MIB, MIB, PROT_NONE));
	CHECK(has_words(memory + 2 * MIB, 2 * MIB, 2 * MIB, PAGE));
	leave(fd, memory, size);
}

static int sealed_fd;

static void map_without_rights(char *unused)
{
	(void)unused;
	load(map(sealed_fd, 4 * MIB, PROT_NONE));
}

static void a_mapping_without_rights_has_none(void)
{
	char *memory;

	sealed_fd = make_sealed(4 * MIB, PAGE);
	CHECK(dies_by(child_status(map_without_rights, NULL), SIGSEGV));
	memory = map(sealed_fd, 4 * MIB, PROT_NONE);
	CHECK(!mprotect(memory, 4 * MIB, PROT_READ) && has_words(memory, 0, 4 * MIB, PAGE));
	leave(sealed_fd, memory, 4 * MIB);
}

/* Private mappings are attached as well, until they become writable. */
static void private_ones_are_copied_when_written(void)
{
	size_t size = 4 * MIB + 3 * PAGE, last = size - PAGE;
	int fd = make_sealed(size, PAGE);
	long attached = count("stats/attached_pmd");
	char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0), *moved;
	pid_t pid;

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(count("stats/attached_pmd") - attached == 2);
	if (!CHECK(!mprotect(memory, size, PROT_READ | PROT_WRITE)))
		return;
	CHECK(has_words(memory, 0, size, PAGE));
	store(memory, 1);
	store(memory + 2 * MIB + PAGE, 2);
	store(memory + last, 3);
	CHECK(load(memory) == 1 && load(memory + 2 * MIB + PAGE) == 2 && load(memory + last) == 3);
	CHECK(has_words(memory + PAGE, PAGE, 2 * MIB, PAGE) && others_see(fd, size, PAGE));
	/* A child has its own copies. */
	pid = fork();
	if (!pid) {
		bool same = load(memory) == 1;

		store(memory, 9);
		_exit(same && load(memory + last) == 3 ? 0 : 1);
	}
	CHECK(ends_well(pid) && load(memory) == 1);
	moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		       mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	CHECK(moved != MAP_FAILED && load(moved) == 1 && load(moved + last) == 3);
	CHECK(has_words(moved + PAGE, PAGE, 2 * MIB, PAGE));
	/* Without the copies it is the file's content again. */
	CHECK(!madvise(moved, 2 * MIB, MADV_DONTNEED) && load(moved) == word_of(0));
	CHECK(load(moved + last) == 3);
	CHECK(!mlock(moved, size) && !munlock(moved, size));
	munmap(moved, size);

	/* Only a part of it. */
	memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	if (!CHECK(!mprotect(memory + MIB, PAGE, PROT_READ | PROT_WRITE)))
		return;
	store(memory + MIB, 4);
	CHECK(load(memory + MIB) == 4 && has_words(memory, 0, MIB, PAGE));
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	leave(fd, memory, size);
}

static void it_may_move(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ), *moved;
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED && room != MAP_FAILED);
	CHECK(has_words(memory, 0, size, PAGE));
	moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
	CHECK(moved == room + PAGE);
	CHECK(has_words(moved, 0, size, PAGE));
	CHECK(mremap(moved, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
	leave(fd, moved, size);
}

/* Also by block, if blocks fit. */
static void odd_rights_are_mapped_by_block(void)
{
	long large = count("stats/filled_large");
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_EXEC);

	large = count("stats/filled_large") - large;
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(smaps_of(memory, "FilePmdMapped:") == large << 11);
	CHECK(!munmap(memory + MIB, PAGE));
	CHECK(has_words(memory, 0, MIB, PAGE));
	leave(fd, memory, size);
}

static void odd_places_are_mapped_by_page(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory;

	memory = mmap(room + PAGE, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory == room + PAGE && has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	memory = mmap(NULL, size - PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	CHECK(memory != MAP_FAILED && has_words(memory, PAGE, size - PAGE, PAGE));
	munmap(memory, size - PAGE);
	memory = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	memset(memory, 0xff, size);
	leave(fd, memory, size);
}

static void advice_takes_nothing(void)
{
	static const int advice[] = { MADV_DONTNEED, MADV_COLD, MADV_PAGEOUT, MADV_RANDOM,
				      MADV_WILLNEED, MADV_POPULATE_READ, MADV_MERGEABLE,
				      MADV_HUGEPAGE, MADV_COLLAPSE, MADV_SOFT_OFFLINE };
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(advice); i++) {
		/* Attached, and mapped as single pages. */
		char *memory = map(fd, size, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC);

		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
		madvise(memory, size, advice[i / 2]);
		CHECK(has_words(memory, 0, size, PAGE));
		madvise(memory + MIB, MIB, advice[i / 2]);
		CHECK(has_words(memory, 0, size, PAGE));
		munmap(memory, size);
	}
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void children_share_a_sealed_one(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(has_words(memory, 0, size, PAGE) ? 0 : 1);
		CHECK(ends_well(pid));
	}
	CHECK(has_words(memory, 0, size, PAGE));
	leave(fd, memory, size);
}

static void it_is_in_no_rss(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	struct stat stat;

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(smaps_of(memory, "Rss:") == 0);
	CHECK(smaps_of(memory, "Morsel:") == 6 << 10);
	CHECK(!fstat(fd, &stat) && stat.st_blocks == 6 << 11);
	CHECK(has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	close(fd);
}

static void it_works_switched_off(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), key = open(SYSFS "enabled", O_WRONLY);
	long pmds = count("stats/attached_pmd");
	char *memory;

	if (getenv("TOLLFREE_CODE_IS_FIXED")) {
		lacks = "no code may change";
		close(key);
		close(fd);
		return;
	}
	CHECK(key >= 0 && write(key, "2", 1) < 0 && errno == EINVAL);
	CHECK(write(key, "0", 1) == 1);
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(count("stats/attached_pmd") == pmds);
	munmap(memory, size);
	CHECK(write(key, "1", 1) == 1);
	close(key);
	close(fd);
}

/* A mapping ends at its end address, although its last slot is larger. */
static void touch_behind(char *memory)
{
	load(memory);
	load(memory + 2 * MIB);
	load(memory + 2 * MIB + PAGE);
}

static void nothing_is_mapped_behind_a_mapping(void)
{
	int fd = make_sealed(4 * MIB, PAGE);
	char *room = mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = (char *)(((unsigned long)room + 2 * MIB) & ~(2 * MIB - 1));

	/* No other process has a table there. */
	munmap(room, 8 * MIB);
	memory = mmap(memory, 2 * MIB + PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory != MAP_FAILED);
	CHECK(dies_by(child_status(touch_behind, memory), SIGSEGV));
	munmap(memory, 2 * MIB + PAGE);
	CHECK(others_see(fd, 4 * MIB, PAGE));
	close(fd);
}

const struct test morsel_map_tests[] = {
	TEST(mapping_takes_one_store_a_gib),
	TEST(an_open_one_takes_one_fault),
	TEST(neighbours_come_and_go),
	TEST(a_part_may_be_unmapped),
	TEST(rights_may_change),
	TEST(a_mapping_without_rights_has_none),
	TEST(private_ones_are_copied_when_written),
	TEST(it_may_move),
	TEST(odd_places_are_mapped_by_page),
	TEST(odd_rights_are_mapped_by_block),
	TEST(advice_takes_nothing),
	TEST(children_share_a_sealed_one),
	TEST(it_is_in_no_rss),
	TEST(it_works_switched_off),
	TEST(nothing_is_mapped_behind_a_mapping),
	{}
};
