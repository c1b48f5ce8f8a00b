// SPDX-License-Identifier: GPL-2.0-only
/* Persistent morsels that are changed: what was done is there after another mount. */
#define _GNU_SOURCE
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

static int mount_for_writing(void)
{
	return mount("none", MOUNT, "morselfs", 0, "pmem=" DEVICE);
}

/* An empty range. */
void begin(void)
{
	image_begin();
	write_image();
	must(!mount_for_writing(), "mount for writing");
}

/* Nothing may be in use any more. */
void mount_again(void)
{
	must(!umount(MOUNT), "umount");
	must(!mount_for_writing(), "mount again");
}

int create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);

	must(fd >= 0, path);
	return fd;
}

static void put(const char *path, const char *text)
{
	int fd = create(path);

	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static bool has(const char *path, const char *text)
{
	char found[64] = "";
	int fd = open(path, O_RDONLY);
	bool is_same = fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0 &&
		       !strcmp(found, text);

	close(fd);
	return is_same;
}

static bool is_missing(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) && errno == ENOENT;
}

long free_pages(void)
{
	struct statfs fs;

	must(!statfs(MOUNT, &fs), "statfs");
	return fs.f_bfree;
}

/* The word at a place of a file that it was filled with. */
static uint64_t word_at(size_t at)
{
	return (at / 8 + 1) * 0x9e3779b97f4a7c15UL;
}

void fill(char *memory, size_t from, size_t to)
{
	for (; from < to; from += 8)
		store(memory + from, word_at(from));
}

bool is_filled(const char *memory, size_t from, size_t to)
{
	for (; from < to; from += 8)
		if (load(memory + from) != word_at(from)) {
			ksft_print_msg("at 0x%zx: 0x%lx\n", from, load(memory + from));
			return false;
		}
	return true;
}

static bool is_zero(const char *memory, size_t from, size_t to)
{
	for (; from < to; from++)
		if (memory[from]) {
			ksft_print_msg("at 0x%zx: 0x%x\n", from, memory[from]);
			return false;
		}
	return true;
}

/* Write words to a place of a file, in one call. */
void write_words(int fd, size_t from, size_t length)
{
	char *memory = malloc(from + length);

	fill(memory, from, from + length);
	must(pwrite(fd, memory + from, length, from) == (ssize_t)length, "pwrite");
	free(memory);
}

char *map(int fd, size_t length, int protection)
{
	char *memory = mmap(NULL, length, protection, MAP_SHARED, fd, 0);

	must(memory != MAP_FAILED, "mmap");
	return memory;
}

/* The content of a file. */
static char *content(const char *path, size_t length)
{
	char *bytes = calloc(1, length + 1);
	int fd = open(path, O_RDONLY);

	must(fd >= 0 && read(fd, bytes, length + 1) == (ssize_t)length, path);
	close(fd);
	return bytes;
}

/* Mounts */

static void mounts_change_between_reading_and_writing(void)
{
	begin();
	put(MOUNT "/text", "text");
	CHECK(mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=" DEVICE) && errno == EBUSY);
	CHECK(open(DEVICE, O_RDWR | O_EXCL) < 0 && errno == EBUSY);
	CHECK(!mount("none", MOUNT, NULL, MS_REMOUNT | MS_RDONLY, NULL));
	CHECK(unlink(MOUNT "/text") && errno == EROFS);
	CHECK(!mount("none", MOUNT, NULL, MS_REMOUNT, NULL));
	CHECK(!unlink(MOUNT "/text"));
	unmount();
	must(!mount_device(), "mount for reading");
	CHECK(mount("none", MOUNT, NULL, MS_REMOUNT, NULL) && errno == EROFS);
	unmount();
}

/* Names */

static void new_names_survive(void)
{
	struct stat stat;
	char target[64] = "";
	int fd;

	begin();
	put(MOUNT "/text", "some text");
	CHECK(!mkdir(MOUNT "/d", 0750) && !mkdir(MOUNT "/d/e", 0711));
	CHECK(!mknod(MOUNT "/d/null", S_IFCHR | 0600, makedev(1, 3)));
	CHECK(!mknod(MOUNT "/d/pipe", S_IFIFO | 0600, 0));
	CHECK(!symlink("d/e/link", MOUNT "/symlink"));
	CHECK(!link(MOUNT "/text", MOUNT "/d/e/link"));
	fd = open(MOUNT "/d", O_TMPFILE | O_RDWR, 0600);
	CHECK(fd >= 0 && write(fd, "unnamed", 7) == 7);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	CHECK(!linkat(AT_FDCWD, target, AT_FDCWD, MOUNT "/named", AT_SYMLINK_FOLLOW));
	close(fd);
	mount_again();
	CHECK(has(MOUNT "/d/e/link", "some text") && has(MOUNT "/symlink", "some text"));
	CHECK(has(MOUNT "/named", "unnamed"));
	CHECK(!lstat(MOUNT "/text", &stat) && stat.st_nlink == 2 && stat.st_mode == 0100644);
	CHECK(!lstat(MOUNT "/d/null", &stat) && stat.st_rdev == makedev(1, 3));
	CHECK(!lstat(MOUNT "/d/pipe", &stat) && stat.st_mode == (S_IFIFO | 0600));
	CHECK(!lstat(MOUNT "/d", &stat) && stat.st_nlink == 3 && stat.st_mode == 0040750);
	memset(target, 0, sizeof(target));
	CHECK(readlink(MOUNT "/symlink", target, 64) == 8 && !strcmp(target, "d/e/link"));
	unmount();
}

static void removed_names_stay_removed(void)
{
	long before;

	begin();
	before = free_pages();
	put(MOUNT "/one", "1");
	CHECK(!link(MOUNT "/one", MOUNT "/two") && !mkdir(MOUNT "/d", 0700));
	CHECK(rmdir(MOUNT "/one") && errno == ENOTDIR);
	CHECK(!mkdir(MOUNT "/d/e", 0700) && rmdir(MOUNT "/d") && errno == ENOTEMPTY);
	CHECK(!unlink(MOUNT "/one") && !rmdir(MOUNT "/d/e") && !rmdir(MOUNT "/d"));
	CHECK(free_pages() == before - 1);
	mount_again();
	CHECK(is_missing(MOUNT "/one") && is_missing(MOUNT "/d") && has(MOUNT "/two", "1"));
	CHECK(!unlink(MOUNT "/two") && free_pages() == before);
	mount_again();
	CHECK(is_missing(MOUNT "/two") && free_pages() == before);
	unmount();
}

static void renames_survive(void)
{
	begin();
	put(MOUNT "/a", "a");
	put(MOUNT "/b", "b");
	put(MOUNT "/c", "c");
	CHECK(!mkdir(MOUNT "/d", 0700) && !mkdir(MOUNT "/e", 0700));
	put(MOUNT "/e/inner", "inner");
	CHECK(!rename(MOUNT "/a", MOUNT "/d/a"));
	CHECK(!rename(MOUNT "/b", MOUNT "/c"));
	CHECK(renameat2(AT_FDCWD, MOUNT "/c", AT_FDCWD, MOUNT "/d/a", RENAME_NOREPLACE) &&
	      errno == EEXIST);
	CHECK(!renameat2(AT_FDCWD, MOUNT "/d/a", AT_FDCWD, MOUNT "/e", RENAME_EXCHANGE));
	CHECK(renameat2(AT_FDCWD, MOUNT "/c", AT_FDCWD, MOUNT "/w", RENAME_WHITEOUT) &&
	      errno == EINVAL);
	CHECK(rename(MOUNT "/e", MOUNT "/d") && errno == EISDIR);
	CHECK(rename(MOUNT "/d/a", MOUNT "/d/a/x") && errno == EINVAL);
	for (int i = 0; i < 2; i++) {
		CHECK(has(MOUNT "/e", "a") && has(MOUNT "/c", "b"));
		CHECK(has(MOUNT "/d/a/inner", "inner"));
		CHECK(is_missing(MOUNT "/a") && is_missing(MOUNT "/b"));
		mount_again();
	}
	/* The slots of old names are used again. */
	put(MOUNT "/a", "new a");
	CHECK(!rename(MOUNT "/d/a", MOUNT "/b") && !rename(MOUNT "/a", MOUNT "/c"));
	mount_again();
	CHECK(has(MOUNT "/c", "new a") && has(MOUNT "/b/inner", "inner") && !rmdir(MOUNT "/d"));
	unmount();
}

/* More than a page of slots of each kind, with gaps. */
static void many_names_survive(void)
{
	char path[64];
	int i;

	begin();
	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), MOUNT "/file-%d", i);
		put(path, path);
	}
	for (i = 0; i < 300; i += 3) {
		snprintf(path, sizeof(path), MOUNT "/file-%d", i);
		CHECK(!unlink(path));
	}
	mount_again();
	for (i = 0; i < 50; i++) {
		snprintf(path, sizeof(path), MOUNT "/more-%d", i);
		put(path, path);
	}
	mount_again();
	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), MOUNT "/file-%d", i);
		CHECK(i % 3 ? has(path, path) : is_missing(path));
		snprintf(path, sizeof(path), MOUNT "/more-%d", i);
		CHECK(i < 50 ? has(path, path) : is_missing(path));
	}
	unmount();
}

static void files_without_a_name_end_with_their_last_user(void)
{
	long before;
	char text[8] = "";
	int fd, other;

	begin();
	before = free_pages();
	put(MOUNT "/text", "text");
	fd = open(MOUNT "/text", O_RDWR);
	CHECK(!unlink(MOUNT "/text") && pread(fd, text, 8, 0) == 4 && !strcmp(text, "text"));
	CHECK(write(fd, "more", 4) == 4 && free_pages() == before - 1);
	other = open(MOUNT, O_TMPFILE | O_RDWR, 0600);
	CHECK(other >= 0 && write(other, "more", 4) == 4 && free_pages() == before - 2);
	close(fd);
	close(other);
	CHECK(free_pages() == before);
	mount_again();
	CHECK(is_missing(MOUNT "/text") && free_pages() == before);
	unmount();
}

/* Attributes */

static void attributes_survive(void)
{
	const struct timespec times[2] = { { 5, 0 }, { 1234567890, 123456789 } };
	struct stat stat;

	begin();
	put(MOUNT "/text", "text");
	CHECK(!mkdir(MOUNT "/d", 0700));
	CHECK(!chown(MOUNT "/text", 1000, 2000) && !chmod(MOUNT "/text", 04751));
	CHECK(!chmod(MOUNT "/d", 01777) && !symlink("x", MOUNT "/link"));
	CHECK(!lchown(MOUNT "/link", 7, 8));
	CHECK(!utimensat(AT_FDCWD, MOUNT "/text", times, 0));
	mount_again();
	CHECK(!lstat(MOUNT "/text", &stat) && stat.st_mode == 0104751);
	CHECK(stat.st_uid == 1000 && stat.st_gid == 2000);
	CHECK(stat.st_mtim.tv_sec == 1234567890 && stat.st_mtim.tv_nsec == 123400000);
	CHECK(stat.st_ctim.tv_sec > 1234567890);
	CHECK(!lstat(MOUNT "/d", &stat) && stat.st_mode == 0041777);
	CHECK(!lstat(MOUNT "/link", &stat) && stat.st_uid == 7 && stat.st_gid == 8);
	unmount();
}

static void extended_attributes_survive(void)
{
	char value[8], *large = calloc(1, PAGE);
	long before;

	begin();
	put(MOUNT "/text", "text");
	before = free_pages();
	CHECK(!setxattr(MOUNT "/text", "user.one", "1", 1, 0));
	CHECK(!setxattr(MOUNT "/text", "trusted.two", "22", 2, XATTR_CREATE));
	CHECK(setxattr(MOUNT "/text", "user.one", "3", 1, XATTR_CREATE) && errno == EEXIST);
	CHECK(!setxattr(MOUNT "/text", "user.one", "333", 3, XATTR_REPLACE));
	CHECK(setxattr(MOUNT "/text", "user.large", large, 4065, 0) && errno == ENOSPC);
	CHECK(!removexattr(MOUNT "/text", "trusted.two"));
	CHECK(free_pages() == before - 1);
	CHECK(setxattr(MOUNT "/text", "system.posix_acl_access", "\2\0\0\0", 4, 0));
	mount_again();
	CHECK(getxattr(MOUNT "/text", "user.one", value, 8) == 3 && !memcmp(value, "333", 3));
	CHECK(getxattr(MOUNT "/text", "trusted.two", value, 8) < 0 && errno == ENODATA);
	CHECK(getxattr(MOUNT "/text", "user.large", value, 8) < 0 && errno == ENODATA);
	CHECK(!removexattr(MOUNT "/text", "user.one") && free_pages() == before);
	mount_again();
	CHECK(getxattr(MOUNT "/text", "user.one", value, 8) < 0 && errno == ENODATA);
	free(large);
	unmount();
}

/* Content */

static void writes_survive(void)
{
	size_t size = 3 * BLOCK + 5 * PAGE + 24;
	char *bytes;
	int fd;

	begin();
	fd = create(MOUNT "/large");
	write_words(fd, 0, size);
	close(fd);
	fd = create(MOUNT "/sparse");
	write_words(fd, 8, 16);
	write_words(fd, 5 * PAGE - 8, PAGE + 16);
	write_words(fd, BLOCK + 600 * PAGE, BLOCK);
	close(fd);
	fd = create(MOUNT "/small");
	for (size_t at = 0; at < 3 * PAGE; at += 120)
		write_words(fd, at, 120);
	close(fd);
	for (int i = 0; i < 2; i++) {
		bytes = content(MOUNT "/large", size);
		CHECK(is_filled(bytes, 0, size));
		free(bytes);
		bytes = content(MOUNT "/sparse", BLOCK + 600 * PAGE + BLOCK);
		CHECK(is_zero(bytes, 0, 8) && is_filled(bytes, 8, 24));
		CHECK(is_zero(bytes, 24, 5 * PAGE - 8));
		CHECK(is_filled(bytes, 5 * PAGE - 8, 6 * PAGE + 8));
		CHECK(is_zero(bytes, 6 * PAGE + 8, BLOCK + 600 * PAGE));
		CHECK(is_filled(bytes, BLOCK + 600 * PAGE, 2 * BLOCK + 600 * PAGE));
		free(bytes);
		bytes = content(MOUNT "/small", 12360);
		CHECK(is_filled(bytes, 0, 12360));
		free(bytes);
		mount_again();
	}
	unmount();
}

static void sizes_survive(void)
{
	struct stat stat;
	long before;
	char *bytes;
	int fd;

	begin();
	before = free_pages();
	fd = create(MOUNT "/file");
	write_words(fd, 0, 2 * BLOCK);
	CHECK(!ftruncate(fd, PAGE + 8) && !ftruncate(fd, 3 * PAGE));
	/* The block, and the table that led to both. */
	CHECK(free_pages() == before - 513);
	close(fd);
	mount_again();
	bytes = content(MOUNT "/file", 3 * PAGE);
	CHECK(is_filled(bytes, 0, PAGE + 8) && is_zero(bytes, PAGE + 8, 3 * PAGE));
	free(bytes);
	CHECK(!truncate(MOUNT "/file", 100 * BLOCK + 1));
	CHECK(!lstat(MOUNT "/file", &stat) && stat.st_size == 100 * BLOCK + 1);
	CHECK(!truncate(MOUNT "/file", 0) && free_pages() == before);
	mount_again();
	CHECK(!lstat(MOUNT "/file", &stat) && !stat.st_size && !stat.st_blocks);
	unmount();
}

static void holes_survive(void)
{
	char *bytes;
	long before;
	int fd;

	begin();
	before = free_pages();
	fd = create(MOUNT "/file");
	write_words(fd, 0, 2 * BLOCK + 8 * PAGE);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 8,
			 BLOCK + PAGE - 16));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK + PAGE,
			 2 * PAGE));
	CHECK(lseek(fd, 2 * BLOCK, SEEK_DATA) == (off_t)(2 * BLOCK));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK, BLOCK));
	CHECK(lseek(fd, 2 * BLOCK, SEEK_DATA) == -1 && errno == ENXIO);
	CHECK(lseek(fd, 0, SEEK_HOLE) == (off_t)(2 * BLOCK));
	close(fd);
	mount_again();
	bytes = content(MOUNT "/file", 2 * BLOCK + 8 * PAGE);
	CHECK(is_filled(bytes, 0, PAGE + 8) && is_zero(bytes, PAGE + 8, BLOCK + 2 * PAGE - 8));
	CHECK(is_filled(bytes, BLOCK + 2 * PAGE - 8, 2 * BLOCK));
	CHECK(is_zero(bytes, 2 * BLOCK, 2 * BLOCK + 8 * PAGE));
	free(bytes);
	CHECK(!unlink(MOUNT "/file") && free_pages() == before);
	unmount();
}

static void allocated_pages_survive(void)
{
	struct stat stat;
	long before;
	char *bytes;
	int fd;

	begin();
	before = free_pages();
	fd = create(MOUNT "/file");
	CHECK(!fallocate(fd, 0, PAGE, BLOCK));
	CHECK(!fstat(fd, &stat) && stat.st_size == BLOCK + PAGE && stat.st_blocks >= 4096);
	CHECK(!fallocate(fd, FALLOC_FL_KEEP_SIZE, 2 * BLOCK, BLOCK));
	CHECK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE) && errno == EOPNOTSUPP);
	CHECK(free_pages() < before - 1024);
	close(fd);
	mount_again();
	/* What is beyond the end has gone. */
	CHECK(free_pages() > before - 1024);
	bytes = content(MOUNT "/file", BLOCK + PAGE);
	CHECK(is_zero(bytes, 0, BLOCK + PAGE));
	free(bytes);
	unmount();
}

/* Mappings */

static void stores_through_mappings_survive(void)
{
	size_t size = 3 * BLOCK;
	char *memory, *other, *bytes;
	int fd, status = 1;
	pid_t pid;

	begin();
	fd = create(MOUNT "/file");
	CHECK(!ftruncate(fd, size));
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	other = map(fd, size, PROT_READ);
	/* Pages of zeros are replaced in all mappings. */
	CHECK(is_zero(memory, 0, PAGE) && is_zero(other, BLOCK, BLOCK + PAGE));
	/* A store faults forever if they are not. */
	alarm(120);
	fill(memory, 8, BLOCK + PAGE);
	alarm(0);
	pid = fork();
	if (!pid) {
		fill(memory, BLOCK + PAGE, 2 * BLOCK + PAGE);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(is_filled(other, 8, 2 * BLOCK + PAGE));
	CHECK(!msync(memory, size, MS_SYNC) && !fsync(fd));
	write_words(fd, 2 * BLOCK + PAGE, PAGE);
	CHECK(is_filled(memory, 2 * BLOCK + PAGE, 2 * BLOCK + 2 * PAGE));
	CHECK(is_filled(other, 2 * BLOCK + PAGE, 2 * BLOCK + 2 * PAGE));
	munmap(memory, size);
	munmap(other, size);
	close(fd);
	mount_again();
	bytes = content(MOUNT "/file", size);
	CHECK(!load(bytes) && is_filled(bytes, 8, 2 * BLOCK + 2 * PAGE));
	CHECK(is_zero(bytes, 2 * BLOCK + 2 * PAGE, size));
	free(bytes);
	unmount();
}

/* What is counted is written back, until no mapping can write it any more. */
static void mappings_are_written_back(void)
{
	long before;
	char *memory;
	int fd;

	begin();
	fd = create(MOUNT "/file");
	CHECK(!ftruncate(fd, 2 * BLOCK));
	memory = map(fd, 2 * BLOCK, PROT_READ | PROT_WRITE);
	store(memory, 1);
	before = count("stats/written_back");
	CHECK(!fsync(fd) && count("stats/written_back") == before + (long)BLOCK);
	store(memory, 2);
	CHECK(!fsync(fd) && count("stats/written_back") == before + 2 * (long)BLOCK);
	munmap(memory, 2 * BLOCK);
	CHECK(!fsync(fd) && count("stats/written_back") == before + 3 * (long)BLOCK);
	CHECK(!fsync(fd) && count("stats/written_back") == before + 3 * (long)BLOCK);
	memory = map(fd, 2 * BLOCK, PROT_READ | PROT_WRITE);
	store(memory + BLOCK, 3);
	sync();
	CHECK(count("stats/written_back") == before + 4 * (long)BLOCK);
	munmap(memory, 2 * BLOCK);
	close(fd);
	CHECK(!umount(MOUNT) && count("stats/written_back") == before + 5 * (long)BLOCK);
}

static void blocks_are_mapped_by_one_fault(void)
{
	long before, added;
	char *memory;
	int fd;

	begin();
	fd = create(MOUNT "/file");
	CHECK(!ftruncate(fd, 2 * BLOCK));
	memory = map(fd, 2 * BLOCK, PROT_READ | PROT_WRITE);
	added = count("stats/added_large");
	store(memory, 1);
	CHECK(count("stats/added_large") == added + 1);
	before = free_pages();
	fill(memory, 0, BLOCK);
	CHECK(free_pages() == before);
	munmap(memory, 2 * BLOCK);
	close(fd);
	unmount();
}

static void removed_pages_leave_mappings(void)
{
	uint64_t word;
	char *memory;
	int fd;

	signal(SIGBUS, jump);
	begin();
	fd = create(MOUNT "/file");
	write_words(fd, 0, 2 * BLOCK);
	memory = map(fd, 2 * BLOCK, PROT_READ | PROT_WRITE);
	CHECK(is_filled(memory, 0, 2 * BLOCK));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK));
	CHECK(is_zero(memory, 0, BLOCK));
	store(memory + PAGE, 5);
	CHECK(!ftruncate(fd, 2 * PAGE) && load(memory + PAGE) == 5);
	CHECK(!try_to_load(memory + 2 * PAGE, &word) && !try_to_store(memory + BLOCK, 1));
	CHECK(!ftruncate(fd, 2 * BLOCK) && is_zero(memory, 2 * PAGE, 2 * BLOCK));
	munmap(memory, 2 * BLOCK);
	close(fd);
	signal(SIGBUS, SIG_DFL);
	unmount();
}

/* What a pipe holds does not change when its file ends and others fill the range. */
static void held_pages_are_not_used_again(void)
{
	struct iovec part = { .iov_len = 64 };
	char *memory, copy[64], *page = calloc(1, PAGE);
	long before;
	int fd, ends[2];

	begin();
	before = free_pages();
	fd = create(MOUNT "/file");
	write_words(fd, 0, PAGE);
	memory = map(fd, PAGE, PROT_READ);
	part.iov_base = memory;
	CHECK(!pipe(ends) && vmsplice(ends[1], &part, 1, 0) == 64);
	munmap(memory, PAGE);
	close(fd);
	CHECK(!unlink(MOUNT "/file") && free_pages() == before);
	fd = create(MOUNT "/other");
	while (write(fd, page, PAGE) == (ssize_t)PAGE)
		;
	CHECK(errno == ENOSPC && free_pages() < 8);
	CHECK(read(ends[0], copy, 64) == 64 && is_filled(copy, 0, 64));
	close(ends[0]);
	close(ends[1]);
	close(fd);
	free(page);
	unmount();
}

/* Seals */

static void seals_survive(void)
{
	size_t size = 2 * BLOCK;
	char *memory;
	int fd;

	begin();
	fd = create(MOUNT "/file");
	write_words(fd, 0, size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno == EINVAL);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) && fcntl(fd, F_GET_SEALS) == F_SEAL_GROW);
	CHECK(ftruncate(fd, size + 1) && errno == EPERM);
	CHECK(pwrite(fd, "x", 1, size) < 0 && errno == EPERM);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	CHECK(fcntl(fd, F_GET_SEALS) == F_SEAL_GROW);
	munmap(memory, size);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
	CHECK(mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, 0) && errno == EPERM);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) &&
	      errno == EPERM);
	close(fd);
	for (int i = 0; i < 2; i++) {
		long attached = count("stats/attached_pmd");

		fd = open(MOUNT "/file", O_RDWR);
		CHECK(fcntl(fd, F_GET_SEALS) == ALL);
		CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
		memory = map(fd, size, PROT_READ);
		CHECK(is_filled(memory, 0, size));
		CHECK(count("stats/attached_pmd") == attached + 2);
		munmap(memory, size);
		close(fd);
		mount_again();
	}
	CHECK(!chmod(MOUNT "/file", 0600) && !rename(MOUNT "/file", MOUNT "/other"));
	CHECK(!unlink(MOUNT "/other"));
	unmount();
}

static void held_pages_delay_seals(void)
{
	struct iovec part = { .iov_len = 64 };
	char *memory;
	int fd, ends[2];

	begin();
	fd = create(MOUNT "/file");
	write_words(fd, 0, PAGE);
	memory = map(fd, PAGE, PROT_READ | PROT_WRITE);
	part.iov_base = memory;
	CHECK(!pipe(ends) && vmsplice(ends[1], &part, 1, 0) == 64);
	munmap(memory, PAGE);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	close(ends[0]);
	close(ends[1]);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	close(fd);
	unmount();
}

/* Space */

static void a_full_range_loses_nothing(void)
{
	char path[64], *page = calloc(1, PAGE);
	uint64_t word;
	char *memory;
	long before;
	int fd, i, full;

	signal(SIGBUS, jump);
	begin();
	before = free_pages();
	put(MOUNT "/first", "first");
	full = create(MOUNT "/full");
	while (write(full, page, PAGE) == (ssize_t)PAGE)
		;
	CHECK(errno == ENOSPC);
	for (i = 0; i < 2000; i++) {
		snprintf(path, sizeof(path), MOUNT "/n-%d", i);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	CHECK(i < 2000 && errno == ENOSPC && is_missing(path) && free_pages() < 2);
	CHECK(symlink("target", MOUNT "/link") && errno == ENOSPC);
	CHECK(setxattr(MOUNT "/first", "user.a", "b", 1, 0) && errno == ENOSPC);
	fd = open(MOUNT "/n-0", O_RDWR);
	CHECK(!ftruncate(fd, PAGE));
	memory = map(fd, PAGE, PROT_READ | PROT_WRITE);
	CHECK(try_to_load(memory, &word) && !word && !try_to_store(memory, 1));
	munmap(memory, PAGE);
	close(fd);
	close(full);
	mount_again();
	CHECK(has(MOUNT "/first", "first") && is_missing(path) && is_missing(MOUNT "/link"));
	while (i--) {
		snprintf(path, sizeof(path), MOUNT "/n-%d", i);
		CHECK(!unlink(path));
	}
	CHECK(!unlink(MOUNT "/full") && !unlink(MOUNT "/first"));
	/* Pages of slots stay. */
	CHECK(free_pages() > before - 16);
	signal(SIGBUS, SIG_DFL);
	free(page);
	unmount();
}

/* Recovery */

/* All that a crash can leave. */
static void make_leftovers(void)
{
	make_image();
	/* The text was renamed; its old name is there. */
	image_add_name(6, 4, 1, "renamed");
	image_word(image_name(6) + NAME_FROM, 2 + 1);
	image_word(image_name(6) + NAME_INODE, 4 | IMAGE_PENDING);
	/* An inode without a name, with pages that it does not have. */
	image_add_inode(7, 0100600, 5, IMAGE_ROOT(FIRST, 0, 1, 0));
	/* A page beyond the end, which belongs to the sealed morsel. */
	image_add_inode(8, 0100600, 5, IMAGE_ROOT(RENAMED, 1, 0, 0));
	image_word(RENAMED * PAGE + 8, FIRST | IMAGE_LEAF);
	image_add_name(7, 8, 1, "cut");
	write_image();
}

static bool range_is(const char *bytes)
{
	char *found = malloc(IMAGE_SIZE);
	int fd = open(DEVICE, O_RDONLY);
	bool is_same = pread(fd, found, IMAGE_SIZE, 0) == (ssize_t)IMAGE_SIZE &&
		       !memcmp(found, bytes, IMAGE_SIZE);

	close(fd);
	free(found);
	return is_same;
}

static void what_a_crash_left_is_ended(void)
{
	long recovered = count("stats/recovered");
	char *bytes;

	make_leftovers();
	must(!mount_for_writing(), "mount for writing");
	CHECK(count("stats/recovered") == recovered + 3);
	CHECK(is_missing(MOUNT "/text") && has(MOUNT "/renamed", "some text"));
	bytes = content(MOUNT "/d/morsel", SIZE);
	for (size_t at = 0; at + 8 <= SIZE; at += PAGE)
		CHECK(load(bytes + at) == expected(at));
	free(bytes);
	unmount();
	/* What the recovery has to store, and nothing else. */
	image_word(image_name(2) + NAME_INODE, 0);
	image_word(image_name(6) + NAME_INODE, 4);
	image_word(image_inode(7) + INODE_MODE, 0);
	image_word(RENAMED * PAGE + 8, 0);
	CHECK(range_is(image));
	must(!mount_for_writing(), "mount for writing");
	CHECK(count("stats/recovered") == recovered + 3);
	unmount();
	CHECK(range_is(image));
}

/* With damage, nothing is changed. */
static void damage_is_not_changed(void)
{
	make_leftovers();
	image[image_inode(8) + INODE_SIZE] ^= 1;
	write_image();
	CHECK(mount_for_writing() && errno == EUCLEAN);
	CHECK(range_is(image));
}

const struct test write_tests[] = {
	TEST(mounts_change_between_reading_and_writing),
	TEST(new_names_survive),
	TEST(removed_names_stay_removed),
	TEST(renames_survive),
	TEST(many_names_survive),
	TEST(files_without_a_name_end_with_their_last_user),
	TEST(attributes_survive),
	TEST(extended_attributes_survive),
	TEST(writes_survive),
	TEST(sizes_survive),
	TEST(holes_survive),
	TEST(allocated_pages_survive),
	TEST(stores_through_mappings_survive),
	TEST(mappings_are_written_back),
	TEST(blocks_are_mapped_by_one_fault),
	TEST(removed_pages_leave_mappings),
	TEST(held_pages_are_not_used_again),
	TEST(seals_survive),
	TEST(held_pages_delay_seals),
	TEST(a_full_range_loses_nothing),
	TEST(what_a_crash_left_is_ended),
	TEST(damage_is_not_changed),
	{}
};
