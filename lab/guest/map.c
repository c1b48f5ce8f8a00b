// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Measures mapping and unmapping of memory that is already populated.
 *
 *     map KIND BYTES ROUNDS SECTION [sparse]
 *
 * Kinds: `file` a file of what is mounted at /data, `folios` the same in folios as large as that file system has them,
 * `huge` one of tmpfs with huge pages (mounted at /huge), `hugetlb` one of hugetlbfs (mounted at /hugetlb), `memfd`, and
 * of morselfs (mounted at /morsel) `open`, mapped writable, and `sealed`.
 *
 * Before the section every page exists (one in each GiB if `sparse`), and with hugetlbfs one mapping, with page tables
 * that the others share. Then come ROUNDS mappings, with MAP_POPULATE unless `sparse`, and a read of the first byte of
 * each: section SECTION. They are unmapped in the section SECTION-unmap.
 *
 *     map PATH BYTES ROUNDS SECTION [populate]
 *
 * Opens an existing file, maps it and reads its first byte, ROUNDS times: section SECTION. It may have no page in memory,
 * and gets none but by the read, or `populate`.
 */
#include "section.h"

#define GIB (1ul << 30)
#define SIZES "map file|folios|huge|hugetlb|memfd|open|sealed|PATH BYTES ROUNDS SECTION [sparse|populate]"

enum { MAX_ROUNDS = 64, READ = 128 << 10 };

/* One page in each of these exists. */
static size_t step = PAGE;

static const struct kind {
	const char *name, *path;
	size_t unit;
	int protection;
} kinds[] = {
	{ "file", "/data/map", PAGE, PROT_READ },
	{ "folios", "/data/map", PAGE, PROT_READ },
	{ "huge", "/huge/map", PAGE, PROT_READ },
	{ "hugetlb", "/hugetlb/map", REGION, PROT_READ },
	{ "memfd", NULL, PAGE, PROT_READ },
	{ "open", "/morsel/map", PAGE, PROT_READ | PROT_WRITE },
	{ "sealed", "/morsel/map", PAGE, PROT_READ },
};

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	usage(SIZES);
}

/* A file that is a hole has pages in the page cache once it was read, and none on the disk. */
static void read_pages(int fd, size_t length)
{
	for (size_t at = 0; at < length; at += READ)
		if (readahead(fd, at, READ))
			fail("readahead");
}

/* With MADV_HUGEPAGE the page cache reads in folios of that size, where they fit. */
static void read_folios(int fd, size_t length)
{
	const char *memory = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED || madvise((void *)memory, length, MADV_HUGEPAGE))
		fail("MADV_HUGEPAGE of a file");
	for (size_t at = 0; at < length; at += PAGE)
		(void)*(volatile const char *)(memory + at);
	munmap((void *)memory, length);
}

static void write_pages(int fd, size_t length)
{
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < length; at += step)
		memory[at] = 1;
	munmap(memory, length);
}

static int file_of(const struct kind *kind, size_t length)
{
	int fd = kind->path ? open(kind->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) :
			      memfd_create("map", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, length))
		fail(kind->name);
	if (!strcmp(kind->name, "file"))
		read_pages(fd, length);
	else if (!strcmp(kind->name, "folios"))
		read_folios(fd, length);
	else
		write_pages(fd, length);
	if (!strcmp(kind->name, "sealed") && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE))
		fail("F_SEAL_WRITE");
	return fd;
}

/* Tables of hugetlbfs are shared by what is aligned alike to 1 GiB: it does so by itself only if told where. */
static void *place(const struct kind *kind, size_t length, size_t number)
{
	if (kind->unit != REGION)
		return NULL;
	return (void *)((1ul << 44) + number * ((length + GIB - 1) / GIB * GIB));
}

/* MAP_POPULATE would fill what is sparse. */
static const char *map_it(const struct kind *kind, int fd, size_t length, size_t number)
{
	int flags = MAP_SHARED | (step == GIB ? 0 : MAP_POPULATE);
	const char *memory = mmap(place(kind, length, number), length, kind->protection, flags, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

static int measure_existing(const char *path, size_t length, size_t rounds, const char *section, int flags)
{
	section_begin(section);
	for (size_t round = 0; round < rounds; round++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		const char *memory = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ, MAP_SHARED | flags, fd, 0);

		if (memory == MAP_FAILED)
			fail(path);
		(void)*(volatile const char *)memory;
		close(fd);
	}
	section_note("bytes", length);
	section_note("rounds", rounds);
	section_end();
	return 0;
}

int main(int argc, char **argv)
{
	static const char *memories[MAX_ROUNDS];
	size_t asked, length, rounds;
	const struct kind *kind;
	char unmap[64];
	int fd;

	if (argc != 5 && argc != 6)
		usage(SIZES);
	asked = number(argv[2]);
	rounds = number(argv[3]);
	if (argc == 6 && strcmp(argv[5], *argv[1] == '/' ? "populate" : "sparse"))
		usage(SIZES);
	if (*argv[1] == '/')
		return measure_existing(argv[1], asked, rounds, argv[4], argc == 6 ? MAP_POPULATE : 0);
	kind = find(argv[1]);
	if (rounds > MAX_ROUNDS)
		usage(SIZES);
	if (argc == 6)
		step = GIB;
	/* The smallest piece that there is. */
	length = (asked + kind->unit - 1) / kind->unit * kind->unit;
	fd = file_of(kind, length);
	if (kind->unit == REGION)
		map_it(kind, fd, length, rounds);
	section_begin(argv[4]);
	for (size_t round = 0; round < rounds; round++) {
		memories[round] = map_it(kind, fd, length, round);
		(void)*(volatile const char *)memories[round];
	}
	section_note("bytes", asked);
	section_note("rounds", rounds);
	section_end();
	snprintf(unmap, sizeof(unmap), "%s-unmap", argv[4]);
	section_begin(unmap);
	for (size_t round = 0; round < rounds; round++)
		if (munmap((void *)memories[round], length))
			fail("munmap");
	section_note("rounds", rounds);
	section_end();
	close(fd);
	if (kind->path)
		unlink(kind->path);
	return 0;
}
