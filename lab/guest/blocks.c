// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Measures the effect of creating and removing files in memory on the blocks of free memory.
 *
 *     blocks DIRECTORY CYCLES LIVE-BYTES SECTION
 *
 * Each cycle creates a file in DIRECTORY, of 4 KiB to 2 MiB (powers of two, equally likely), fills it by
 * write(), and removes random others until no more than LIVE-BYTES are left. At the end all are removed.
 *
 * Notes the number of free blocks of 2 MiB before and after; larger blocks count as several. The per-CPU lists of free
 * pages are drained before the count (toll_lab_drain in debugfs): they prevent the merging of the blocks that they are
 * parts of, and their length is random.
 */
#include "section.h"

#include <limits.h>

#define DRAIN "/sys/kernel/debug/toll_lab_drain"

enum { ORDER = 9, LARGEST = 2 << 20, SMALLEST_SHIFT = 12, SIZES = 10, MAX_FILES = 1 << 16 };

static struct {
	size_t name, length;
} files[MAX_FILES];
static size_t count, live;
static const char *directory;
static uint64_t state = 1;

static void drain(void)
{
	int fd = open(DRAIN, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		fail(DRAIN);
	close(fd);
}

/* Free blocks of this order, with what is free of larger ones. */
static double free_blocks(void)
{
	double blocks = 0;
	char line[512];
	FILE *file;

	drain();
	file = fopen("/proc/buddyinfo", "re");
	if (!file)
		fail("/proc/buddyinfo");
	while (fgets(line, sizeof(line), file)) {
		int order = 0, used = 0, skip = 0;
		unsigned long number;

		if (sscanf(line, "Node %*d, zone %*s%n", &skip) < 0 || !skip)
			continue;
		for (; sscanf(line + skip, "%lu%n", &number, &used) == 1; skip += used, order++)
			if (order >= ORDER)
				blocks += number << (order - ORDER);
	}
	fclose(file);
	return blocks;
}

/* What goes is freed some time later: waits until free memory does not change any more. */
static double settled_blocks(void)
{
	double blocks = free_blocks(), before;

	do {
		before = blocks;
		sleep(1);
		blocks = free_blocks();
	} while (blocks != before);
	return blocks;
}

static const char *path_of(size_t name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%zu", directory, name);
	return path;
}

static void create(size_t name)
{
	static char content[LARGEST];
	size_t length = 1ul << (SMALLEST_SHIFT + next_random(&state) % SIZES);
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, content, length) != (ssize_t)length || close(fd) || count == MAX_FILES)
		fail(path_of(name));
	files[count].name = name;
	files[count++].length = length;
	live += length;
}

static void remove_one(void)
{
	size_t at = next_random(&state) % count;

	if (unlink(path_of(files[at].name)))
		fail("unlink");
	live -= files[at].length;
	files[at] = files[--count];
}

int main(int argc, char **argv)
{
	size_t cycles, most;
	double before, after;

	if (argc != 5)
		usage("blocks DIRECTORY CYCLES LIVE-BYTES SECTION");
	directory = argv[1];
	cycles = number(argv[2]);
	most = number(argv[3]);
	/* What the first file brings with it, and keeps, is there before. */
	create(cycles);
	remove_one();
	before = settled_blocks();
	section_begin(argv[4]);
	for (size_t i = 0; i < cycles; i++) {
		create(i);
		while (live > most)
			remove_one();
	}
	section_note("cycles", cycles);
	section_note("blocks_live", free_blocks());
	while (count)
		remove_one();
	after = settled_blocks();
	section_note("blocks_before", before);
	section_note("blocks_after", after);
	section_end();
	return 0;
}
