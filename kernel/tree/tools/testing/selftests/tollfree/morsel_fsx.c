// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compare a morsel with a plain file in memory: the same random operations
 * on both, and all data read from one is compared with the other. The
 * first argument is their number (default 20,000, or as many as two minutes
 * allow), the second one the seed.
 */
#define _GNU_SOURCE
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "morsel_test.h"

#define MOUNT	"/tmp/morsel-fsx"

enum { MORSEL, PLAIN, BOTH };

/* Largest size of the files: several blocks of 2 MiB, and a part of one. */
static const size_t most = 9 * MIB + 5 * PAGE + 77;

static int files[BOTH];
static char *maps[BOTH];
static size_t mapped;
static char *buffers[BOTH];
static uint64_t seed = 88172645463325252ULL;
static unsigned long operation;

static uint64_t next(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static bool differ(const char *what, size_t at, size_t length)
{
	ksft_print_msg("operation %lu: not the same %s, 0x%zx bytes at 0x%zx\n", operation, what,
		       length, at);
	return false;
}

static size_t size_of(int which)
{
	struct stat stat;

	if (fstat(files[which], &stat))
		ksft_exit_fail_msg("fstat: %s\n", strerror(errno));
	return stat.st_size;
}

/* Often at the edge of a page or a block. */
static size_t place(size_t below)
{
	size_t at = next(below);

	switch (next(8)) {
	case 0:
		return at & ~(2 * MIB - 1);
	case 1:
		return at & ~(PAGE - 1);
	case 2:
		return (at | (PAGE - 1)) < below ? at | (PAGE - 1) : at;
	default:
		return at;
	}
}

static size_t length_at(size_t at)
{
	static const size_t lengths[] = { 1, 100, PAGE, 3 * PAGE, 64 * PAGE, 3 * MIB };
	size_t length = next(lengths[next(ARRAY_SIZE(lengths))]) + 1;

	return at + length > most ? most - at : length;
}

static bool same_result(const char *what, size_t at, long first, int error, long second,
			int other)
{
	if (first == second && (first >= 0 || error == other))
		return true;
	ksft_print_msg("operation %lu: %s at 0x%zx: %ld (%s), not %ld (%s)\n", operation, what,
		       at, first, strerror(error), second, strerror(other));
	return false;
}

static bool do_read(void)
{
	size_t at = place(most), length = length_at(at);
	long done[BOTH];

	for (int i = 0; i < BOTH; i++)
		done[i] = pread(files[i], buffers[i], length, at);
	if (!same_result("read", at, done[0], 0, done[1], 0))
		return false;
	return !memcmp(buffers[0], buffers[1], done[0]) || differ("reads", at, done[0]);
}

static bool do_write(void)
{
	size_t at = place(most), length = length_at(at);
	long done[BOTH];

	memset(buffers[0], next(255) + 1, length);
	for (int i = 0; i < BOTH; i++)
		done[i] = pwrite(files[i], buffers[0], length, at);
	return same_result("write", at, done[0], 0, done[1], 0);
}

static void unmap(void)
{
	for (int i = 0; i < BOTH && mapped; i++)
		munmap(maps[i], mapped);
	mapped = 0;
}

static bool do_map(void)
{
	size_t size = size_of(PLAIN), length;

	unmap();
	if (!size)
		return true;
	length = next(3) ? size : next(size) + 1;
	for (int i = 0; i < BOTH; i++) {
		maps[i] = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, files[i], 0);
		if (maps[i] == MAP_FAILED)
			ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	}
	mapped = length;
	return true;
}

/* A part of the mapping within the file. */
static bool mapped_part(size_t *at, size_t *length)
{
	size_t size = size_of(PLAIN), end = mapped < size ? mapped : size;

	if (!end)
		return false;
	*at = place(end);
	*length = length_at(*at);
	if (*at + *length > end)
		*length = end - *at;
	return true;
}

static bool do_mapped_read(void)
{
	size_t at, length;

	if (!mapped_part(&at, &length))
		return true;
	return !memcmp(maps[0] + at, maps[1] + at, length) || differ("mappings", at, length);
}

static bool do_mapped_write(void)
{
	size_t at, length;
	int byte = next(255) + 1;

	if (mapped_part(&at, &length))
		for (int i = 0; i < BOTH; i++)
			memset(maps[i] + at, byte, length);
	return true;
}

static bool do_resize(void)
{
	size_t size = next(4) ? place(most) : 0;

	for (int i = 0; i < BOTH; i++)
		if (ftruncate(files[i], size))
			ksft_exit_fail_msg("ftruncate: %s\n", strerror(errno));
	return true;
}

static bool do_punch(void)
{
	size_t at = place(most), length = length_at(at);

	for (int i = 0; i < BOTH; i++)
		if (fallocate(files[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length))
			ksft_exit_fail_msg("fallocate: %s\n", strerror(errno));
	return true;
}

static bool do_allocate(void)
{
	int mode = next(2) ? FALLOC_FL_KEEP_SIZE : 0;
	size_t at = place(most), length = length_at(at);

	for (int i = 0; i < BOTH; i++)
		if (fallocate(files[i], mode, at, length))
			ksft_exit_fail_msg("fallocate: %s\n", strerror(errno));
	return true;
}

/* Converting a mapping must not change its content. */
static bool do_turn(void)
{
	size_t at;

	if (mapped < 2 * PAGE)
		return true;
	at = next(mapped) & ~(PAGE - 1);
	switch (next(4)) {
	case 0:
		mprotect(maps[MORSEL] + at, PAGE, PROT_READ);
		mprotect(maps[MORSEL] + at, PAGE, PROT_READ | PROT_WRITE);
		break;
	case 1:
		madvise(maps[MORSEL], mapped, MADV_DONTNEED);
		break;
	case 2:
		madvise(maps[MORSEL] + at, PAGE, MADV_DONTNEED);
		break;
	default:
		for (int i = 0; i < BOTH; i++)
			munmap(maps[i] + at, mapped - at);
		mapped = at;
	}
	return true;
}

/* Compare everything, also in another process with a new mapping. */
static bool compare(void)
{
	size_t size = size_of(PLAIN);
	int status;
	pid_t pid;

	if (size != size_of(MORSEL))
		return differ("sizes", size, 0);
	pid = fork();
	if (!pid) {
		char *seen[BOTH];

		for (int i = 0; i < BOTH; i++)
			seen[i] = mmap(NULL, size ?: 1, PROT_READ, MAP_SHARED, files[i], 0);
		_exit(memcmp(seen[0], seen[1], size) ? 1 : 0);
	}
	return (waitpid(pid, &status, 0) == pid && !status) || differ("files", 0, size);
}

static bool step(void)
{
	static bool (*const operations[])(void) = {
		do_read, do_read, do_write, do_write, do_mapped_read, do_mapped_read,
		do_mapped_read, do_mapped_write, do_mapped_write, do_mapped_write, do_map,
		do_resize, do_punch, do_allocate, do_turn,
	};

	return operations[next(ARRAY_SIZE(operations))]();
}

int main(int argc, char **argv)
{
	unsigned long operations = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000;
	/* Emulated and with all checks, a kernel may take half an hour for all of them. */
	time_t end = argc > 1 ? 0 : time(NULL) + 120;
	bool same = true;

	ksft_print_header();
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0) | 1;
	mkdir("/tmp", 01777);
	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "morselfs", 0, NULL))
		ksft_exit_skip("no morselfs: %s\n", strerror(errno));
	ksft_set_plan(1);
	files[MORSEL] = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
	files[PLAIN] = memfd_create("plain", 0);
	if (files[MORSEL] < 0 || files[PLAIN] < 0)
		ksft_exit_fail_msg("open: %s\n", strerror(errno));
	for (int i = 0; i < BOTH; i++)
		buffers[i] = malloc(most);
	for (operation = 0; same && operation < operations; operation++) {
		if (end && time(NULL) >= end)
			break;
		same = step() && (operation % 500 || compare());
	}
	same = same && compare();
	unmap();
	ksft_print_msg("%lu of %lu operations\n", operation, operations);
	ksft_test_result(same, "a morsel is as a plain file\n");
	close(files[MORSEL]);
	umount(MOUNT);
	ksft_finished();
}
