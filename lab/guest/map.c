// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What it costs to map memory that is there already, and to unmap it.
 *
 *     map KIND BYTES ROUNDS SECTION
 *
 * Kinds: `populate` a file of tmpfs with MAP_POPULATE, `file` the same of the disk that is mounted at /data, `huge` a
 * file of tmpfs with huge pages (mounted at /huge), `hugetlb` a file of hugetlbfs (mounted at /hugetlb), `memfd`.
 * Before the section the file is written once and mapped once; then each round maps all of it, reads one word of each
 * 2 MiB, and unmaps it.
 */
#include "section.h"

static const struct {
	const char *name, *path;
	size_t unit;
} kinds[] = {
	{ "populate", "/tmp/map", PAGE },
	{ "file", "/data/map", PAGE },
	{ "huge", "/huge/map", PAGE },
	{ "hugetlb", "/hugetlb/map", REGION },
	{ "memfd", NULL, PAGE },
};

static int file_of(const char *path, size_t length)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : memfd_create("map", MFD_CLOEXEC);
	char *memory;

	if (fd < 0 || ftruncate(fd, length))
		fail(path ? path : "memfd");
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < length; at += PAGE)
		memory[at] = 1;
	munmap(memory, length);
	return fd;
}

static uint64_t map_once(int fd, size_t length)
{
	volatile const char *memory = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	uint64_t sum = 0;

	if (memory == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < length; at += REGION)
		sum += memory[at];
	if (munmap((void *)memory, length))
		fail("munmap");
	return sum;
}

int main(int argc, char **argv)
{
	size_t length, rounds, kind = 0;
	int fd;

	if (argc != 5)
		usage("map populate|file|huge|hugetlb|memfd BYTES ROUNDS SECTION");
	length = number(argv[2]);
	rounds = number(argv[3]);
	while (kind < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[kind].name, argv[1]))
		kind++;
	if (kind == sizeof(kinds) / sizeof(*kinds))
		usage("map populate|file|huge|hugetlb|memfd BYTES ROUNDS SECTION");
	/* The smallest piece that there is. */
	length = (length + kinds[kind].unit - 1) / kinds[kind].unit * kinds[kind].unit;
	fd = file_of(kinds[kind].path, length);
	map_once(fd, length);
	section_begin(argv[4]);
	for (size_t round = 0; round < rounds; round++)
		map_once(fd, length);
	section_note("bytes", length);
	section_note("rounds", rounds);
	section_end();
	close(fd);
	if (kinds[kind].path)
		unlink(kinds[kind].path);
	return 0;
}
