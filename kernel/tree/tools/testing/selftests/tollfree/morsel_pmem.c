// SPDX-License-Identifier: GPL-2.0-only
/*
 * Persistent morsels: tests of mounts of /dev/pmem0, whatever it has. Its content is
 * overwritten. Arguments name the tests to run, all if there are none.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "harness.h"
#include "morsel_pmem.h"
#include "morsel_test.h"

#define DRIVER	"/sys/bus/nd/drivers/nd_pmem/"

static int open_morsel(void)
{
	int fd = open(MOUNT "/d/morsel", O_RDONLY);

	must(fd >= 0, "open");
	return fd;
}

static char *map_morsel(int how, int protection)
{
	int fd = open_morsel();
	char *memory = mmap(NULL, SIZE, protection, how, fd, 0);

	must(memory != MAP_FAILED, "mmap");
	close(fd);
	return memory;
}

/* Whether all of the morsel is there, word for word. */
static bool is_whole(const char *memory)
{
	for (size_t at = 0; at + 8 <= SIZE; at += 8)
		if (load(memory + at) != expected(at)) {
			ksft_print_msg("at 0x%zx: 0x%lx\n", at, load(memory + at));
			return false;
		}
	return true;
}

/* Reading */

static void inodes_have_what_was_recorded(void)
{
	struct stat morsel, text, other;
	struct statfs fs;

	mount_image();
	CHECK(!stat(MOUNT "/d/morsel", &morsel));
	CHECK(morsel.st_ino == 2 && morsel.st_mode == 0100640 && morsel.st_nlink == 1);
	CHECK(morsel.st_uid == 1000 && morsel.st_gid == 1001 && morsel.st_size == (off_t)SIZE);
	CHECK(morsel.st_mtim.tv_sec == 1000000000 && morsel.st_mtim.tv_nsec == 500000000);
	CHECK(morsel.st_blocks == 514 * 8);
	CHECK(!stat(MOUNT "/text", &text) && text.st_nlink == 2 && text.st_size == 9);
	CHECK(!stat(MOUNT "/d/link", &other) && other.st_ino == text.st_ino);
	CHECK(!lstat(MOUNT "/whiteout", &other) && S_ISCHR(other.st_mode) && !other.st_rdev);
	CHECK(!stat(MOUNT "/d", &other) && other.st_mode == 0040700 && other.st_nlink == 2);
	CHECK(!stat(MOUNT, &other) && other.st_ino == 1 && other.st_nlink == 3);
	CHECK(!statfs(MOUNT, &fs) && fs.f_type == 0x4d52534c && fs.f_blocks == IMAGE_PAGES);
	CHECK(fs.f_bfree == IMAGE_PAGES - (4 + 3 + 514 + 2));
	unmount();
}

static void names_are_listed(void)
{
	static const char *const names[] = { "d", "text", "symlink", "whiteout" };
	unsigned int seen = 0, nr = 0;
	struct dirent *entry;
	char target[16] = "";
	DIR *directory;

	mount_image();
	directory = opendir(MOUNT);
	while ((entry = readdir(directory))) {
		nr++;
		for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
			seen |= !strcmp(entry->d_name, names[i]) << i;
	}
	closedir(directory);
	CHECK(seen == 15 && nr == 6);
	CHECK(readlink(MOUNT "/symlink", target, sizeof(target)) == 8);
	CHECK(!strcmp(target, "d/morsel"));
	CHECK(!access(MOUNT "/symlink", F_OK));
	CHECK(access(MOUNT "/nothing", F_OK) && errno == ENOENT);
	unmount();
}

static void extended_attributes_are_read(void)
{
	char value[8], list[64];

	make_image();
	image_begin_xattrs(RENAMED);
	image_add_xattr(RENAMED, "user.first", "one");
	image_add_xattr(RENAMED, "user.empty", "");
	image_add_xattr(RENAMED, "trusted.other", "two");
	image_word(image_inode(4) + INODE_XATTR, RENAMED);
	write_image();
	must(!mount_device(), "mount");
	CHECK(getxattr(MOUNT "/text", "user.first", value, 8) == 3 && !memcmp(value, "one", 3));
	CHECK(getxattr(MOUNT "/d/link", "user.empty", value, 8) == 0);
	CHECK(getxattr(MOUNT "/text", "trusted.other", value, 8) == 3);
	CHECK(getxattr(MOUNT "/text", "user.none", value, 8) < 0 && errno == ENODATA);
	CHECK(listxattr(MOUNT "/text", list, sizeof(list)) == 11 + 11 + 14);
	CHECK(listxattr(MOUNT "/d", list, sizeof(list)) == 0);
	CHECK(setxattr(MOUNT "/text", "user.first", "2", 1, 0) && errno == EROFS);
	unmount();
	image[RENAMED * PAGE + 20] ^= 1;
	CHECK(mount_error() == EUCLEAN);
	image[RENAMED * PAGE + 20] ^= 1;
	CHECK(!mount_error());
	image_add_xattr(RENAMED, "user.first", "another");
	CHECK(mount_error() == EUCLEAN);
}

static void content_is_read(void)
{
	char *all = malloc(SIZE + PAGE), part[16];
	int fd;

	mount_image();
	fd = open_morsel();
	CHECK(read(fd, all, SIZE + PAGE) == (ssize_t)SIZE);
	CHECK(is_whole(all));
	CHECK(read(fd, all, PAGE) == 0);
	/* From a hole into a page. */
	CHECK(pread(fd, part, 16, PAGE - 8) == 16 && !load(part));
	CHECK(load(part + 8) == expected(PAGE));
	CHECK(fcntl(fd, F_GET_SEALS) == 15);
	CHECK(pread(fd, NULL, 8, PAGE) < 0 && errno == EFAULT);
	close(fd);
	fd = open(MOUNT "/text", O_RDONLY);
	CHECK(read(fd, part, 16) == 9 && !memcmp(part, "some text", 9));
	CHECK(fcntl(fd, F_GET_SEALS) == 0);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	close(fd);
	free(all);
	unmount();
}

/* Mapping */

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void content_is_mapped(void)
{
	char *memory;
	pid_t pid;
	long before;

	mount_image();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	CHECK(is_whole(memory));
	pid = fork();
	if (!pid)
		_exit(!is_whole(memory));
	CHECK(waitpid(pid, (int[]){ 0 }, 0) == pid);
	munmap(memory, SIZE);
	/* The block is mapped at once. */
	memory = map_morsel(MAP_SHARED, PROT_READ);
	before = faults();
	for (size_t at = 512 * PAGE; at < 1024 * PAGE; at += PAGE)
		load(memory + at);
	CHECK(faults() - before <= 4);
	munmap(memory, SIZE);
	unmount();
}

static void private_writes_are_copies(void)
{
	static const size_t places[] = { 0, PAGE + 8, 600 * PAGE, 1024 * PAGE };
	char *memory, *other;

	mount_image();
	memory = map_morsel(MAP_PRIVATE, PROT_READ | PROT_WRITE);
	other = map_morsel(MAP_SHARED, PROT_READ);
	/* Before and after it was mapped for reading. */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		store(memory + places[i], 5);
		CHECK(load(memory + places[i]) == 5);
	}
	CHECK(load(memory + 600 * PAGE + 8) == expected(600 * PAGE + 8));
	munmap(memory, SIZE);
	memory = map_morsel(MAP_PRIVATE, PROT_READ | PROT_WRITE);
	CHECK(is_whole(memory));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		store(memory + places[i], 6);
		CHECK(load(memory + places[i]) == 6);
	}
	CHECK(load(memory + 700 * PAGE) == expected(700 * PAGE));
	CHECK(is_whole(other));
	munmap(memory, SIZE);
	munmap(other, SIZE);
	unmount();
}

static void behind_the_end_is_sigbus(void)
{
	size_t end = (SIZE + PAGE - 1) / PAGE * PAGE;
	uint64_t word;
	char *memory;
	int fd;

	signal(SIGBUS, jump);
	mount_image();
	fd = open_morsel();
	memory = mmap(NULL, end + PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(try_to_load(memory + end - 8, &word) && !word);
	CHECK(!try_to_load(memory + end, &word));
	munmap(memory, end + PAGE);
	close(fd);
	signal(SIGBUS, SIG_DFL);
	unmount();
}

/* Other parts of Linux that take pages of a mapping. */
static void pages_are_taken_and_returned(void)
{
	char *memory, copy[64];
	struct iovec part = { .iov_len = 64 };
	struct iovec to = { copy, 64 };
	int ends[2];

	mount_image();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	part.iov_base = memory + 700 * PAGE;
	CHECK(!pipe(ends));
	CHECK(vmsplice(ends[1], &part, 1, 0) == 64);
	CHECK(process_vm_readv(getpid(), &to, 1, &part, 1, 0) == 64);
	CHECK(load(copy) == expected(700 * PAGE));
	part.iov_base = memory + PAGE;
	CHECK(vmsplice(ends[1], &part, 1, 0) == 64);
	munmap(memory, SIZE);
	memset(copy, 0, sizeof(copy));
	CHECK(read(ends[0], copy, 64) == 64 && load(copy) == expected(700 * PAGE));
	CHECK(read(ends[0], copy, 64) == 64 && load(copy) == expected(PAGE));
	close(ends[0]);
	close(ends[1]);
	unmount();
}

/* Attached tables */

static bool is_whole_elsewhere(const char *memory)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(!is_whole(memory));
	return waitpid(pid, &status, 0) == pid && !status;
}

/* The tables are built once, and what maps the morsel after that attaches them. */
static void sealed_morsels_are_attached(void)
{
	long tables = count("tables"), attached = count("stats/attached_pmd"), before;
	char *memory, *other;

	mount_image();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	CHECK(is_whole(memory));
	/* A PUD table, a PMD table, and a page table for the pages before the block. */
	CHECK(count("tables") == tables + 3);
	other = map_morsel(MAP_SHARED, PROT_READ);
	before = faults();
	CHECK(is_whole(other));
	/* Those of the single pages at the end. */
	CHECK(faults() - before <= 2);
	CHECK(count("tables") == tables + 3);
	CHECK(count("stats/attached_pmd") == attached + 4);
	CHECK(is_whole_elsewhere(memory));
	munmap(memory, SIZE);
	CHECK(is_whole(other));
	munmap(other, SIZE);
	unmount();
	CHECK(count("tables") == tables);
}

/* A mapping that cannot have the tables any more maps single pages. */
static void attached_mappings_change(void)
{
	long converted = count("stats/converted");
	char *memory, *moved;

	mount_image();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	CHECK(is_whole(memory));
	CHECK(!madvise(memory, SIZE, MADV_DONTNEED) && is_whole(memory));
	moved = mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + (1UL << 30));
	must(moved != MAP_FAILED, "mremap");
	CHECK(is_whole(moved));
	CHECK(count("stats/converted") == converted);
	CHECK(!mprotect(moved + 600 * PAGE, PAGE, PROT_NONE));
	CHECK(count("stats/converted") == converted + 1);
	CHECK(!mprotect(moved + 600 * PAGE, PAGE, PROT_READ) && is_whole(moved));
	CHECK(is_whole_elsewhere(moved));
	munmap(moved, SIZE);
	memory = map_morsel(MAP_SHARED, PROT_READ);
	CHECK(is_whole(memory) && !munmap(memory + 512 * PAGE, 100 * PAGE));
	CHECK(load(memory + 612 * PAGE) == expected(612 * PAGE));
	CHECK(load(memory + PAGE) == expected(PAGE));
	munmap(memory, SIZE);
	unmount();
}

/* 3 GiB, and a block at 1 GiB and 4 MiB. */
static void large_holes_are_zeros(void)
{
	long tables = count("tables"), attached = count("stats/attached_pud");
	const size_t gib = 1UL << 30, size = 3 * gib, block = gib + (4UL << 20);
	char *memory;
	int fd;

	make_image();
	image_add_inode(9, 0100600, size, IMAGE_ROOT(TARGET + 10, 3, 0, 15));
	image_word((TARGET + 10) * PAGE + 8, TARGET + 11);
	image_word((TARGET + 11) * PAGE + 2 * 8, (2 * IMAGE_BLOCK) | IMAGE_LEAF);
	image_add_name(6, 9, 1, "sparse");
	for (uint64_t page = 2 * IMAGE_BLOCK; page < 3 * IMAGE_BLOCK; page++)
		fill_page(page);
	write_image();
	must(!mount_device(), "mount");
	fd = open(MOUNT "/sparse", O_RDONLY);
	memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	must(memory != MAP_FAILED, "mmap");
	CHECK(!load(memory) && !load(memory + size - 8));
	CHECK(!load(memory + block - 8) && !load(memory + block + (2UL << 20)));
	for (size_t at = 0; at < 2UL << 20; at += PAGE)
		CHECK(load(memory + block + at) == content_of(2 * IMAGE_BLOCK + at / PAGE));
	CHECK(count("stats/attached_pud") == attached + 3);
	/* One for 512 GiB, for each GiB, and for each 2 MiB of what was read of holes. */
	CHECK(count("tables") == tables + 1 + 3 + 4);
	CHECK(!madvise(memory, 16UL << 20, MADV_POPULATE_READ));
	CHECK(count("tables") == tables + 1 + 3 + 4 + 7);
	munmap(memory, size);
	close(fd);
	unmount();
	CHECK(count("tables") == tables);
}

/* Refusals */

static void mounts_for_reading_change_nothing(void)
{
	make_image();
	write_image();
	must(!mount_device(), "mount");
	CHECK(mount("none", MOUNT, "morselfs", 0, "pmem=" DEVICE) && errno == EBUSY);
	CHECK(mount("none", MOUNT, NULL, MS_REMOUNT, NULL) && errno == EROFS);
	CHECK(!mount("none", MOUNT, NULL, MS_REMOUNT | MS_RDONLY, NULL));
	CHECK(open(MOUNT "/d/morsel", O_RDWR) < 0 && errno == EROFS);
	CHECK(open(MOUNT "/new", O_RDWR | O_CREAT, 0600) < 0 && errno == EROFS);
	CHECK(unlink(MOUNT "/text") && errno == EROFS);
	CHECK(rename(MOUNT "/text", MOUNT "/other") && errno == EROFS);
	CHECK(truncate(MOUNT "/text", 0) && errno == EROFS);
	unmount();
}

static void wrong_devices_are_refused(void)
{
	CHECK(mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=/dev/nothing"));
	CHECK(errno == ENOENT);
	CHECK(mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=/dev/null"));
	CHECK(errno == ENOTBLK);
	/* A disk that cannot be mapped. */
	if (!access("/dev/zram0", F_OK)) {
		CHECK(mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=/dev/zram0"));
		CHECK(errno == EINVAL);
	}
}

static void one_device_has_one_mount(void)
{
	struct stat one, other;

	mount_image();
	CHECK(!stat(MOUNT "/text", &one));
	CHECK(!mount("none", MOUNT "/d", "morselfs", MS_RDONLY, "pmem=" DEVICE));
	CHECK(!stat(MOUNT "/d/text", &other) && one.st_dev == other.st_dev);
	CHECK(!umount(MOUNT "/d") && !access(MOUNT "/text", F_OK));
	CHECK(open(DEVICE, O_RDWR | O_EXCL) < 0 && errno == EBUSY);
	unmount();
}

static void other_ranges_are_refused(void)
{
	make_image();
	CHECK(!mount_error());
	memset(image, 0, 2 * PAGE);
	CHECK(mount_error() == EINVAL);
	make_image();
	image_super(0, 2, IMAGE_PAGES, 0);
	image_super(1, 2, IMAGE_PAGES, 0);
	CHECK(mount_error() == EINVAL);
	make_image();
	image_super(0, 1, IMAGE_PAGES, 1);
	image_super(1, 1, IMAGE_PAGES, 1);
	CHECK(mount_error() == EINVAL);
	make_image();
	image_super(0, 1, 1UL << 39, 0);
	CHECK(mount_error() == EINVAL);
	make_image();
	image[40]++;
	CHECK(!mount_error());
	image[PAGE + 40]++;
	CHECK(mount_error() == EUCLEAN);
}

static void flipped_bits_are_found(void)
{
	make_image();
	for (size_t i = 0; i < nr_words; i++) {
		image[words[i] + i % 2] ^= 1 << i % 8;
		if (!CHECK(mount_error() == EUCLEAN))
			ksft_print_msg("word %zu\n", i);
		image[words[i] + i % 2] ^= 1 << i % 8;
	}
	CHECK(!mount_error());
}

static void what_a_crash_left_is_completed(void)
{
	char *before = malloc(IMAGE_SIZE), *after = malloc(IMAGE_SIZE);
	int fd;

	make_image();
	/* The text was renamed, and replaced a name; its inode has no other. */
	image_add_inode(7, 0100600, 0, 0);
	image_add_name(6, 4, 1, "renamed");
	image_word(image_name(6) + NAME_FROM, 2 + 1);
	image_word(image_name(6) + NAME_INODE, 4 | IMAGE_PENDING);
	/* A page beyond the end, which belongs to the sealed morsel. */
	image_add_inode(8, 0100600, 5, IMAGE_ROOT(RENAMED, 1, 0, 0));
	image_word(RENAMED * PAGE + 8, FIRST | IMAGE_LEAF);
	image_add_name(7, 8, 1, "cut");
	write_image();
	memcpy(before, image, IMAGE_SIZE);
	must(!mount_device(), "mount");
	CHECK(access(MOUNT "/text", F_OK) && errno == ENOENT);
	CHECK(!access(MOUNT "/renamed", F_OK) && !access(MOUNT "/d/link", F_OK));
	unmount();
	fd = open(DEVICE, O_RDONLY);
	CHECK(pread(fd, after, IMAGE_SIZE, 0) == (ssize_t)IMAGE_SIZE);
	CHECK(!memcmp(before, after, IMAGE_SIZE));
	close(fd);
	free(before);
	free(after);
}

/* Changes beside a mount */

static void changes_beside_the_mount_are_errors(void)
{
	uint64_t word;
	char *memory;
	int fd;

	mount_image();
	fd = open(DEVICE, O_WRONLY);
	if (fd < 0 && errno == EBUSY) {
		lacks = "a mounted device cannot be written (bdev_allow_write_mounted=0)";
		return;
	}
	close(fd);
	signal(SIGBUS, jump);
	fd = open_morsel();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	write_word(LOWER * PAGE + 8, (1UL << 39) | IMAGE_LEAF);
	write_word(TABLE * PAGE + 8, (IMAGE_BLOCK + 1) | IMAGE_LEAF);
	CHECK(pread(fd, &word, 8, PAGE) < 0 && errno == EUCLEAN);
	CHECK(!try_to_load(memory + PAGE, &word));
	CHECK(pread(fd, &word, 8, 600 * PAGE) < 0 && errno == EUCLEAN);
	CHECK(!try_to_load(memory + 600 * PAGE, &word));
	/* The rest is there. */
	CHECK(try_to_load(memory, &word) && !word);
	CHECK(try_to_load(memory + 1024 * PAGE, &word) && word == expected(1024 * PAGE));
	/* What is mapped once stays. */
	write_word(TABLE * PAGE + 8, IMAGE_BLOCK | IMAGE_LEAF);
	CHECK(try_to_load(memory + 600 * PAGE, &word) && word == expected(600 * PAGE));
	write_word(TABLE * PAGE + 8, (IMAGE_BLOCK + 1) | IMAGE_LEAF);
	CHECK(try_to_load(memory + 601 * PAGE, &word) && word == expected(601 * PAGE));
	munmap(memory, SIZE);
	close(fd);
	signal(SIGBUS, SIG_DFL);
	unmount();
}

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

/* The driver waits for the unmount; what is mapped stays, and reads are errors. */
static void a_device_that_goes_is_an_error(void)
{
	uint64_t word;
	char *memory;
	int fd, i;
	pid_t pid;

	mount_image();
	fd = open_morsel();
	memory = map_morsel(MAP_SHARED, PROT_READ);
	CHECK(load(memory + PAGE) == expected(PAGE));
	pid = fork();
	if (!pid) {
		close(fd);
		munmap(memory, SIZE);
		put_text(DRIVER "unbind", "pfn0.0");
		_exit(0);
	}
	for (i = 0; i < 1000 && pread(fd, &word, 8, PAGE) == 8; i++)
		usleep(10000);
	CHECK(i < 1000 && errno == EIO);
	CHECK(load(memory + PAGE) == expected(PAGE));
	CHECK(!waitpid(pid, NULL, WNOHANG));
	munmap(memory, SIZE);
	close(fd);
	unmount();
	CHECK(waitpid(pid, (int[]){ 0 }, 0) == pid);
	put_text(DRIVER "bind", "pfn0.0");
	for (i = 0; i < 1000 && access(DEVICE, F_OK); i++)
		usleep(10000);
	mount_image();
	CHECK(!access(MOUNT "/d/morsel", F_OK));
	unmount();
}

static const struct test tests[] = {
	TEST(inodes_have_what_was_recorded),
	TEST(names_are_listed),
	TEST(content_is_read),
	TEST(content_is_mapped),
	TEST(private_writes_are_copies),
	TEST(behind_the_end_is_sigbus),
	TEST(pages_are_taken_and_returned),
	TEST(extended_attributes_are_read),
	TEST(sealed_morsels_are_attached),
	TEST(attached_mappings_change),
	TEST(large_holes_are_zeros),
	TEST(mounts_for_reading_change_nothing),
	TEST(wrong_devices_are_refused),
	TEST(one_device_has_one_mount),
	TEST(other_ranges_are_refused),
	TEST(flipped_bits_are_found),
	TEST(what_a_crash_left_is_completed),
	TEST(changes_beside_the_mount_are_errors),
	TEST(a_device_that_goes_is_an_error),
	{}
};

static const struct test *const lists[] = { write_tests, error_tests, tests };

int main(int argc, char **argv)
{
	(void)argc;
	ksft_print_header();
	need_device();
	run_tests(lists, ARRAY_SIZE(lists), argv + 1, unmount);
	finish_tests();
}
