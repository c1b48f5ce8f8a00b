// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Gives memory that is already populated to a device, and takes it back. The machine has an IOMMU and a device.
 *
 *     dma morsel|tmpfs|huge|hugetlb BYTES ROUNDS SECTION
 *
 * `morsel` attaches a sealed file of morselfs (mounted at /morsel), the others are pinned and mapped by IOMMU_IOAS_MAP:
 * files of tmpfs (at /tmpfs, and at /huge with huge pages) and of hugetlbfs (at /hugetlb). The section SECTION has the
 * calls that give it, ROUNDS times at different addresses, SECTION-detach those that take it back. Between them the device
 * reads the first page, the last and one in the middle; after them it must get none, and the IOMMU must report a fault.
 *
 *     dma check
 *
 * What the attachment of a morsel allows, refuses and keeps.
 */
#include "edu.h"
#include "section.h"

#define GIB (1ul << 30)
#define USAGE "dma morsel|tmpfs|huge|hugetlb BYTES ROUNDS SECTION | dma check"
/* Above the range of interrupts. */
#define FIRST	(4 * GIB)

enum { FAULT_WITHIN_MS = 5000, MAX_ROUNDS = 64 };

static _Noreturn void wrong(const char *what, long got)
{
	fprintf(stderr, "%s: %ld\n", what, got);
	exit(1);
}

static void expect(const char *what, long got, long expected)
{
	if (got != expected)
		wrong(what, got);
}

/* Each page has its number in it, and something that no other page has. */
static void mark(char *page, size_t number, uint64_t salt)
{
	uint64_t *words = (uint64_t *)page;

	for (size_t i = 0; i < PAGE / sizeof(*words); i++)
		words[i] = (number << 16 | i) ^ salt;
}

static bool is_marked(const char *page, size_t number, uint64_t salt)
{
	char expected[PAGE] __attribute__((aligned(8)));

	mark(expected, number, salt);
	return !memcmp(page, expected, PAGE);
}

enum { SALT = 0x5eed, OTHER = 0x07e4, NOTHING = 0xbad };

static int new_file(const char *path, size_t length)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, length))
		fail(path);
	return fd;
}

static int marked_file(const char *path, size_t length)
{
	int fd = new_file(path, length);
	char *memory = shared_file(fd, length, PROT_READ | PROT_WRITE);

	for (size_t at = 0; at < length; at += PAGE)
		mark(memory + at, at / PAGE, SALT);
	munmap(memory, length);
	return fd;
}

/* The device gets a page of the file. */
static void expect_page(uint64_t iova, size_t number)
{
	mark(edu.page, number, NOTHING);
	if (!is_marked(edu_read(iova + number * PAGE), number, SALT))
		wrong("the device reads something else in page", number);
}

/* Interrupts of the IOMMU, which has no others: its messages in the kernel's log are limited by their rate. */
static long count_faults(void)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char line[1024];
	long sum = -1;

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':'), *next;

		if (!at || !strstr(line, "dmar0"))
			continue;
		sum = 0;
		for (long count; count = strtol(++at, &next, 10), next != at; at = next)
			sum += count;
	}
	if (sum < 0)
		fail("no interrupt of the IOMMU");
	fclose(file);
	return sum;
}

static void expect_fault(long before)
{
	for (int ms = 0; count_faults() == before; ms++) {
		if (ms == FAULT_WITHIN_MS)
			wrong("the IOMMU reports no fault", before);
		usleep(1000);
	}
}

/* The device gets nothing of the file. */
static void expect_no_page(uint64_t iova, size_t number)
{
	long faults = count_faults();

	mark(edu.page, number, NOTHING);
	if (is_marked(edu_read(iova + number * PAGE), number, SALT))
		wrong("the device still reads page", number);
	expect_fault(faults);
}

/* Measuring */

static bool is_morsel(const char *kind)
{
	return !strcmp(kind, "morsel");
}

static uint64_t place(size_t length, size_t round)
{
	return FIRST + round * ((length + GIB - 1) / GIB * GIB);
}

static uint32_t give(const char *kind, int fd, const char *memory, size_t length, size_t round)
{
	uint64_t iova = place(length, round);
	uint32_t id = 0;
	int err = is_morsel(kind) ? edu_attach_morsel(fd, iova, &id) : edu_map(memory, length, iova, MAP_READABLE);

	if (err)
		wrong(kind, err);
	return id;
}

static void take(const char *kind, uint32_t id, size_t length, size_t round)
{
	int err = is_morsel(kind) ? edu_destroy(id) : edu_unmap(place(length, round), length);

	if (err)
		wrong(kind, err);
}

static void measure(const char *kind, size_t length, size_t rounds, const char *name)
{
	static uint32_t ids[MAX_ROUNDS];
	size_t round, pages = length / PAGE;
	char path[64], detach[64];
	const char *memory;
	int fd;

	snprintf(path, sizeof(path), "/%s/dma", kind);
	fd = marked_file(path, length);
	memory = shared_file(fd, length, PROT_READ);
	if (is_morsel(kind) && (munmap((void *)memory, length) || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE)))
		fail("seal");
	section_begin(name);
	for (round = 0; round < rounds; round++)
		ids[round] = give(kind, fd, memory, length, round);
	section_note("bytes", length);
	section_note("rounds", rounds);
	section_end();
	for (int i = 0; i < 3; i++)
		expect_page(place(length, i * (rounds - 1) / 2), (pages - 1) * i / 2);
	snprintf(detach, sizeof(detach), "%s-detach", name);
	section_begin(detach);
	for (round = 0; round < rounds; round++)
		take(kind, ids[round], length, round);
	section_note("rounds", rounds);
	section_end();
	for (int i = 0; i < 3; i++)
		expect_no_page(place(length, i * (rounds - 1) / 2), (pages - 1) * i / 2);
	unlink(path);
}

/* Checking */

static long pages_of_morsels(void)
{
	FILE *file = fopen("/sys/kernel/mm/morsel/pages", "re");
	long pages;

	if (!file || fscanf(file, "%ld", &pages) != 1)
		fail("/sys/kernel/mm/morsel/pages");
	fclose(file);
	return pages;
}

static void check_refused(void)
{
	int sparse = new_file("/morsel/sparse", 3 * REGION), tmpfs = new_file("/tmpfs/file", PAGE);
	int open_one = marked_file("/morsel/open", PAGE), reader = open("/morsel/open", O_RDONLY | O_CLOEXEC);
	uint32_t id;

	expect("empty", edu_attach_morsel(new_file("/morsel/empty", 0), 0, &id), -ENODATA);
	expect("sparse", edu_attach_morsel(sparse, 0, &id), -ENODATA);
	expect("sparse, sealed", fcntl(sparse, F_ADD_SEALS, F_SEAL_WRITE), 0);
	expect("sparse, sealed", edu_attach_morsel(sparse, 0, &id), -ENODATA);
	expect("tmpfs", edu_attach_morsel(tmpfs, 0, &id), -EINVAL);
	expect("no file", edu_attach_morsel(-1, 0, &id), -EBADF);
	expect("not aligned", edu_attach_morsel(open_one, REGION, &id), -EINVAL);
	expect("beyond the tables", edu_attach_morsel(open_one, 1ul << 47, &id), -EADDRINUSE);
	expect("the end", edu_attach_morsel(open_one, -GIB, &id), -EADDRINUSE);
	expect("beside a mapping", edu_attach_morsel(open_one, EDU_PAGE_AT, &id), -EADDRINUSE);
	expect("interrupts", edu_attach_morsel(open_one, 3 * GIB, &id), -EADDRINUSE);
	expect("open, for reading", edu_attach_morsel(reader, 0, &id), -EACCES);
	edu_write_text("/sys/kernel/mm/morsel/enabled", "0");
	expect("switched off", edu_attach_morsel(open_one, 0, &id), -EOPNOTSUPP);
	edu_write_text("/sys/kernel/mm/morsel/enabled", "1");
	expect("F_SEAL_FUTURE_WRITE", fcntl(open_one, F_ADD_SEALS, 0x10), 0);
	expect("no new writer", edu_attach_morsel(open_one, 0, &id), -EPERM);
	unlink("/morsel/sparse");
	unlink("/morsel/open");
}

/* A device reads and writes an open morsel, which keeps its size and pages meanwhile. */
static void check_open(void)
{
	int fd = marked_file("/morsel/open", 3 * PAGE);
	char *memory = shared_file(fd, 3 * PAGE, PROT_READ | PROT_WRITE);
	uint32_t id;

	expect("open", edu_attach_morsel(fd, 2 * GIB, &id), 0);
	expect_page(2 * GIB, 1);
	mark(edu.page, 1, OTHER);
	edu_write(2 * GIB + PAGE);
	expect("write of the device", is_marked(memory + PAGE, 1, OTHER), true);
	mark(memory + PAGE, 1, SALT);
	expect_page(2 * GIB, 1);
	munmap(memory, 3 * PAGE);
	expect("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) ? errno : 0, EBUSY);
	expect("truncate", ftruncate(fd, PAGE) ? errno : 0, EBUSY);
	expect("grow", ftruncate(fd, 4 * PAGE) ? errno : 0, EBUSY);
	expect("punch", fallocate(fd, 3, 0, PAGE) ? errno : 0, EBUSY);
	expect("allocate", fallocate(fd, 1, 0, 4 * PAGE) ? errno : 0, EBUSY);
	expect("write beyond", pwrite(fd, "x", 1, 3 * PAGE) < 0 ? errno : 0, EBUSY);
	expect("write within", pwrite(fd, "x", 1, 2 * PAGE), 1);
	expect("the same size", ftruncate(fd, 3 * PAGE), 0);
	expect("detach", edu_destroy(id), 0);
	expect_no_page(2 * GIB, 1);
	expect("punch afterwards", fallocate(fd, 3, 0, PAGE), 0);
	expect("truncate afterwards", ftruncate(fd, 2 * PAGE), 0);
	expect("seal afterwards", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	close(fd);
	unlink("/morsel/open");
}

/* Of a sealed morsel the device writes nothing. Its range is its own, and it outlives its name and descriptor. */
static void check_sealed(void)
{
	long faults, pages = pages_of_morsels();
	int fd = marked_file("/morsel/sealed", REGION + PAGE);
	uint32_t id, other, none;

	expect("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	/* Tables that are left of a mapping. */
	expect("map", edu_map(edu.page, PAGE, REGION, MAP_READABLE), 0);
	expect("unmap", edu_unmap(REGION, PAGE), 0);
	expect("sealed", edu_attach_morsel(fd, 0, &id), 0);
	/* QEMU reports no fault of a write where it has cached a translation for reading. */
	faults = count_faults();
	mark(edu.page, 0, OTHER);
	edu_write(0);
	expect_fault(faults);
	expect_page(0, 0);
	mark(edu.page, 0, OTHER);
	edu_write(0);
	expect_page(0, 0);
	expect("a second place", edu_attach_morsel(fd, GIB, &other), 0);
	expect("the same place", edu_attach_morsel(fd, 0, &none), -EADDRINUSE);
	expect("map in the range", edu_map(edu.page, PAGE, GIB - PAGE, MAP_READABLE), -EINVAL);
	expect("destroy the tables", edu_destroy(edu.hwpt), -EBUSY);
	expect_page(GIB, REGION / PAGE);
	close(fd);
	unlink("/morsel/sealed");
	expect_page(0, REGION / PAGE);
	expect("detach", edu_destroy(id), 0);
	expect_no_page(0, REGION / PAGE);
	expect_page(GIB, 0);
	expect("pages", pages_of_morsels() > pages, true);
	expect("detach", edu_destroy(other), 0);
	expect_no_page(GIB, 0);
	for (int ms = 0; pages_of_morsels() != pages; ms++) {
		if (ms == FAULT_WITHIN_MS)
			wrong("pages that stay", pages_of_morsels() - pages);
		usleep(1000);
	}
}

/* Long-term pins, as of RDMA, of mapped morsels. */
static void check_pins(void)
{
	int fd = marked_file("/morsel/pinned", 2 * REGION);
	char *memory = shared_file(fd, 2 * REGION, PROT_READ | PROT_WRITE), *copies;

	expect("pin an open one", edu_map(memory, 2 * REGION, 0, MAP_READABLE | MAP_WRITABLE), 0);
	munmap(memory, 2 * REGION);
	expect_page(0, 700);
	expect("seal while pinned", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) ? errno : 0, EBUSY);
	expect("unpin", edu_unmap(0, 2 * REGION), 0);
	expect("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	memory = shared_file(fd, 2 * REGION, PROT_READ);
	copies = mmap(NULL, 2 * REGION, PROT_READ, MAP_PRIVATE, fd, 0);
	expect("pin for writing", edu_map(memory, 2 * REGION, 0, MAP_READABLE | MAP_WRITABLE), -EFAULT);
	expect("pin copies", edu_map(copies, 2 * REGION, 0, MAP_READABLE), -EFAULT);
	expect("pin a sealed one", edu_map(memory, 2 * REGION, 0, MAP_READABLE), 0);
	munmap(memory, 2 * REGION);
	munmap(copies, 2 * REGION);
	close(fd);
	unlink("/morsel/pinned");
	expect_page(0, 700);
	expect("unpin", edu_unmap(0, 2 * REGION), 0);
	expect_no_page(0, 700);
}

/* The end of the process detaches. */
static void check_exit(void)
{
	int fd = marked_file("/morsel/held", PAGE);
	uint32_t id;

	expect("attach", edu_attach_morsel(fd, 0, &id), 0);
	expect_page(0, 0);
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 5 && (argc != 2 || strcmp(argv[1], "check")))
		usage(USAGE);
	if (argc == 2) {
		if (!new_child()) {
			edu_open();
			check_exit();
		}
		wait_for_children(1);
		expect("seal after the end of the process",
		       fcntl(open("/morsel/held", O_RDWR | O_CLOEXEC), F_ADD_SEALS, F_SEAL_WRITE), 0);
		unlink("/morsel/held");
	}
	edu_open();
	if (argc == 5) {
		if (number(argv[3]) > MAX_ROUNDS)
			usage(USAGE);
		measure(argv[1], number(argv[2]), number(argv[3]), argv[4]);
		return 0;
	}
	check_refused();
	check_open();
	check_sealed();
	check_pins();
	return 0;
}
