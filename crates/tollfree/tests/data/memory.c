// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes memory of one kind, prints its address, and waits until stdin closes: memory KIND.
 * The mappings are named by their address in the tests of `why`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define HUGE (2 * MIB)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *map(void *at, size_t length, int flags, int fd)
{
	char *got = mmap(at, length, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (got == MAP_FAILED)
		fail("mmap");
	return got;
}

/* Address space at a multiple of 2 MiB, with a gap before and behind it. */
static char *room(size_t length)
{
	char *all = mmap(NULL, length + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		fail("mmap");
	return (char *)(((uintptr_t)all + 2 * HUGE - 1) & ~(HUGE - 1));
}

static char *private(char *at, size_t length)
{
	return map(at, length, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
}

static void advise(char *start, size_t length, int advice)
{
	if (madvise(start, length, advice))
		fail("madvise");
}

static char *touch(char *start, size_t length, size_t step)
{
	for (size_t at = 0; at < length; at += step)
		start[at] = 1;
	return start;
}

/* 8 MiB in huge pages, one byte written in each `step`. */
static char *advised(size_t step)
{
	char *start = private(room(8 * MIB), 8 * MIB);

	advise(start, 8 * MIB, MADV_HUGEPAGE);
	return touch(start, 8 * MIB, step);
}

/* khugepaged leaves a huge page alone while a pipe holds a page of it. */
static void keep_from_khugepaged(char *start, size_t length)
{
	int ends[2];

	if (pipe(ends))
		fail("pipe");
	for (size_t at = 0; at < length; at += HUGE) {
		struct iovec page = { .iov_base = start + at + HUGE - 4096, .iov_len = 4096 };

		if (vmsplice(ends[1], &page, 1, 0) != 4096)
			fail("vmsplice");
	}
}

/* Half of each huge page is given back, 64 KiB at a time, as an allocator purges. */
static char *purged(void)
{
	char *start = advised(4096);

	keep_from_khugepaged(start, 8 * MIB);
	for (size_t at = 0; at < 8 * MIB; at += 128 << 10)
		advise(start + at, 64 << 10, MADV_DONTNEED);
	return start;
}

/* 1 MiB before a region, one region, 1 MiB behind it. */
static char *edges(void)
{
	char *start = private(room(8 * MIB) + MIB, 4 * MIB);

	advise(start, 4 * MIB, MADV_NOHUGEPAGE);
	touch(start, 4 * MIB, 4096);
	advise(start, 4 * MIB, MADV_HUGEPAGE);
	return start;
}

/* A shared mapping of a file. */
static char *shared(int fd, size_t length)
{
	if (ftruncate(fd, length))
		fail("ftruncate");
	return touch(map(room(length), length, MAP_SHARED | MAP_FIXED, fd), length, 4096);
}

static char *of_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		fail(path);
	return shared(fd, 4 * MIB);
}

/* Advice for a block of the heap outlives it: the next block has it too. */
static char *sticky(void)
{
	char *old = sbrk(16 * MIB), *start;

	start = (char *)(((uintptr_t)old + HUGE - 1) & ~(HUGE - 1));
	advise(start, 4 * MIB, MADV_HUGEPAGE);
	touch(start, 4 * MIB, HUGE);
	return start;
}

static char *hugetlb(void)
{
	char *start = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return start == MAP_FAILED ? NULL : touch(start, HUGE, 4096);
}

static char *make(const char *kind, const char *path)
{
	if (!strcmp(kind, "plain"))
		return touch(private(room(8 * MIB), 8 * MIB), 8 * MIB, 4096);
	if (!strcmp(kind, "advised"))
		return advised(4096);
	if (!strcmp(kind, "bloat"))
		return advised(HUGE);
	if (!strcmp(kind, "purged"))
		return purged();
	if (!strcmp(kind, "edges"))
		return edges();
	if (!strcmp(kind, "short"))
		return touch(private(room(4 * MIB) + MIB, MIB), MIB, 4096);
	if (!strcmp(kind, "unaligned"))
		return touch(private(room(4 * MIB) + MIB, 2 * MIB), 2 * MIB, 4096);
	if (!strcmp(kind, "memfd"))
		return shared(memfd_create("a\nb\x1b[31m", 0), 4 * MIB);
	if (!strcmp(kind, "file"))
		return of_file(path);
	if (!strcmp(kind, "sticky"))
		return sticky();
	if (!strcmp(kind, "hugetlb"))
		return hugetlb();
	if (!strcmp(kind, "disabled")) {
		if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
			fail("prctl");
		return advised(4096);
	}
	if (!strcmp(kind, "never")) {
		char *start = advised(HUGE);

		advise(start, 8 * MIB, MADV_NOHUGEPAGE);
		advise(start, 8 * MIB, MADV_DONTNEED);
		return touch(start, 8 * MIB, 4096);
	}
	return NULL;
}

/* Mappings that do not merge with their neighbours, in `length` of address space; every 16th is touched. */
static void many(size_t number, size_t length)
{
	size_t each = length / number & ~(size_t)4095;
	char *start = room(length);

	for (size_t at = 0; at < number; at++) {
		char *one = start + at * each;
		int rights = at % 2 ? PROT_READ | PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;

		if (mmap(one, each, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			fail("mmap");
		if (at % 16 == 0)
			one[each / 2] = 1;
	}
}

/* Touches 64 MiB for ever, and prints a line for each pass. */
static void busy(void)
{
	char *start = private(room(64 * MIB), 64 * MIB);

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	for (;;) {
		for (int again = 0; again < 20; again++)
			touch(start, 64 * MIB, 64);
		puts("pass");
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "busy"))
		busy();
	if (argc > 3 && !strcmp(argv[1], "many")) {
		many(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
		puts("ready");
	} else if (argc > 2 && !strcmp(argv[1], "resident")) {
		size_t length = strtoul(argv[2], NULL, 10);
		char *start = private(room(length), length);

		advise(start, length, MADV_NOHUGEPAGE);
		touch(start, length, 4096);
		advise(start, length, MADV_HUGEPAGE);
		puts("ready");
	} else {
		char *start = argc > 1 ? make(argv[1], argv[2]) : NULL;

		if (!start) {
			puts("none");
			return 0;
		}
		printf("0x%lx\n", (unsigned long)start);
	}
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
