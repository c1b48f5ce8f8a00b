// SPDX-License-Identifier: GPL-2.0-only
/* Tests of a morsel as a file: size, holes, content, names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "morsel.h"

static void it_is_a_file(void)
{
	int fd = open(MOUNT "/a", O_RDWR | O_CREAT | O_EXCL, 0640);
	char text[16] = "";
	struct statfs fs;
	struct stat stat;

	CHECK(fd >= 0);
	CHECK(write(fd, "hello", 5) == 5);
	CHECK(pwrite(fd, "end", 3, 3 * MIB) == 3);
	CHECK(pread(fd, text, 5, 0) == 5 && !strcmp(text, "hello"));
	CHECK(!fstat(fd, &stat) && stat.st_size == 3 * MIB + 3);
	CHECK((stat.st_mode & 07777) == 0640);
	CHECK(pread(fd, text, 8, 3 * MIB - 4) == 7 && !memcmp(text, "\0\0\0\0end", 7));
	CHECK(!statfs(MOUNT, &fs) && fs.f_type == 0x4d52534c);
	CHECK(!mkdir(MOUNT "/d", 0700) && !rename(MOUNT "/a", MOUNT "/d/b"));
	CHECK(!symlink("d/b", MOUNT "/l") && !access(MOUNT "/l", R_OK));
	CHECK(rmdir(MOUNT "/d") && errno == ENOTEMPTY);
	CHECK(!unlink(MOUNT "/d/b") && !rmdir(MOUNT "/d") && !unlink(MOUNT "/l"));
	close(fd);
}

/* The line of /proc/self/maps for an address. */
static bool maps_say(const void *memory, const struct stat *stat)
{
	FILE *file = fopen("/proc/self/maps", "r");
	unsigned int major_number, minor_number;
	unsigned long begin, end, inode;
	bool found = false;
	char text[512];

	while (file && !found && fgets(text, sizeof(text), file))
		found = sscanf(text, "%lx-%lx %*s %*x %x:%x %lu", &begin, &end, &major_number,
			       &minor_number, &inode) == 5 &&
			begin == (unsigned long)memory && inode == stat->st_ino &&
			major_number == major(stat->st_dev) && minor_number == minor(stat->st_dev);
	if (file)
		fclose(file);
	return found;
}

/* File operations of programs that keep models in such files. */
static void it_does_what_stores_need(void)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_nsec = UTIME_OMIT } };
	int fd = make(3 * PAGE), again, dir = open(MOUNT, O_RDONLY | O_DIRECTORY);
	char path[64], *memory;
	struct stat stat;

	CHECK(fcntl(fd, F_GET_SEALS) == 0);
	CHECK(!fallocate(fd, 0, 0, 3 * PAGE) && !fcntl(fd, F_ADD_SEALS, ALL));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(!linkat(AT_FDCWD, path, AT_FDCWD, MOUNT "/named", AT_SYMLINK_FOLLOW));
	close(fd);
	again = open(MOUNT "/named", O_RDONLY);
	CHECK(again >= 0 && fcntl(again, F_GET_SEALS) == ALL);
	CHECK(fcntl(again, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	CHECK(!futimens(again, old) && !fstat(again, &stat) && stat.st_atime == 1000);
	CHECK(stat.st_blksize == 2 * MIB && stat.st_blocks == 3 * 8);
	memory = map(again, 3 * PAGE, PROT_READ);
	CHECK(memory != MAP_FAILED && maps_say(memory, &stat));
	CHECK(!fstat(again, &stat) && stat.st_atime > 1000);
	munmap(memory, 3 * PAGE);
	CHECK(!fcntl(again, F_SETLEASE, F_RDLCK) && fcntl(again, F_GETLEASE) == F_RDLCK);
	CHECK(!fcntl(again, F_SETLEASE, F_UNLCK));
	CHECK(!flock(again, LOCK_EX) && !flock(dir, LOCK_EX | LOCK_NB));
	CHECK(!unlink(MOUNT "/named"));
	close(again);
	close(dir);
}

static void mapping_and_file_are_one(void)
{
	size_t size = 5 * MIB + 3 * PAGE;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	char text[8];

	CHECK(memory != MAP_FAILED);
	memory[0] = 'a';
	memory[2 * MIB + 5] = 'b';
	memory[size - 1] = 'c';
	CHECK(pread(fd, text, 1, 0) == 1 && *text == 'a');
	CHECK(pread(fd, text, 1, 2 * MIB + 5) == 1 && *text == 'b');
	CHECK(pread(fd, text, 1, size - 1) == 1 && *text == 'c');
	CHECK(pwrite(fd, "xyz", 3, 4 * MIB) == 3 && !memcmp(memory + 4 * MIB, "xyz", 3));
	munmap(memory, size);
	close(fd);
}

static void a_large_page_where_one_fits(void)
{
	long large = count("stats/filled_large"), small = count("stats/filled_small");
	int fd = make(4 * MIB + PAGE);

	CHECK(!fallocate(fd, 0, 0, 4 * MIB + PAGE));
	CHECK(count("stats/filled_large") - large +
	      (count("stats/filled_small") - small) / 512 == 2);
	CHECK(count("stats/filled_small") - small >= 1);
	close(fd);
}

/* As cp does it, which does not tell the file system the size in advance. */
static void a_file_that_grows_has_large_pages(void)
{
	enum { PART = 128 * 1024 };
	size_t size = 5 * MIB + MIB / 2, end = 6 * MIB;
	long blocks = count("stats/filled_large") + count("stats/no_large");
	long small = count("stats/filled_small"), large = count("stats/filled_large");
	int fd = make(0);
	char *content = malloc(size), *memory;
	struct stat stat;

	memset(content, 'x', size);
	for (size_t at = 0; at < size; at += PART)
		CHECK(write(fd, content + at, PART) == PART);
	CHECK(!fstat(fd, &stat) && stat.st_size == (off_t)size);
	/* The file might have ended after the first 2 MiB. */
	CHECK(count("stats/filled_large") + count("stats/no_large") - blocks == 2);
	if (count("stats/filled_large") - large == 2)
		CHECK(count("stats/filled_small") - small == 512);
	CHECK(pread(fd, content, 2, size - 1) == 1);

	/* Memory beyond the end is zero, also after the file grows. */
	memory = map(fd, end, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && memory[size - 1] == 'x');
	if (count("stats/filled_large") - large == 2) {
		CHECK(all_zero(memory + size, end - size));
		memset(memory + size, 'y', end - size);
	}
	CHECK(pwrite(fd, "z", 1, end - 1000) == 1);
	CHECK(all_zero(memory + size, end - 1000 - size) && memory[end - 1000] == 'z');
	CHECK(!ftruncate(fd, end) && all_zero(memory + end - 999, 999));
	CHECK(!ftruncate(fd, size - 10) && !ftruncate(fd, end));
	CHECK(memory[size - 11] == 'x' && all_zero(memory + size - 10, end - size + 10));
	munmap(memory, end);
	free(content);
	close(fd);
}

static void behind_the_end_is_sigbus(void)
{
	int fd = make(PAGE);
	char *memory = map(fd, 4 * MIB, PROT_READ);

	CHECK(memory != MAP_FAILED);
	CHECK(!child_status(touch_for_reading, memory));
	CHECK(dies_by(child_status(touch_for_reading, memory + 2 * PAGE), SIGBUS));
	CHECK(dies_by(child_status(touch_for_reading, memory + 2 * MIB), SIGBUS));
	munmap(memory, 4 * MIB);
	close(fd);
}

static void a_smaller_size_is_felt_everywhere(void)
{
	size_t size = 8 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(!ftruncate(fd, 2 * MIB));
	CHECK(has_words(memory, 0, 2 * MIB, PAGE));
	CHECK(!ftruncate(fd, size));
	for (size_t at = 2 * MIB; at < size; at += PAGE)
		CHECK(!load(memory + at));
	memset(memory + 2 * MIB, 0xff, 6 * MIB);
	CHECK(!ftruncate(fd, 5 * MIB + 100));
	CHECK(!ftruncate(fd, size));
	CHECK(memory[5 * MIB + 99] == (char)0xff);
	for (size_t at = 5 * MIB + 100; at < size; at++)
		CHECK(!memory[at]);
	munmap(memory, size);
	close(fd);
}

static void holes_are_zeros(void)
{
	size_t size = 8 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	long pages = count("pages");

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB + 10, 4 * MIB));
	CHECK(count("pages") < pages);
	CHECK(*(uint64_t *)(memory + MIB) == word_of(MIB));
	for (size_t at = MIB + PAGE; at < 5 * MIB; at += PAGE)
		CHECK(!load(memory + at));
	CHECK(has_words(memory + 5 * MIB + PAGE, 5 * MIB + PAGE, 3 * MIB - PAGE, PAGE));
	munmap(memory, size);
	close(fd);
}

static void *punch_all(void *argument)
{
	int fd = *(int *)argument;

	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * MIB) ?
	       (void *)(long)errno : NULL;
}

/* A fault waits for one step of a removal, not for all of it. */
static void long_work_has_pauses(void)
{
	long closed = count("stats/closed");
	pthread_t thread;
	char *memory;
	void *err;
	int fd;

	if (!can_stop())
		return;
	fd = make_filled(4 * MIB, PAGE);
	memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, 4 * MIB, PAGE));
	CHECK(write_text(STOP_AT, "in_remove"));
	pthread_create(&thread, NULL, punch_all, &fd);
	wait_for_stopped();
	usleep(50000);
	CHECK(write_text(STOP_AT, "nowhere"));
	pthread_join(thread, &err);
	CHECK(!err && !load(memory) && !load(memory + 4 * MIB - PAGE));
	CHECK(count("stats/closed") - closed >= 2);
	munmap(memory, 4 * MIB);
	close(fd);
}

/* Memory allocated beyond the end, and written through a mapping. */
static void what_comes_to_a_file_is_zero(void)
{
	int fd = make(PAGE + 10);
	char *memory = map(fd, 8 * MIB, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	CHECK(!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * MIB));
	memset(memory, 0xff, 8 * MIB);
	CHECK(!ftruncate(fd, 8 * MIB));
	CHECK(memory[PAGE + 9] == (char)0xff);
	for (size_t at = PAGE + 10; at < 8 * MIB; at += at < 3 * PAGE ? 1 : 64)
		CHECK(!memory[at]);
	munmap(memory, 8 * MIB);
	close(fd);
}

/* Programs that open every file so: databases. */
static void it_opens_with_o_direct(void)
{
	static char buffer[2 * PAGE];
	int fd = open(MOUNT "/direct", O_RDWR | O_CREAT | O_DIRECT, 0600), nameless;

	CHECK(fd >= 0 && fcntl(fd, F_GETFL) & O_DIRECT);
	memset(buffer, 'a', PAGE);
	CHECK(pwrite(fd, buffer, PAGE, PAGE) == (ssize_t)PAGE);
	/* Alignment is no condition, and the end of the file is exact. */
	CHECK(pwrite(fd, "end", 3, 2 * PAGE) == 3);
	CHECK(pread(fd, buffer, sizeof(buffer), PAGE) == (ssize_t)PAGE + 3);
	CHECK(buffer[0] == 'a' && buffer[PAGE - 1] == 'a' && !memcmp(buffer + PAGE, "end", 3));
	CHECK(!fcntl(fd, F_SETFL, 0) && !fcntl(fd, F_SETFL, O_DIRECT));
	nameless = open(MOUNT, O_RDWR | O_TMPFILE | O_DIRECT, 0600);
	CHECK(nameless >= 0 && pwrite(nameless, buffer, PAGE, 0) == (ssize_t)PAGE);
	close(nameless);
	CHECK(!unlink(MOUNT "/direct"));
	close(fd);
}

static void it_is_read_past_the_page_cache(void)
{
	size_t size = 4 * MIB;
	int fd = make(size), disk = open("/data/morsel-direct", O_RDWR | O_CREAT | O_DIRECT, 0600);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	if (disk < 0) {
		munmap(memory, size);
		close(fd);
		lacks = "no file system on a disk at /data";
		return;
	}
	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	CHECK(pwrite(disk, memory, size, 0) == (ssize_t)size);
	memset(memory, 0, size);
	CHECK(pread(disk, memory, size, 0) == (ssize_t)size);
	CHECK(has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	memory = map(fd, size, PROT_READ);
	CHECK(pwrite(disk, memory, size, 0) == (ssize_t)size);
	/* The kernel does not write on behalf of a task what the task may not write. */
	CHECK(pread(disk, memory, PAGE, 0) < 0 && errno == EFAULT);
	CHECK(has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	close(disk);
	unlink("/data/morsel-direct");
	close(fd);
}

const struct test morsel_file_tests[] = {
	TEST(it_is_a_file),
	TEST(it_does_what_stores_need),
	TEST(mapping_and_file_are_one),
	TEST(a_large_page_where_one_fits),
	TEST(a_file_that_grows_has_large_pages),
	TEST(behind_the_end_is_sigbus),
	TEST(a_smaller_size_is_felt_everywhere),
	TEST(holes_are_zeros),
	TEST(long_work_has_pauses),
	TEST(what_comes_to_a_file_is_zero),
	TEST(it_opens_with_o_direct),
	TEST(it_is_read_past_the_page_cache),
	{}
};
