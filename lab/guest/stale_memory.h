// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory of the cases: regions at fixed addresses, and new owners for the frames that were released. */
#ifndef STALE_MEMORY_H
#define STALE_MEMORY_H

#include "stale_toucher.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { PAGES = 16 };

#define LENGTH (PAGES * PAGE)
#define GIB (1ul << 30)

/* The kernel puts nothing here by itself. Regions of 4 KiB pages, of huge pages, the target of a move, new owners. */
#define AREA ((char *)0x100000000000)
#define BLOCK ((char *)0x100000000000 + GIB)
#define ASIDE ((char *)0x180000000000)
#define SPARE ((char *)0x200000000000)

static unsigned int turn;       /* number of the round */
static const char *given_path;  /* FILE of the command line */

/* Every second round the toucher repeats its touches; else it waits in user mode. */
static unsigned int sometimes_on(void)
{
	return turn & 1 ? ON : 0;
}

static unsigned int any_use(void)
{
	return sometimes_on() | (turn & 2 ? READ : READ | WRITE);
}

static char *map_as(char *at, size_t length, int protection, int flags, int fd)
{
	char *memory = mmap(at, length, protection, flags | MAP_FIXED_NOREPLACE, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

static char *map_at(char *at, size_t length)
{
	return map_as(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static char *map_file(char *at, size_t length, int fd)
{
	return map_as(at, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

static void unmap(char *start, size_t length)
{
	if (munmap(start, length))
		fail("munmap");
}

static void advise(char *start, size_t length, int advice)
{
	if (madvise(start, length, advice))
		fail("madvise");
}

static void protect(char *start, size_t length, int protection)
{
	if (mprotect(start, length, protection))
		fail("mprotect");
}

static char *fill_each(char *start, size_t length, size_t stride)
{
	for (size_t at = 0; at < length; at += stride)
		*(volatile unsigned char *)(start + at) = RETURN;
	return start;
}

static char *fill(char *start, size_t length)
{
	return fill_each(start, length, PAGE);
}

static void read_all(const char *start, size_t length)
{
	for (size_t at = 0; at < length; at += PAGE)
		(void)*(const volatile char *)(start + at);
}

/* A region of 4 KiB pages. */
static char *filled(void)
{
	return fill(map_at(AREA, LENGTH), LENGTH);
}

/* The page table's entries of a region before the operation, and how many have changed in all rounds. */
enum { MOST_NOTED = 1024 };

static struct {
	char *start;
	size_t pages;
	uint64_t entries[MOST_NOTED];
	unsigned long changed, noted;
} noted;

/* Bits of a word of /proc/self/pagemap. */
enum { SOFT_DIRTY = 55, PRESENT = 63 };

static void read_words(const char *start, size_t pages, uint64_t *words)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)(pages * sizeof(*words));

	if (fd < 0 || pread(fd, words, (size_t)length, (off_t)((uintptr_t)start / PAGE * sizeof(*words))) != length)
		fail("/proc/self/pagemap");
	close(fd);
}

static uint64_t pagemap_word(const char *page)
{
	uint64_t word;

	read_words(page, 1, &word);
	return word;
}

/* The frame, and whether the page is present. */
#define FRAME (1ull << PRESENT | ((1ull << SOFT_DIRTY) - 1))

/* By cases in which the kernel is free to do nothing, before the operation. */
static void note(char *start, size_t length)
{
	noted.start = start;
	noted.pages = length / PAGE;
	noted.noted += noted.pages;
	read_words(noted.start, noted.pages, noted.entries);
}

static size_t changed_now(void)
{
	static uint64_t now[MOST_NOTED];
	size_t changed = 0;

	read_words(noted.start, noted.pages, now);
	for (size_t i = 0; i < noted.pages; i++)
		changed += (now[i] & FRAME) != (noted.entries[i] & FRAME);
	return changed;
}

static void count_changed(void)
{
	noted.changed += changed_now();
	noted.pages = 0;
}

/* Frames that were just released get a new owner; then the toucher may use its old translations once more. */
static void renew(size_t pages)
{
	char *spare = fill(map_at(SPARE, pages * PAGE), pages * PAGE);

	settle();
	unmap(spare, pages * PAGE);
}

/* Ends a round in which the region is still mapped. */
static void finish(char *start, size_t length)
{
	settle();
	rest();
	unmap(start, length);
}

/* Ends a round in which frames were released and the region is still mapped. */
static void renew_and_finish(char *start, size_t length)
{
	renew(length / PAGE);
	count_changed();
	finish(start, length);
}

/* An empty file in memory. */
static int memory_file(unsigned int flags)
{
	int fd = memfd_create("stale", MFD_CLOEXEC | flags);

	if (fd < 0)
		not_possible("memfd_create: %s", strerror(errno));
	return fd;
}

static void resize(int fd, size_t length)
{
	if (ftruncate(fd, (off_t)length))
		fail("ftruncate");
}

static void punch(int fd, size_t length)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length))
		fail("fallocate");
}

/* The file on a disk: FILE, or /mnt/file if that exists; -1 without either. */
static int disk_file_or_none(void)
{
	const char *path = given_path ? given_path : "/mnt/file";
	int fd = open(path, O_RDWR | O_CLOEXEC | (given_path ? O_CREAT : 0), 0600);

	if (fd < 0 && given_path)
		fail(path);
	return fd;
}

static int disk_file(void)
{
	int fd = disk_file_or_none();

	if (fd < 0)
		not_possible("no FILE was given, and there is no /mnt/file");
	return fd;
}

static int any_file(void)
{
	int fd = disk_file_or_none();

	return fd < 0 ? memory_file(0) : fd;
}

#endif
