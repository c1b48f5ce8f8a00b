// SPDX-License-Identifier: GPL-2.0-only
/* What several files of the program morsel need: content, morsels, mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

const char *mounted = MOUNT;

/* Content of a page. */
uint64_t word_of(size_t at)
{
	return at * 2654435761UL + 1;
}

void write_words(char *memory, size_t length, size_t step)
{
	for (size_t at = 0; at < length; at += step)
		store(memory + at, word_of(at));
}

bool has_words(const char *memory, size_t offset, size_t length, size_t step)
{
	for (size_t at = 0; at < length; at += step) {
		uint64_t seen = load(memory + at);

		if (seen != word_of(offset + at)) {
			ksft_print_msg("at 0x%zx: 0x%lx\n", offset + at, seen);
			return false;
		}
	}
	return true;
}

int make(size_t size)
{
	int fd = open(mounted, O_RDWR | O_TMPFILE, 0600);

	if (fd < 0 || ftruncate(fd, size))
		ksft_exit_fail_msg("a morsel: %s\n", strerror(errno));
	return fd;
}

char *map(int fd, size_t size, int protection)
{
	return mmap(NULL, size, protection, MAP_SHARED, fd, 0);
}

/* A morsel of the given size that contains the words, one per @step. */
int make_filled(size_t size, size_t step)
{
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	if (memory == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	write_words(memory, size, step);
	munmap(memory, size);
	return fd;
}

int make_sealed(size_t size, size_t step)
{
	int fd = make_filled(size, step);

	if (fcntl(fd, F_ADD_SEALS, ALL))
		ksft_exit_fail_msg("F_ADD_SEALS: %s\n", strerror(errno));
	return fd;
}

/* Whether another process sees the words, by its own mapping and by read(). */
bool others_see(int fd, size_t size, size_t step)
{
	pid_t pid = fork();

	if (!pid) {
		char *memory = map(fd, size, PROT_READ);
		uint64_t word;
		bool same = memory != MAP_FAILED && has_words(memory, 0, size, step);

		for (size_t at = 0; same && at < size; at += step)
			same = pread(fd, &word, 8, at) == 8 && word == word_of(at);
		_exit(same ? 0 : 1);
	}
	return ends_well(pid);
}

/* Unmap a morsel with a word in each page, which others still see, and close it. */
void leave(int fd, char *memory, size_t size)
{
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

/* Whether a child exits with 0. */
bool ends_well(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && !status;
}

/* Exit of a child that calls this. */
int child_status(void (*call)(char *), char *argument)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		call(argument);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

void touch_for_reading(char *at)
{
	load(at);
}

/* The attached entries decide whether it may, and not only the mapping. */
void touch_for_writing(char *at)
{
	load(at);
	store(at, 1);
}

bool dies_by(int status, int signal)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

bool all_zero(const char *memory, size_t length)
{
	for (size_t at = 0; at < length; at++)
		if (memory[at])
			return false;
	return true;
}

/* A field of /proc/self/smaps for the mapping of an address, in KiB. */
long smaps_of(const char *memory, const char *line)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, at = (unsigned long)memory;
	bool here = false;
	char text[512];
	long found = -1;

	while (file && fgets(text, sizeof(text), file)) {
		if (sscanf(text, "%lx-%lx ", &begin, &end) == 2)
			here = at >= begin && at < end;
		else if (here && !strncmp(text, line, strlen(line)))
			found = atol(text + strlen(line));
	}
	if (file)
		fclose(file);
	return found;
}

/* The word of a page in a file with one word per page. */
uint64_t word_in(const char *path, uint64_t page)
{
	int fd = open(path, O_RDONLY);
	uint64_t word = 0;

	CHECK(fd >= 0 && pread(fd, &word, 8, page * 8) == 8);
	close(fd);
	return word;
}

/* Return: PFN of a page that is mapped as a single page. */
uint64_t pfn_of(const char *at)
{
	uint64_t entry = word_in("/proc/self/pagemap", (unsigned long)at / PAGE);

	CHECK(entry >> 63);
	return entry & ((1ULL << 55) - 1);
}

/* Return: number of page-table entries that map it. */
long mapped_by(const char *at)
{
	return word_in("/proc/kpagecount", pfn_of(at));
}

void poison(char *at)
{
	madvise(at, PAGE, MADV_HWPOISON);
}

bool can_stop(void)
{
	if (!access(STOP_AT, W_OK))
		return true;
	lacks = "no places to stop at: not the debug kernel";
	return false;
}

/* Wait until a task was stopped. */
void wait_for_stopped(void)
{
	for (int i = 0; i < 5000 && !count("stopped"); i++)
		usleep(1000);
	CHECK(count("stopped") == 1);
}

void nothing_is_left(void)
{
	/* Tables wait for a grace period. */
	for (int i = 0; i < 100 && (count("pages") || count("tables")); i++)
		usleep(20000);
	CHECK(!count("pages"));
	CHECK(!count("tables"));
}
