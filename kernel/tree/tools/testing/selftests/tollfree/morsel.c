// SPDX-License-Identifier: GPL-2.0-only
/*
 * Morsels: tests of files of morselfs, and of the isolation of processes that have the
 * same tables attached: operations on one mapping must not affect the others.
 *
 * Each test creates a new morsel in its own mount. Most of them check the content last,
 * from another process. Arguments name the tests to run, all if there are none.
 */
#define _GNU_SOURCE
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "morsel_test.h"

#define GIB	0x40000000UL
#define GROUP	"/tmp/morsel-test-cgroup"
#define MOUNT	"/tmp/morsel"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE	101
#endif

/* Whether the current test has failed, and why it could not run. */
static bool failed;
static const char *lacks;

static bool check(bool is_true, const char *text, int line)
{
	if (!is_true) {
		/* Report only the first failure: the others follow from it. */
		if (!failed)
			ksft_print_msg("line %d: %s (%s)\n", line, text, strerror(errno));
		failed = true;
	}
	return is_true;
}

#define CHECK(condition)	check(condition, #condition, __LINE__)

/* Content of a page. */
static uint64_t word_of(size_t at)
{
	return at * 2654435761UL + 1;
}

static void write_words(char *memory, size_t length, size_t step)
{
	for (size_t at = 0; at < length; at += step)
		store(memory + at, word_of(at));
}

static bool has_words(const char *memory, size_t offset, size_t length,
		      size_t step)
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

static const char *mounted = MOUNT;

static int make(size_t size)
{
	int fd = open(mounted, O_RDWR | O_TMPFILE, 0600);

	if (fd < 0 || ftruncate(fd, size))
		ksft_exit_fail_msg("a morsel: %s\n", strerror(errno));
	return fd;
}

static char *map(int fd, size_t size, int protection)
{
	return mmap(NULL, size, protection, MAP_SHARED, fd, 0);
}

/* A morsel of the given size that contains the words, one per @step. */
static int make_filled(size_t size, size_t step)
{
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	if (memory == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	write_words(memory, size, step);
	munmap(memory, size);
	return fd;
}

static int make_sealed(size_t size, size_t step)
{
	int fd = make_filled(size, step);

	if (fcntl(fd, F_ADD_SEALS, ALL))
		ksft_exit_fail_msg("F_ADD_SEALS: %s\n", strerror(errno));
	return fd;
}

/* Whether another process sees the words, by its own mapping and by read(). */
static bool others_see(int fd, size_t size, size_t step)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		char *memory = map(fd, size, PROT_READ);
		uint64_t word;
		bool same = memory != MAP_FAILED && has_words(memory, 0, size, step);

		for (size_t at = 0; same && at < size; at += step)
			same = pread(fd, &word, 8, at) == 8 && word == word_of(at);
		_exit(same ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Exit of a child that calls this. */
static int child_status(void (*call)(char *), char *argument)
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

static void touch_for_reading(char *at)
{
	load(at);
}

/* The attached entries decide whether it may, and not only the mapping. */
static void touch_for_writing(char *at)
{
	load(at);
	store(at, 1);
}

static bool dies_by(int status, int signal)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

/* Tests */

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

static void mapping_takes_one_store_a_gib(void)
{
	size_t size = 2 * GIB + 6 * MIB + 3 * PAGE;
	int fd = make_sealed(size, 512 * MIB);
	long puds = count("stats/attached_pud"), pmds = count("stats/attached_pmd");
	long faults = count("stats/faults");
	struct rusage before, after;
	char *memory;

	getrusage(RUSAGE_SELF, &before);
	memory = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	CHECK(memory != MAP_FAILED);
	CHECK(!((unsigned long)memory & (GIB - 1)));
	CHECK(has_words(memory, 0, size, 512 * MIB));
	getrusage(RUSAGE_SELF, &after);
	CHECK(count("stats/attached_pud") - puds == 2);
	CHECK(count("stats/attached_pmd") - pmds == 1);
	CHECK(count("stats/faults") == faults);
	CHECK(after.ru_minflt - before.ru_minflt < 4);
	CHECK(!munmap(memory, size));
	close(fd);
}

/* The first fault attaches everything that exists. */
static void an_open_one_takes_one_fault(void)
{
	size_t size = 6 * MIB;
	int fd = make(size);
	long pmds = count("stats/attached_pmd"), faults = count("stats/faults");
	char *memory;

	CHECK(!fallocate(fd, 0, 0, size));
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && count("stats/attached_pmd") == pmds);
	write_words(memory, size, PAGE);
	CHECK(count("stats/faults") - faults == 1);
	CHECK(count("stats/attached_pmd") - pmds == 3);
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
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

static bool all_zero(const char *memory, size_t length)
{
	for (size_t at = 0; at < length; at++)
		if (memory[at])
			return false;
	return true;
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

static void a_sealed_one_stays(void)
{
	int fd = make_sealed(4 * MIB, PAGE);
	char *memory = map(fd, 4 * MIB, PROT_READ);

	CHECK(memory != MAP_FAILED);
	CHECK(fcntl(fd, F_GET_SEALS) == ALL);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, PAGE) && errno == EPERM);
	CHECK(ftruncate(fd, 8 * MIB) && errno == EPERM);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) &&
	      errno == EPERM);
	CHECK(map(fd, 4 * MIB, PROT_READ | PROT_WRITE) == MAP_FAILED && errno == EPERM);
	CHECK(mprotect(memory, 4 * MIB, PROT_READ | PROT_WRITE) && errno == EACCES);
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	CHECK(others_see(fd, 4 * MIB, PAGE));
	munmap(memory, 4 * MIB);
	close(fd);
}

static void no_seal_while_it_can_be_written(void)
{
	int fd = make_filled(4 * MIB, PAGE), pair[2];
	char *memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	struct iovec piece = { memory, PAGE };

	CHECK(memory != MAP_FAILED);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	CHECK(!pipe(pair) && vmsplice(pair[1], &piece, 1, 0) == PAGE);
	CHECK(!munmap(memory, 4 * MIB));
	/* The pipe holds a page. */
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	close(pair[0]);
	close(pair[1]);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	/* Sealing the content seals the size, too. */
	CHECK(fcntl(fd, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW));
	CHECK(others_see(fd, 4 * MIB, PAGE));
	close(fd);
}

static void one_address_space_writes(void)
{
	int fd = make(4 * MIB), status;
	char *memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	char *again = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	pid_t pid;

	CHECK(memory != MAP_FAILED && again != MAP_FAILED);
	pid = fork();
	if (!pid) {
		char *mine = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);

		_exit(mine == MAP_FAILED && errno == EBUSY ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	/* The child does not inherit it. */
	CHECK(dies_by(child_status(touch_for_reading, memory), SIGSEGV));
	/* Other processes may read meanwhile, but not write. */
	memory[0] = 1;
	pid = fork();
	if (!pid) {
		char *mine = map(fd, 4 * MIB, PROT_READ);

		_exit(mine != MAP_FAILED && *mine == 1 &&
		      mprotect(mine, 4 * MIB, PROT_READ | PROT_WRITE) && errno == EBUSY ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	munmap(memory, 4 * MIB);
	munmap(again, 4 * MIB);
	pid = fork();
	if (!pid) {
		char *mine = map(fd, 4 * MIB, PROT_READ);

		_exit(mprotect(mine, 4 * MIB, PROT_READ | PROT_WRITE) ||
		      !dies_by(child_status(touch_for_reading, mine), SIGBUS) ||
		      map(fd, 4 * MIB, PROT_READ | PROT_WRITE) == MAP_FAILED);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(fd);
}

#define STOP_AT	SYSFS "stop_at"

static bool can_stop(void)
{
	if (!access(STOP_AT, W_OK))
		return true;
	lacks = "no places to stop at: not the debug kernel";
	return false;
}

/* Wait until a task was stopped. */
static void wait_for_stopped(void)
{
	for (int i = 0; i < 5000 && !count("stopped"); i++)
		usleep(1000);
	CHECK(count("stopped") == 1);
}

static void *seal(void *argument)
{
	int fd = *(int *)argument;

	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) ? (void *)(long)errno : NULL;
}

/* A pin that is taken after the seal has checked for pins. */
static void a_late_pin_is_seen(void)
{
	int fd, pair[2];
	pthread_t thread;
	struct iovec piece;
	char *memory;
	void *err;

	if (!can_stop())
		return;
	fd = make_filled(4 * MIB, PAGE);
	memory = mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE, fd, 0);
	piece = (struct iovec){ memory, PAGE };
	CHECK(memory != MAP_FAILED && !pipe(pair) && write_text(STOP_AT, "before_close"));
	pthread_create(&thread, NULL, seal, &fd);
	wait_for_stopped();
	CHECK(vmsplice(pair[1], &piece, 1, 0) == PAGE);
	CHECK(write_text(STOP_AT, "nowhere"));
	pthread_join(thread, &err);
	CHECK((long)err == EBUSY && fcntl(fd, F_GET_SEALS) == 0);
	close(pair[0]);
	close(pair[1]);
	CHECK(has_words(memory, 0, 4 * MIB, PAGE));
	/* A mapping of single pages is not a pin. */
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(has_words(memory, 0, 4 * MIB, PAGE) && others_see(fd, 4 * MIB, PAGE));
	munmap(memory, 4 * MIB);
	close(fd);
}

/* A neighbour in the same page table, and the following mapping. */
static void neighbours_come_and_go(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *area = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *middle = (char *)(((unsigned long)area + 6 * MIB) & ~(2 * MIB - 1));
	char *memory;

	CHECK(area != MAP_FAILED);
	memory = mmap(middle, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory == middle);
	CHECK(has_words(memory, 0, size, PAGE));
	for (int i = 0; i < 20; i++) {
		char *below = mmap(middle - MIB, MIB, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		char *above = mmap(middle + size, MIB, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		memset(below, i, MIB);
		memset(above, i, MIB);
		munmap(below, MIB);
		munmap(above, MIB);
		CHECK(has_words(memory, 0, size, PAGE));
	}
	munmap(area, 16 * MIB);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void a_part_may_be_unmapped(void)
{
	size_t size = 8 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	long converted = count("stats/converted");

	CHECK(memory != MAP_FAILED);
	CHECK(!munmap(memory + 3 * MIB, MIB));
	CHECK(count("stats/converted") > converted);
	CHECK(has_words(memory, 0, 3 * MIB, PAGE));
	CHECK(has_words(memory + 4 * MIB, 4 * MIB, 4 * MIB, PAGE));
	CHECK(dies_by(child_status(touch_for_reading, memory + 3 * MIB), SIGSEGV));
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void rights_may_change(void)
{
	size_t size = 4 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(!mprotect(memory, size, PROT_READ));
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	CHECK(!mprotect(memory, size, PROT_READ | PROT_WRITE));
	write_words(memory, size, PAGE);
	CHECK(!mprotect(memory + MIB, MIB, PROT_NONE));
	CHECK(has_words(memory + 2 * MIB, 2 * MIB, 2 * MIB, PAGE));
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

/* Private mappings are attached as well, until they become writable. */
static void private_ones_are_copied_when_written(void)
{
	size_t size = 4 * MIB + 3 * PAGE, last = size - PAGE;
	int fd = make_sealed(size, PAGE), status;
	long attached = count("stats/attached_pmd");
	char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0), *moved;
	pid_t pid;

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(count("stats/attached_pmd") - attached == 2);
	if (!CHECK(!mprotect(memory, size, PROT_READ | PROT_WRITE)))
		return;
	CHECK(has_words(memory, 0, size, PAGE));
	store(memory, 1);
	store(memory + 2 * MIB + PAGE, 2);
	store(memory + last, 3);
	CHECK(load(memory) == 1 && load(memory + 2 * MIB + PAGE) == 2 && load(memory + last) == 3);
	CHECK(has_words(memory + PAGE, PAGE, 2 * MIB, PAGE) && others_see(fd, size, PAGE));
	/* A child has its own copies. */
	pid = fork();
	if (!pid) {
		bool same = load(memory) == 1;

		store(memory, 9);
		_exit(same && load(memory + last) == 3 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status && load(memory) == 1);
	moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		       mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	CHECK(moved != MAP_FAILED && load(moved) == 1 && load(moved + last) == 3);
	CHECK(has_words(moved + PAGE, PAGE, 2 * MIB, PAGE));
	/* Without the copies it is the file's content again. */
	CHECK(!madvise(moved, 2 * MIB, MADV_DONTNEED) && load(moved) == word_of(0));
	CHECK(load(moved + last) == 3);
	CHECK(!mlock(moved, size) && !munlock(moved, size));
	munmap(moved, size);

	/* Only a part of it. */
	memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	if (!CHECK(!mprotect(memory + MIB, PAGE, PROT_READ | PROT_WRITE)))
		return;
	store(memory + MIB, 4);
	CHECK(load(memory + MIB) == 4 && has_words(memory, 0, MIB, PAGE));
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void it_may_move(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ), *moved;
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED && room != MAP_FAILED);
	CHECK(has_words(memory, 0, size, PAGE));
	moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
	CHECK(moved == room + PAGE);
	CHECK(has_words(moved, 0, size, PAGE));
	CHECK(mremap(moved, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
	munmap(moved, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

/* A field of /proc/self/smaps for the mapping of an address, in KiB. */
static long smaps_of(const char *memory, const char *line)
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

/* Also by block, if blocks fit. */
static void odd_rights_are_mapped_by_block(void)
{
	long large = count("stats/filled_large");
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_EXEC);

	large = count("stats/filled_large") - large;
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(smaps_of(memory, "FilePmdMapped:") == large << 11);
	CHECK(!munmap(memory + MIB, PAGE));
	CHECK(has_words(memory, 0, MIB, PAGE));
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void odd_places_are_mapped_by_page(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory;

	memory = mmap(room + PAGE, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory == room + PAGE && has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	memory = mmap(NULL, size - PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	CHECK(memory != MAP_FAILED && has_words(memory, PAGE, size - PAGE, PAGE));
	munmap(memory, size - PAGE);
	memory = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	memset(memory, 0xff, size);
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void advice_takes_nothing(void)
{
	static const int advice[] = { MADV_DONTNEED, MADV_COLD, MADV_PAGEOUT, MADV_RANDOM,
				      MADV_WILLNEED, MADV_POPULATE_READ, MADV_MERGEABLE,
				      MADV_HUGEPAGE, MADV_COLLAPSE, MADV_SOFT_OFFLINE };
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(advice); i++) {
		/* Attached, and mapped as single pages. */
		char *memory = map(fd, size, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC);

		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
		madvise(memory, size, advice[i / 2]);
		CHECK(has_words(memory, 0, size, PAGE));
		madvise(memory + MIB, MIB, advice[i / 2]);
		CHECK(has_words(memory, 0, size, PAGE));
		munmap(memory, size);
	}
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

#define SPLIT	"/sys/kernel/debug/split_huge_pages"

/* The word of a page in a file with one word per page. */
static uint64_t word_in(const char *path, uint64_t page)
{
	int fd = open(path, O_RDONLY);
	uint64_t word = 0;

	CHECK(fd >= 0 && pread(fd, &word, 8, page * 8) == 8);
	close(fd);
	return word;
}

/* Return: PFN of a page that is mapped as a single page. */
static uint64_t pfn_of(const char *at)
{
	uint64_t entry = word_in("/proc/self/pagemap", (unsigned long)at / PAGE);

	CHECK(entry >> 63);
	return entry & ((1ULL << 55) - 1);
}

/* Return: number of page-table entries that map it. */
static long mapped_by(const char *at)
{
	return word_in("/proc/kpagecount", pfn_of(at));
}

/* A pipe that holds one reference to each of @pages pages. */
static bool hold_pages(int *pair, char *memory, size_t pages)
{
	struct iovec piece = { memory, pages * PAGE };

	return !pipe(pair) && fcntl(pair[1], F_SETPIPE_SZ, MIB) == (int)MIB &&
	       vmsplice(pair[1], &piece, 1, 0) == (ssize_t)(pages * PAGE);
}

static void drop_pages(const int *pair)
{
	close(pair[0]);
	close(pair[1]);
}

static void split_by_debugfs(const char *memory, size_t size)
{
	char text[96];

	snprintf(text, sizeof(text), "%d,0x%lx,0x%lx,0", getpid(), (unsigned long)memory,
		 (unsigned long)memory + size);
	write_text(SPLIT, text);
	write_text(SPLIT, "1");
}

static void poison(char *at)
{
	madvise(at, PAGE, MADV_HWPOISON);
}

/*
 * Linux splits a folio only if mappings and the page cache, with one reference for each
 * page, hold all its references. A block of a morsel has one reference. 511
 * others make it look like a folio of the page cache.
 */
static void try_to_split(int fd, size_t size, bool sealed)
{
	char *attached = map(fd, size, sealed ? PROT_READ : PROT_READ | PROT_WRITE);
	char *by_page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int first[2], second[2], status;
	pid_t pid;

	CHECK(attached != MAP_FAILED && by_page != MAP_FAILED);
	CHECK(load(attached) == word_of(0) && load(by_page) == word_of(0));
	CHECK(smaps_of(by_page, "FilePmdMapped:") == 2048 && mapped_by(by_page) == 1);
	CHECK(hold_pages(first, attached, 256));
	CHECK(hold_pages(second, attached + MIB, 255));

	CHECK(!madvise(by_page, PAGE, MADV_COLD));
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	CHECK(!madvise(by_page + PAGE, PAGE, MADV_PAGEOUT));
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	split_by_debugfs(by_page, 2 * MIB);
	split_by_debugfs(attached, 2 * MIB);
	CHECK(has_words(attached, 0, size, PAGE) && has_words(by_page, 0, 2 * MIB, PAGE));
	CHECK(smaps_of(by_page, "FilePmdMapped:") == 2048 && mapped_by(by_page) == 1);
	CHECK(others_see(fd, size, PAGE));

	/* The same with one more mapping of each kind in another process. */
	pid = fork();
	if (!pid) {
		char *mine = map(fd, size, PROT_READ);
		bool same = mine != MAP_FAILED && has_words(mine, 0, size, PAGE) &&
			    load(by_page) == word_of(0);

		split_by_debugfs(mine, 2 * MIB);
		split_by_debugfs(by_page, 2 * MIB);
		madvise(by_page, PAGE, MADV_COLD);
		_exit(same && has_words(mine, 0, size, PAGE) &&
		      has_words(by_page, 0, 2 * MIB, PAGE) ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(has_words(attached, 0, size, PAGE) && mapped_by(by_page) == 1);
	if (sealed && dies_by(child_status(poison, by_page + 5 * PAGE), SIGBUS)) {
		CHECK(has_words(attached, 0, 5 * PAGE, PAGE));
		CHECK(has_words(attached + 6 * PAGE, 6 * PAGE, size - 6 * PAGE, PAGE));
	}
	drop_pages(first);
	drop_pages(second);
	munmap(by_page, size);
	munmap(attached, size);
}

static void a_block_is_never_split(void)
{
	size_t size = 4 * MIB;

	for (int sealed = 0; sealed < 2; sealed++) {
		long large = count("stats/filled_large");
		int fd = make(size);

		CHECK(!fallocate(fd, 0, 0, size));
		if (count("stats/filled_large") - large < 2) {
			lacks = "no blocks of 2 MiB";
			close(fd);
			return;
		}
		for (size_t at = 0; at < size; at += PAGE) {
			uint64_t word = word_of(at);

			CHECK(pwrite(fd, &word, 8, at) == 8);
		}
		if (sealed)
			CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		try_to_split(fd, size, sealed);
		/* The seal checks references: none is lost, none is leaked. */
		if (!sealed) {
			CHECK(others_see(fd, size, PAGE));
			CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
			CHECK(others_see(fd, size, PAGE));
		}
		close(fd);
	}
}

static void children_share_a_sealed_one(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE), status;
	char *memory = map(fd, size, PROT_READ);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(has_words(memory, 0, size, PAGE) ? 0 : 1);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	CHECK(has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
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

static void it_is_sent_by_descriptor(void)
{
	size_t size = 4 * MIB;
	int fd = make(size), pair[2], status;
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	pid_t pid;

	CHECK(memory != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		char room[CMSG_SPACE(sizeof(int))], byte;
		struct iovec piece = { &byte, 1 };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1,
					  .msg_control = room, .msg_controllen = sizeof(room) };
		int got;

		close(fd);
		if (recvmsg(pair[1], &message, 0) != 1)
			_exit(1);
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
		memory = map(got, size, PROT_READ | PROT_WRITE);
		_exit(memory != MAP_FAILED && has_words(memory, 0, size, PAGE) ? 0 : 2);
	}
	write_words(memory, size, PAGE);
	munmap(memory, size);
	{
		char room[CMSG_SPACE(sizeof(int))] = "", byte = 0;
		struct iovec piece = { &byte, 1 };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1,
					  .msg_control = room, .msg_controllen = sizeof(room) };
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		CHECK(sendmsg(pair[0], &message, 0) == 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

static void ptrace_cannot_write_a_sealed_one(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), self = open("/proc/self/mem", O_RDWR);
	uint64_t word = 0;
	char *memory;

	for (int shared = 0; shared < 2; shared++) {
		memory = mmap(NULL, size, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
		CHECK(pread(self, &word, 8, (off_t)(memory + PAGE)) == 8 && word == word_of(PAGE));
		CHECK(pwrite(self, "x", 1, (off_t)memory) < 0 && errno == EIO);
		CHECK(has_words(memory, 0, size, PAGE));
		munmap(memory, size);
	}
	close(self);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void it_is_in_no_rss(void)
{
	size_t size = 6 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	struct stat stat;

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(smaps_of(memory, "Rss:") == 0);
	CHECK(smaps_of(memory, "Morsel:") == 6 << 10);
	CHECK(!fstat(fd, &stat) && stat.st_blocks == 6 << 11);
	CHECK(has_words(memory, 0, size, PAGE));
	munmap(memory, size);
	close(fd);
}

static void it_works_switched_off(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), key = open(SYSFS "enabled", O_WRONLY);
	long pmds = count("stats/attached_pmd");
	char *memory;

	if (getenv("TOLLFREE_CODE_IS_FIXED")) {
		lacks = "no code may change";
		close(key);
		close(fd);
		return;
	}
	CHECK(key >= 0 && write(key, "2", 1) < 0 && errno == EINVAL);
	CHECK(write(key, "0", 1) == 1);
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	CHECK(count("stats/attached_pmd") == pmds);
	munmap(memory, size);
	CHECK(write(key, "1", 1) == 1);
	close(key);
	close(fd);
}

static struct {
	char *memory;
	size_t size;
	pthread_barrier_t begin;
	int stage;
	bool is_stale;
} touched;

/* An idle CPU would drop its translations by itself. */
static void wait_for_stage(int stage)
{
	while (__atomic_load_n(&touched.stage, __ATOMIC_ACQUIRE) != stage)
		;
}

static void begin_stage(int stage)
{
	__atomic_store_n(&touched.stage, stage, __ATOMIC_RELEASE);
}

static void *read_before_and_after(void *argument)
{
	(void)argument;
	stay_on(1);
	for (size_t at = 0; at < touched.size; at += PAGE)
		load(touched.memory + at);
	begin_stage(1);
	/* Changes by the other process must be visible here afterwards. */
	wait_for_stage(2);
	for (size_t at = 0; at < touched.size; at += PAGE)
		touched.is_stale |= load(touched.memory + at) != 5;
	return NULL;
}

/* Other memory is mapped at the address: no CPU still reads the morsel there. */
static void is_forgotten(int fd, size_t size, size_t part)
{
	char *memory = map(fd, size, PROT_READ), *other;
	pthread_t thread;

	CHECK(memory != MAP_FAILED);
	touched.is_stale = false;
	touched.size = 64 * PAGE;
	touched.memory = memory + part;
	begin_stage(0);
	pthread_create(&thread, NULL, read_before_and_after, NULL);
	wait_for_stage(1);
	munmap(memory, size);
	other = mmap(touched.memory, touched.size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(other == touched.memory);
	for (size_t at = 0; at < touched.size; at += PAGE)
		store(other + at, 5);
	begin_stage(2);
	pthread_join(thread, NULL);
	CHECK(!touched.is_stale);
	munmap(other, touched.size);
}

/* A CPU may drop a large page as a whole: single pages show more. */
static void what_is_unmapped_is_forgotten(void)
{
	size_t size = GIB + 4 * MIB;
	int fd;

	stay_on(0);
	mkdir("/tmp/pages", 0700);
	CHECK(!mount("none", "/tmp/pages", "morselfs", 0, "huge=never"));
	for (int small = 0; small < 2; small++) {
		mounted = small ? "/tmp/pages" : MOUNT;
		fd = make(size);
		CHECK(!fallocate(fd, 0, 0, MIB) && !fallocate(fd, 0, GIB, MIB));
		CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		is_forgotten(fd, size, MIB / 2);
		is_forgotten(fd, size, GIB + MIB / 2);
		close(fd);
	}
	mounted = MOUNT;
	CHECK(!umount("/tmp/pages"));
	rmdir("/tmp/pages");
}

static bool is_done;

static void *give_up_again_and_again(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST))
		madvise(touched.memory, touched.size, MADV_DONTNEED);
	return NULL;
}

/*
 * One thread reads at random addresses what others unmap, so that it
 * faults at any time, without errors.
 */
static void giving_up_races_with_reading(void)
{
	enum { THREADS = 2, STEP = 64 * MIB };
	size_t size = GIB + 2 * MIB;
	int fd = make_sealed(size, STEP);
	pthread_t threads[THREADS];

	touched.memory = map(fd, size, PROT_READ);
	touched.size = size;
	CHECK(touched.memory != MAP_FAILED);
	is_done = false;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, give_up_again_and_again, NULL);
	for (int i = 0; i < 100 && !failed; i++)
		for (size_t at = 0; at < 2 * MIB && !failed; at += PAGE)
			for (size_t block = 0; block < size; block += STEP)
				CHECK(load(touched.memory + block + at) ==
				      (at ? 0 : word_of(block)));
	__atomic_store_n(&is_done, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	munmap(touched.memory, size);
	CHECK(others_see(fd, size, STEP));
	close(fd);
}

static void *fault_again_and_again(void *argument)
{
	uint64_t word;

	(void)argument;
	while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST)) {
		madvise(touched.memory, PAGE, MADV_DONTNEED);
		try_to_load(touched.memory, &word);
	}
	return NULL;
}

/* A fault that has found a page does not map it after its removal. */
static void a_page_that_went_is_mapped_by_nobody(void)
{
	struct sigaction action = { .sa_handler = jump }, before;
	int fd = make(PAGE);
	pthread_t thread;

	touched.memory = map(fd, PAGE, PROT_READ);
	CHECK(touched.memory != MAP_FAILED);
	sigaction(SIGBUS, &action, &before);
	is_done = false;
	pthread_create(&thread, NULL, fault_again_and_again, NULL);
	for (int i = 0; i < 100 && !failed; i++) {
		CHECK(pwrite(fd, "x", 1, 0) == 1);
		for (int spins = 0; spins < i * 100; spins++)
			asm volatile("");
		CHECK(!ftruncate(fd, 0) && !ftruncate(fd, PAGE));
		CHECK(!load(touched.memory));
	}
	__atomic_store_n(&is_done, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	sigaction(SIGBUS, &before, NULL);
	munmap(touched.memory, PAGE);
	close(fd);
}

/* A mapping ends at its end address, although its last slot is larger. */
static void touch_behind(char *memory)
{
	load(memory);
	load(memory + 2 * MIB);
	load(memory + 2 * MIB + PAGE);
}

static void nothing_is_mapped_behind_a_mapping(void)
{
	int fd = make_sealed(4 * MIB, PAGE);
	char *room = mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = (char *)(((unsigned long)room + 2 * MIB) & ~(2 * MIB - 1));

	/* No other process has a table there. */
	munmap(room, 8 * MIB);
	memory = mmap(memory, 2 * MIB + PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(memory != MAP_FAILED);
	CHECK(dies_by(child_status(touch_behind, memory), SIGSEGV));
	munmap(memory, 2 * MIB + PAGE);
	CHECK(others_see(fd, 4 * MIB, PAGE));
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

static void *touch_all(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&touched.begin);
	for (size_t at = 0; at < touched.size; at += PAGE)
		__atomic_add_fetch((uint64_t *)(touched.memory + at), 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Concurrent faults for one page get the same page. */
static void many_threads_fill_it(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];

	for (int round = 0; round < 5; round++) {
		long pages = count("pages");
		int fd;

		touched.size = 8 * MIB + 7 * PAGE;
		fd = make(touched.size);
		touched.memory = map(fd, touched.size, PROT_READ | PROT_WRITE);
		CHECK(touched.memory != MAP_FAILED);
		pthread_barrier_init(&touched.begin, NULL, THREADS);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, touch_all, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (size_t at = 0; at < touched.size; at += PAGE)
			CHECK(*(uint64_t *)(touched.memory + at) == THREADS);
		CHECK(count("pages") - pages == (long)(touched.size / PAGE));
		munmap(touched.memory, touched.size);
		close(fd);
	}
}

static void *shrink_and_grow(void *argument)
{
	int fd = *(int *)argument;

	for (int i = 0; i < 100; i++) {
		if (ftruncate(fd, (i % 4) * MIB + 5) || ftruncate(fd, 6 * MIB))
			return "ftruncate";
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 4 * MIB))
			return "fallocate";
	}
	return NULL;
}

/* Pages that are removed while other threads fault read as zeros later. */
static void faults_and_sizes_race(void)
{
	int fd = make(6 * MIB), status = 0;
	void *problem;
	pthread_t thread;
	pid_t pid;

	pid = fork();
	if (!pid) {
		char *memory = map(fd, 6 * MIB, PROT_READ | PROT_WRITE);

		/* Sometimes beyond the end for a moment. */
		signal(SIGBUS, SIG_DFL);
		for (;;)
			for (size_t at = 0; at < MIB; at += PAGE)
				memory[at % 5 ? at : 0] = 1;
	}
	pthread_create(&thread, NULL, shrink_and_grow, &fd);
	pthread_join(thread, &problem);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!problem);
	CHECK(dies_by(status, SIGKILL) || dies_by(status, SIGBUS));
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

static bool is_watched(char *memory, size_t size, uint64_t mode)
{
	__u64 features = 0;
	int fd = userfaultfd(&features);
	struct uffdio_register range = {
		.range = { .start = (unsigned long)memory, .len = size },
		.mode = mode,
	};
	bool done = features && !ioctl(fd, UFFDIO_REGISTER, &range);

	CHECK(features && (done || errno == EINVAL));
	close(fd);
	return done;
}

#define KSM	"/sys/kernel/mm/ksm/"

/* Everything else that could change entries. */
static void nobody_merges_or_watches_it(void)
{
	static const uint64_t modes[] = { UFFDIO_REGISTER_MODE_MISSING, UFFDIO_REGISTER_MODE_WP };
	size_t size = 4 * MIB;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE), *other;
	long scans, faults;

	CHECK(memory != MAP_FAILED);
	/* All pages have the same content. */
	memset(memory, 1, size);
	faults = count("stats/faults");
	CHECK(write_text("/proc/self/clear_refs", "4"));
	memset(memory, 2, size);
	CHECK(count("stats/faults") == faults);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		CHECK(!is_watched(memory, size, modes[i]));
	CHECK(!mlock(memory, size) && !munlock(memory, size));
	madvise(memory, size, MADV_MERGEABLE);
	/* ksmd scans only processes with mergeable memory. */
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(other != MAP_FAILED);
	store(other, 1);
	CHECK(!madvise(other, PAGE, MADV_MERGEABLE));
	scans = number(KSM "full_scans");
	CHECK(write_text(KSM "sleep_millisecs", "1") && write_text(KSM "run", "1"));
	for (int i = 0; i < 500 && number(KSM "full_scans") < scans + 2; i++)
		usleep(10000);
	CHECK(number(KSM "full_scans") >= scans + 2);
	CHECK(!number(KSM "pages_shared"));
	CHECK(write_text(KSM "run", "2") && write_text(KSM "run", "0"));
	CHECK(load(memory + PAGE) == 0x0202020202020202);
	munmap(other, PAGE);
	munmap(memory, size);
	close(fd);
}

static bool has_two_nodes(void)
{
	if (!access("/sys/devices/system/node/node1", F_OK))
		return true;
	lacks = "one node";
	return false;
}

/* Return: node of an existing page. */
static int node_of(char *at)
{
	int node = -1;

	CHECK(!syscall(SYS_get_mempolicy, &node, NULL, 0, at, MPOL_F_NODE | MPOL_F_ADDR));
	return node;
}

static bool all_are_on(char *memory, size_t size, int node)
{
	for (size_t at = 0; at < size; at += PAGE) {
		if (node_of(memory + at) != node)
			return false;
	}
	return true;
}

/* The policy of the mapping decides the node of a page, where it stays. */
static void policies_place_it(void)
{
	size_t size = 4 * MIB + 3 * PAGE;

	if (!has_two_nodes())
		return;
	for (int node = 0; node < 2; node++) {
		unsigned long here = 1UL << node, there = 1UL << !node;
		int fd = make(size), to = !node, status;
		char *memory = map(fd, size, PROT_READ | PROT_WRITE);
		void *page = memory;

		CHECK(memory != MAP_FAILED);
		CHECK(!syscall(SYS_mbind, memory, size, MPOL_BIND, &here, 64, 0));
		write_words(memory, size, PAGE);
		CHECK(all_are_on(memory, size, node));
		syscall(SYS_mbind, memory, size, MPOL_BIND, &there, 64, MPOL_MF_MOVE);
		status = to;
		syscall(SYS_move_pages, 0, 1, &page, &to, &status, MPOL_MF_MOVE);
		CHECK(status != to);
		syscall(SYS_migrate_pages, 0, 64, &here, &there);
		CHECK(all_are_on(memory, size, node));
		CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
		munmap(memory, size);
		close(fd);
	}
}

#define BALANCING	"/sys/kernel/debug/sched/numa_balancing/"

static void write_for_a_while(char *memory)
{
	struct timespec used;

	do {
		for (size_t at = 0; at < 4 * MIB; at += PAGE)
			store(memory + at, word_of(at));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec < 3);
}

/* NUMA balancing removes access rights from entries, to observe faults. */
static void balancing_leaves_it(void)
{
	char delay[16];
	int status = 0;
	pid_t pid;

	if (!has_two_nodes())
		return;
	snprintf(delay, sizeof(delay), "%ld", number(BALANCING "scan_delay_ms"));
	CHECK(write_text(BALANCING "scan_delay_ms", "10"));
	pid = fork();
	if (!pid) {
		char *memory = map(make(4 * MIB), 4 * MIB, PROT_READ | PROT_WRITE);

		if (memory == MAP_FAILED)
			_exit(1);
		write_for_a_while(memory);
		_exit(has_words(memory, 0, 4 * MIB, PAGE) ? 0 : 1);
	}
	for (int i = 0; i < 3000 && !waitpid(pid, &status, WNOHANG); i++)
		usleep(10000);
	CHECK(kill(pid, SIGKILL) && errno == ESRCH && !status);
	CHECK(write_text(BALANCING "scan_delay_ms", delay));
}

/* The first swap device. */
static bool find_swap(char *device, size_t length)
{
	FILE *swaps = fopen("/proc/swaps", "r");
	char line[256], name[128];
	bool found;

	found = swaps && fgets(line, sizeof(line), swaps) &&
		fgets(line, sizeof(line), swaps) && sscanf(line, "%127s", name) == 1;
	if (swaps)
		fclose(swaps);
	if (found)
		snprintf(device, length, "%s", name);
	return found;
}

static long swapped_to(const char *device)
{
	FILE *swaps = fopen("/proc/swaps", "r");
	char line[256], name[128];
	long used = 0, kib;

	while (swaps && fgets(line, sizeof(line), swaps))
		if (sscanf(line, "%127s %*s %*s %ld", name, &kib) == 2 &&
		    !strcmp(name, device))
			used = kib;
	if (swaps)
		fclose(swaps);
	return used;
}

/* swapoff walks all mappings of all processes that have swapped memory. */
static void swapoff_leaves_it(void)
{
	size_t size = 4 * MIB + 3 * PAGE;
	char *memory, *copy, *other, device[128];
	int fd;

	if (!find_swap(device, sizeof(device))) {
		lacks = "no swap";
		return;
	}
	fd = make_filled(size, PAGE);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED && copy != MAP_FAILED && other != MAP_FAILED);
	write_words(memory, size, PAGE);
	memset(copy, 1, size);
	memset(other, 2, size);
	for (int i = 0; i < 100 && swapped_to(device) < (long)(size >> 10); i++) {
		madvise(copy, size, MADV_PAGEOUT);
		madvise(other, size, MADV_PAGEOUT);
	}
	CHECK(swapped_to(device) >= (long)(size >> 10));
	CHECK(!swapoff(device));
	CHECK(!swapped_to(device) && !swapon(device, 0));
	CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
	for (size_t at = 0; at < size; at += PAGE)
		CHECK(copy[at] == 1 && other[at] == 2);
	munmap(memory, size);
	munmap(copy, size);
	munmap(other, size);
	close(fd);
}

#define DAMON	"/sys/kernel/mm/damon/admin/kdamonds/"
#define CONTEXT	DAMON "0/contexts/0/"

/* DAMON monitors accesses, and pages out idle memory. */
static void damon_leaves_it(void)
{
	static const char *const begin[][2] = {
		{ DAMON "nr_kdamonds", "1" },
		{ DAMON "0/contexts/nr_contexts", "1" },
		{ CONTEXT "operations", "vaddr" },
		{ CONTEXT "monitoring_attrs/intervals/sample_us", "1000" },
		{ CONTEXT "monitoring_attrs/intervals/aggr_us", "20000" },
		{ CONTEXT "targets/nr_targets", "1" },
		{ CONTEXT "schemes/nr_schemes", "1" },
		{ CONTEXT "schemes/0/action", "pageout" },
		{ CONTEXT "schemes/0/access_pattern/sz/max", "18446744073709551615" },
		{ CONTEXT "schemes/0/access_pattern/nr_accesses/max", "4294967295" },
		{ CONTEXT "schemes/0/access_pattern/age/max", "4294967295" },
	};
	size_t size = 8 * MIB;
	char *memory, self[16];
	int fd, tried = 0;

	if (access(DAMON, F_OK)) {
		lacks = "no DAMON";
		return;
	}
	fd = make_filled(size, PAGE);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(begin); i++)
		CHECK(write_text(begin[i][0], begin[i][1]));
	snprintf(self, sizeof(self), "%d", getpid());
	CHECK(write_text(CONTEXT "targets/0/pid_target", self));
	CHECK(write_text(DAMON "0/state", "on"));
	for (int i = 0; i < 500 && tried < 3; i++) {
		CHECK(has_words(memory, 0, size, PAGE));
		usleep(10000);
		CHECK(write_text(DAMON "0/state", "update_schemes_stats"));
		tried = number(CONTEXT "schemes/0/stats/nr_tried");
	}
	CHECK(tried >= 3);
	CHECK(write_text(DAMON "0/state", "off"));
	CHECK(write_text(DAMON "nr_kdamonds", "0"));
	CHECK(has_words(memory, 0, size, PAGE) && others_see(fd, size, PAGE));
	munmap(memory, size);
	close(fd);
}

/* One request at a time. */
struct ring {
	int fd;
	unsigned int *tail, *seen;
	struct io_uring_sqe *request;
	struct io_uring_cqe *answers;
	struct io_uring_params params;
};

static bool open_ring(struct ring *ring)
{
	struct io_uring_params *params = &ring->params;
	unsigned int *array;
	char *memory;
	size_t size;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(SYS_io_uring_setup, 1, params);
	if (ring->fd < 0)
		return false;
	CHECK(params->features & IORING_FEAT_SINGLE_MMAP);
	size = params->cq_off.cqes + params->cq_entries * sizeof(*ring->answers);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		      IORING_OFF_SQ_RING);
	ring->request = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			     IORING_OFF_SQES);
	if (!CHECK(memory != MAP_FAILED && ring->request != MAP_FAILED))
		return false;
	ring->tail = (void *)(memory + params->sq_off.tail);
	ring->seen = (void *)(memory + params->cq_off.head);
	ring->answers = (void *)(memory + params->cq_off.cqes);
	array = (void *)(memory + params->sq_off.array);
	array[0] = 0;
	return true;
}

/* Result from the kernel. */
static int ask(struct ring *ring, int opcode, int fd, char *buffer, size_t length)
{
	unsigned int seen = get(*ring->seen);
	int result;

	*ring->request = (struct io_uring_sqe){
		.opcode = opcode, .fd = fd, .addr = (unsigned long)buffer, .len = length,
	};
	set(*ring->tail, get(*ring->tail) + 1);
	if (!CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL,
			   0) == 1))
		return -1;
	result = ring->answers[seen & (ring->params.cq_entries - 1)].res;
	set(*ring->seen, seen + 1);
	return result;
}

static int fix_buffer(struct ring *ring, char *memory, size_t size)
{
	struct iovec piece = { memory, size };

	return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &piece, 1);
}

/* Linux pins a fixed buffer for writing in any case. */
static void fixed_buffers_are_the_writers(void)
{
	size_t size = 4 * MIB, half = 2 * MIB;
	int fd = make(size), disk = open("/data/morsel-ring", O_RDWR | O_CREAT | O_DIRECT, 0600);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	struct ring ring;

	CHECK(memory != MAP_FAILED && disk >= 0);
	if (!open_ring(&ring)) {
		lacks = "no io_uring";
		goto out;
	}
	write_words(memory, half, PAGE);
	CHECK(!fix_buffer(&ring, memory, size));
	CHECK(ask(&ring, IORING_OP_WRITE_FIXED, disk, memory, half) == (int)half);
	CHECK(ask(&ring, IORING_OP_READ_FIXED, disk, memory + half, half) == (int)half);
	CHECK(has_words(memory + half, 0, half, PAGE));
	/* The device still uses the page, although it is not mapped. */
	munmap(memory, size);
	CHECK(fcntl(fd, F_ADD_SEALS, ALL) && errno == EBUSY);
	CHECK(!syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	for (int i = 0; i < 500 && fcntl(fd, F_ADD_SEALS, ALL) && errno == EBUSY; i++)
		usleep(10000);
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED);
	CHECK(fix_buffer(&ring, memory, size) && errno == EFAULT);
	CHECK(ask(&ring, IORING_OP_WRITE, disk, memory, half) == (int)half);
	CHECK(ask(&ring, IORING_OP_READ, disk, memory, half) == -EFAULT);
	CHECK(has_words(memory, 0, half, PAGE));
	close(ring.fd);
out:
	munmap(memory, size);
	close(disk);
	unlink("/data/morsel-ring");
	close(fd);
}

/* A futex is identified by file and page, for any kind of mapping. */
static void a_futex_is_shared(void)
{
	int fd = make(4 * MIB), status;
	uint32_t *mine = (uint32_t *)map(fd, 4 * MIB, PROT_READ | PROT_WRITE) + 3 * PAGE / 4;
	pid_t pid;

	*mine = 1;
	pid = fork();
	if (!pid) {
		uint32_t *word = (uint32_t *)map(fd, 4 * MIB, PROT_READ) + 3 * PAGE / 4;

		while ((uint32_t)load(word) == 1)
			syscall(SYS_futex, word, FUTEX_WAIT, 1, NULL, NULL, 0);
		_exit(*word == 2 ? 0 : 1);
	}
	usleep(100000);
	*mine = 2;
	CHECK(syscall(SYS_futex, mine, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	munmap(mine - 3 * PAGE / 4, 4 * MIB);
	close(fd);
}

static void others_come_and_go_by_all_ways(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), status;
	char *memory = map(fd, size, PROT_READ);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (!pid) {
			char *mine = map(fd, size, PROT_READ);

			if (i % 4 == 0)
				execl("/bin/true", "true", NULL);
			if (i % 4 == 1)
				raise(SIGKILL);
			if (i % 4 == 2)
				munmap(mine, size);
			_exit(0);
		}
		if (i % 8 == 7)
			kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(has_words(memory, 0, size, PAGE));
	}
	munmap(memory, size);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

static void a_child_cannot_write_its_parents(void)
{
	int fd = make(4 * MIB);
	char *memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	memory[0] = 7;
	CHECK(!madvise(memory, 4 * MIB, MADV_DOFORK));
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGBUS));
	CHECK(memory[0] == 7);
	munmap(memory, 4 * MIB);
	close(fd);
}

static void other_processes_memory_is_read(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	uint64_t word = 0;
	struct iovec here = { &word, 8 }, there = { memory + 2 * MIB + PAGE, 8 };

	CHECK(memory != MAP_FAILED);
	CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 8);
	CHECK(word == word_of(2 * MIB + PAGE));
	CHECK(process_vm_writev(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT);
	munmap(memory, size);
	close(fd);
}

static void nonsense_is_refused(void)
{
	static const char *const options[] = { "size=x", "size=101%", "huge=3M", "mode=9",
					       "nr_inodes=-", "colour=red" };
	int fd = make(PAGE);

	mkdir("/tmp/nonsense", 0700);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		CHECK(mount("none", "/tmp/nonsense", "morselfs", 0, options[i]) && errno == EINVAL);
	rmdir("/tmp/nonsense");
	CHECK(fcntl(fd, F_ADD_SEALS, 0x4000) && errno == EINVAL);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100) == MAP_FAILED && errno == EINVAL);
	CHECK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE) && errno == EOPNOTSUPP);
	CHECK(ftruncate(fd, -1) && errno == EINVAL);
	close(fd);
}

static void a_full_mount_is_enospc(void)
{
	int fd;
	char *memory;

	mkdir("/tmp/small", 0700);
	CHECK(!mount("none", "/tmp/small", "morselfs", 0, "size=3088K,nr_inodes=4"));
	/* 3 MiB, and their tables. */
	fd = open("/tmp/small/a", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, 16 * MIB));
	CHECK(fallocate(fd, 0, 0, 4 * MIB) && errno == ENOSPC);
	memory = map(fd, 16 * MIB, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	CHECK(umount("/tmp/small") && errno == EBUSY);
	munmap(memory, 16 * MIB);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16 * MIB));
	CHECK(!fallocate(fd, 0, 0, 3 * MIB));
	CHECK(mkdir("/tmp/small/b", 0700) == 0 && mkdir("/tmp/small/c", 0700) == 0);
	CHECK(mkdir("/tmp/small/d", 0700) && errno == ENOSPC);
	close(fd);
	CHECK(!umount("/tmp/small"));
	rmdir("/tmp/small");
}

/* As tmpfs: half of memory by default. */
static void a_mount_takes_half_of_memory(void)
{
	unsigned long pages = sysconf(_SC_PHYS_PAGES);
	struct statfs fs;

	CHECK(!statfs(MOUNT, &fs) && fs.f_blocks - pages / 2 <= 1 && fs.f_files - pages / 2 <= 1);
	mkdir("/tmp/small", 0700);
	CHECK(!mount("none", "/tmp/small", "morselfs", 0, "size=0,nr_inodes=0"));
	CHECK(!statfs("/tmp/small", &fs) && !fs.f_blocks && !fs.f_files);
	/* A remount keeps the options that it does not name. */
	CHECK(!mount("none", "/tmp/small", NULL, MS_REMOUNT, "huge=never"));
	CHECK(!statfs("/tmp/small", &fs) && !fs.f_blocks && !fs.f_files);
	CHECK(!umount("/tmp/small"));
	CHECK(!mount("none", "/tmp/small", "morselfs", 0, "size=50%"));
	CHECK(!statfs("/tmp/small", &fs) && fs.f_blocks - pages / 2 <= 1);
	CHECK(!umount("/tmp/small") && !rmdir("/tmp/small"));
}

/* One page in each GiB needs two tables, which count as well. */
static void tables_count_and_go(void)
{
	enum { PAGES = 256, MOST = PAGES / 3 };
	long tables = count("tables");
	struct statfs fs;
	char *memory;
	int fd;

	mkdir("/tmp/small", 0700);
	CHECK(!mount("none", "/tmp/small", "morselfs", 0, "size=1M,huge=never"));
	fd = open("/tmp/small/a", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, PAGES * GIB));
	for (int round = 0; round < 3; round++) {
		unsigned long done = 0;

		while (done < PAGES && pwrite(fd, "x", 1, done * GIB) == 1)
			done++;
		CHECK(done >= MOST - 2 && done <= MOST);
		CHECK(errno == ENOSPC);
		CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				 PAGES * GIB));
		/* Not mapped: tables were freed with the pages. */
		CHECK(count("tables") == tables);
		CHECK(!statfs("/tmp/small", &fs) && fs.f_bfree == PAGES);
	}
	/* Tables of a mapped file stay until the next removal. */
	memory = map(fd, 4 * GIB, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 4; i++)
		store(memory + i * GIB, 1);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * GIB));
	CHECK(!load(memory + GIB));
	munmap(memory, 4 * GIB);
	CHECK(count("tables") > tables);
	CHECK(!ftruncate(fd, 0));
	CHECK(count("tables") == tables);
	CHECK(!statfs("/tmp/small", &fs) && fs.f_bfree == PAGES);
	close(fd);
	CHECK(!umount("/tmp/small"));
	rmdir("/tmp/small");
}

/* An additional link pins memory, too. */
static void names_count(void)
{
	struct statfs fs;
	int fd;

	mkdir("/tmp/small", 0700);
	CHECK(!mount("none", "/tmp/small", "morselfs", 0, "nr_inodes=4"));
	fd = open("/tmp/small/a", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !close(fd));
	CHECK(!link("/tmp/small/a", "/tmp/small/b") && !link("/tmp/small/a", "/tmp/small/c"));
	CHECK(link("/tmp/small/a", "/tmp/small/d") && errno == ENOSPC);
	CHECK(open("/tmp/small/d", O_RDWR | O_CREAT, 0600) < 0 && errno == ENOSPC);
	/* Remove one link, and replace one by another file. */
	CHECK(!unlink("/tmp/small/b"));
	fd = open("/tmp/small/d", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !close(fd));
	CHECK(!statfs("/tmp/small", &fs) && !fs.f_ffree);
	CHECK(!rename("/tmp/small/d", "/tmp/small/c"));
	CHECK(!statfs("/tmp/small", &fs) && fs.f_ffree == 1);
	CHECK(!unlink("/tmp/small/a") && !unlink("/tmp/small/c"));
	CHECK(!statfs("/tmp/small", &fs) && fs.f_ffree == 3);
	/* An O_TMPFILE inode is counted before it gets its first link. */
	fd = open("/tmp/small", O_RDWR | O_TMPFILE, 0600);
	CHECK(fd >= 0 && !statfs("/tmp/small", &fs) && fs.f_ffree == 2);
	CHECK(!linkat(fd, "", AT_FDCWD, "/tmp/small/e", AT_EMPTY_PATH));
	CHECK(!statfs("/tmp/small", &fs) && fs.f_ffree == 2);
	close(fd);
	CHECK(!unlink("/tmp/small/e"));
	CHECK(!statfs("/tmp/small", &fs) && fs.f_ffree == 3);
	CHECK(!umount("/tmp/small"));
	rmdir("/tmp/small");
}

static void nothing_is_left(void)
{
	/* Tables wait for a grace period. */
	for (int i = 0; i < 100 && (count("pages") || count("tables")); i++)
		usleep(20000);
	CHECK(!count("pages"));
	CHECK(!count("tables"));
}

#define INJECT	"/sys/kernel/debug/"

/* All operations that allocate; errors are ignored. */
static void use_one(void)
{
	int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
	size_t size = 2 * MIB + 2 * PAGE;
	uint64_t word;
	char *memory;

	if (fd < 0 || ftruncate(fd, size))
		return;
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	if (memory != MAP_FAILED) {
		for (size_t at = 0; at < size; at += MIB)
			try_to_store(memory + at, word_of(at));
		munmap(memory, size);
	}
	pwrite(fd, "x", 1, 3 * MIB);
	if (!fcntl(fd, F_ADD_SEALS, ALL)) {
		memory = map(fd, size, PROT_READ);
		if (memory != MAP_FAILED)
			try_to_load(memory, &word);
	}
	close(fd);
}

/* Fail the first, the second, and so on, until none is left. */
static void each_allocation_may_fail(void)
{
	static const char *const lists[] = { "failslab", "fail_page_alloc" };
	int status, nth = 0, pair[2];
	char left[16] = "";

	if (access("/proc/self/fail-nth", W_OK)) {
		lacks = "no fault injection";
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		char path[128];

		snprintf(path, sizeof(path), INJECT "%s/ignore-gfp-wait", lists[i]);
		CHECK(write_text(path, "N"));
		snprintf(path, sizeof(path), INJECT "%s/verbose", lists[i]);
		CHECK(write_text(path, "0"));
	}
	CHECK(write_text(INJECT "fail_page_alloc/min-order", "0"));
	CHECK(write_text(INJECT "fail_page_alloc/ignore-gfp-highmem", "N"));
	do {
		pid_t pid;

		nth++;
		CHECK(!pipe(pair));
		pid = fork();
		if (!pid) {
			int fd = open("/proc/self/fail-nth", O_RDWR);

			signal(SIGBUS, jump);
			dprintf(fd, "%d", nth);
			use_one();
			/* Remaining count: 0 if an allocation failed. */
			pread(fd, left, sizeof(left) - 1, 0);
			pwrite(fd, "0", 1, 0);
			write(pair[1], left, sizeof(left));
			_exit(0);
		}
		close(pair[1]);
		CHECK(read(pair[0], left, sizeof(left)) == sizeof(left));
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		close(pair[0]);
	} while (!failed && nth < 1000 && !atoi(left));
	ksft_print_msg("%d allocations failed\n", nth - 1);
	CHECK(nth > 10 && nth < 1000);
}

#define PROBES	"/sys/bus/event_source/devices/kprobe/type"

/* Kill a process at its nth call of a kernel function. */
static int kill_at(pid_t pid, const char *function, int nth)
{
	struct perf_event_attr attr = {
		.type = number(PROBES),
		.size = sizeof(attr),
		.kprobe_func = (uintptr_t)function,
		.sample_period = nth,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	CHECK(!fcntl(fd, F_SETOWN, pid));
	CHECK(!fcntl(fd, F_SETSIG, SIGKILL));
	CHECK(!fcntl(fd, F_SETFL, O_ASYNC));
	return fd;
}

/* Whether a process that uses everything survives. */
static bool lives(const char *function, int nth, bool *is_there)
{
	int status = 0, pair[2], probe;
	pid_t pid;
	char go;

	CHECK(!pipe(pair));
	pid = fork();
	if (!pid) {
		close(pair[1]);
		signal(SIGBUS, jump);
		if (read(pair[0], &go, 1) == 1)
			use_one();
		_exit(0);
	}
	close(pair[0]);
	probe = kill_at(pid, function, nth);
	*is_there = probe >= 0;
	CHECK(!*is_there || write(pair[1], "", 1) == 1);
	close(pair[1]);
	CHECK(waitpid(pid, &status, 0) == pid && (!status || dies_by(status, SIGKILL)));
	close(probe);
	return !status;
}

/* Functions on the path of attaching, from mmap() to the exit of the process. */
static void each_step_may_be_the_last(void)
{
	/* Compilers may have inlined some of them. */
	static const char *const functions[] = {
		"morsel_mmap", "morsel_get_unmapped_area", "morsel_attach_all",
		"morsel_attach_puds", "morsel_attach_pmds", "morsel_set_puds",
		"morsel_set_pmds", "__morsel_fault", "morsel_page_fault", "morsel_map_around",
		"morsel_install_prealloc", "morsel_fill", "morsel_enter", "morsel_add_region",
		"morsel_provide", "morsel_alloc_large", "morsel_alloc_small",
		"morsel_install_large", "morsel_install_small", "morsel_install_pmd_table",
		"morsel_install_pte_table", "morsel_close", "morsel_open", "morsel_protect",
		"__morsel_unmap", "morsel_vm_close", "morsel_remove", "mmap_region",
		"handle_mm_fault", "__p4d_alloc", "__pud_alloc", "__pmd_alloc", "pte_alloc_one",
		"folio_zero_user", "set_pte_range", "unmap_page_range", "unmap_mapping_pages",
		"free_pgtables",
	};
	int there = 0, killed = 0;

	if (access(PROBES, R_OK)) {
		lacks = "no probes";
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions) && !failed; i++) {
		bool is_there = true;
		int nth = 1;

		while (nth <= 8 && !failed && !lives(functions[i], nth, &is_there))
			nth++;
		there += is_there;
		killed += nth - 1;
		nothing_is_left();
		if (failed)
			ksft_print_msg("killed in %s\n", functions[i]);
	}
	ksft_print_msg("killed at %d calls of %d functions\n", killed, there);
	CHECK(there > 20 && killed > 30);
}

/* A task that fills its cgroup gets an error, and no task is killed. */
static void a_full_group_is_enomem(void)
{
	int fd = make(64 * MIB), status;
	pid_t pid;

	mkdir(GROUP, 0755);
	CHECK(!mount("none", GROUP, "cgroup2", 0, NULL) || errno == EBUSY);
	write_text(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP "/small", 0755);
	CHECK(write_text(GROUP "/small/memory.max", "16M"));
	pid = fork();
	if (!pid) {
		char *memory = map(fd, 64 * MIB, PROT_READ | PROT_WRITE);
		size_t at = 0;

		/* It needs no further memory. */
		mlockall(MCL_CURRENT);
		signal(SIGBUS, jump);
		if (!write_text(GROUP "/small/cgroup.procs", "0"))
			_exit(1);
		if (!fallocate(fd, 0, 0, 64 * MIB) || errno != ENOMEM)
			_exit(2);
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 64 * MIB))
			_exit(3);
		while (at < 64 * MIB && try_to_store(memory + at, 1))
			at += PAGE;
		_exit(at > 8 * MIB && at < 64 * MIB ? 0 : 4);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!ftruncate(fd, 0));
	CHECK(!rmdir(GROUP "/small"));
	CHECK(!umount(GROUP));
	rmdir(GROUP);
	close(fd);
}

/* If the guest has a free one: attached as a leaf, partly mapped as single pages. */
static void a_gib_is_one_page(void)
{
	size_t size = GIB + 2 * MIB, step = 8 * MIB;
	long before = count("stats/filled_giant");
	char *memory, *part;
	struct iovec piece;
	int fd, pair[2];
	uint64_t word;

	mkdir("/tmp/giant", 0700);
	CHECK(!mount("none", "/tmp/giant", "morselfs", 0, "huge=1G,size=0"));
	mounted = "/tmp/giant";
	fd = make(size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	store(memory, word_of(0));
	if (count("stats/filled_giant") == before) {
		lacks = "no block of 1 GiB";
	} else {
		write_words(memory, size, step);
		part = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 8 * MIB);
		CHECK(part != MAP_FAILED && has_words(part, 8 * MIB, 4 * MIB, step));
		munmap(part, 4 * MIB);
		CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 6 * MIB));
		CHECK(!load(memory + 6 * MIB) && has_words(memory, 0, size, step));
		munmap(memory, size);
		CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		memory = map(fd, size, PROT_READ);
		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, step));
		part = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 8 * MIB);
		CHECK(part != MAP_FAILED && has_words(part, 8 * MIB, 4 * MIB, step));
		munmap(part, 4 * MIB);
		piece = (struct iovec){ memory + step, PAGE };
		CHECK(!pipe(pair) && vmsplice(pair[1], &piece, 1, 0) == PAGE);
		CHECK(read(pair[0], &word, 8) == 8 && word == word_of(step));
		close(pair[0]);
		close(pair[1]);
		CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
		CHECK(!munmap(memory + step, PAGE));
		CHECK(has_words(memory, 0, step, step));
		CHECK(others_see(fd, size, step));
	}
	munmap(memory, size);
	close(fd);
	mounted = MOUNT;
	CHECK(!umount("/tmp/giant"));
	rmdir("/tmp/giant");
}

static void *touch_first(void *argument)
{
	store(argument, 7);
	return NULL;
}

/*
 * A mapping of a part of a 1 GiB block has single pages. Between the two steps of a fault
 * the block is replaced by blocks of 2 MiB: they must not be mapped by a leaf that would
 * look like the morsel's own.
 */
static void a_part_of_a_gib_has_no_leaf(void)
{
	long giant = count("stats/filled_giant");
	pthread_t thread;
	char *memory, *by_page;
	int fd;

	if (!can_stop())
		return;
	mkdir("/tmp/giant", 0700);
	CHECK(!mount("none", "/tmp/giant", "morselfs", 0, "huge=1G,size=0"));
	mounted = "/tmp/giant";
	fd = make(GIB);
	mounted = MOUNT;
	memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED && write_text(STOP_AT, "before_attach"));
	pthread_create(&thread, NULL, touch_first, memory);
	wait_for_stopped();
	if (count("stats/filled_giant") == giant)
		lacks = "no block of 1 GiB";
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, GIB));
	CHECK(!mount("none", "/tmp/giant", NULL, MS_REMOUNT, "huge=2M"));
	CHECK(write_text(STOP_AT, "nowhere"));
	pthread_join(thread, NULL);
	CHECK(load(memory) == 7);
	if (!lacks)
		CHECK(smaps_of(memory, "FilePmdMapped:") == 0);
	munmap(memory, 4 * MIB);
	by_page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(by_page != MAP_FAILED && load(by_page) == 7 && mapped_by(by_page) == 1);
	munmap(by_page, PAGE);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	close(fd);
	CHECK(!umount("/tmp/giant"));
	rmdir("/tmp/giant");
}

/* Only if the kernel allows to inject memory failures. */
static void a_broken_page_is_no_other(void)
{
	size_t size = 4 * MIB, broken = 2 * MIB + PAGE;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ), *by_page;
	long before = count("pages");

	CHECK(memory != MAP_FAILED);
	if (!dies_by(child_status(poison, memory + broken), SIGBUS)) {
		lacks = "no hwpoison";
	} else {
		CHECK(has_words(memory, 0, broken, PAGE));
		CHECK(has_words(memory + broken + PAGE, broken + PAGE, MIB, PAGE));
		by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		CHECK(by_page != MAP_FAILED && has_words(by_page, 0, broken, PAGE));
		CHECK(dies_by(child_status(touch_for_reading, by_page + broken), SIGBUS));
		CHECK(count("pages") == before);
		munmap(by_page, size);
	}
	munmap(memory, size);
	close(fd);
}

#define KPF_BUDDY		10
#define KPF_COMPOUND_HEAD	15
#define KPF_HWPOISON		19

static bool page_is(uint64_t pfn, int flag)
{
	return word_in("/proc/kpageflags", pfn) >> flag & 1;
}

static char *told;

/* Poisoning a page that is poisoned already is handled as an access to it. */
static void be_told(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	_exit(info->si_code == BUS_MCEERR_AR && info->si_addr == told ? 3 : 4);
}

static void poison_and_be_told(char *at)
{
	struct sigaction action = { .sa_sigaction = be_told, .sa_flags = SA_SIGINFO };

	told = at;
	sigaction(SIGBUS, &action, NULL);
	poison(at);
}

static bool is_told(char *at)
{
	int status = child_status(poison_and_be_told, at);

	return WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

/* Attached, as single pages, and by read(). */
static void every_user_of_a_broken_page_is_told(void)
{
	size_t size = 4 * MIB, broken = 2 * MIB + 7 * PAGE;
	long large = count("stats/filled_large");
	int fd = make(size);
	char *memory, *by_page, text[2 * PAGE];
	uint64_t block = 0;

	CHECK(!fallocate(fd, 0, 0, size));
	large = count("stats/filled_large") - large;
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	munmap(memory, size);
	by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(by_page != MAP_FAILED && has_words(by_page, 0, size, PAGE));
	if (large < 2) {
		lacks = "no blocks of 2 MiB";
		goto out;
	}
	block = pfn_of(by_page);
	child_status(poison, by_page);
	if (!page_is(block, KPF_HWPOISON)) {
		lacks = "no hwpoison";
		block = 0;
		goto out;
	}
	CHECK(pread(fd, text, 1, 0) < 0 && errno == EIO);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EIO);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MIB));
	CHECK(page_is(block, KPF_COMPOUND_HEAD) && page_is(block, KPF_HWPOISON));
	CHECK(pread(fd, text, 1, 0) == 1 && !*text && pwrite(fd, "x", 1, 0) == 1);

	block = pfn_of(by_page + 2 * MIB);
	/* With two mappings the signal may name the other address. */
	munmap(by_page, size);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED && has_words(memory + 2 * MIB, 2 * MIB, 7 * PAGE, PAGE));
	for (int i = 0; i < 3; i++)
		CHECK(is_told(memory + broken));
	by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(by_page != MAP_FAILED && has_words(by_page + 2 * MIB, 2 * MIB, 7 * PAGE, PAGE));
	CHECK(dies_by(child_status(touch_for_reading, by_page + broken), SIGBUS));
	CHECK(pread(fd, text, PAGE, broken) < 0 && errno == EIO);
	CHECK(pread(fd, text, 2 * PAGE, broken - PAGE) == PAGE);
	CHECK(has_words(memory + broken + PAGE, broken + PAGE, MIB, PAGE));
	munmap(memory, size);
out:
	munmap(by_page, size);
	close(fd);
	/* The allocator does not reuse the block with the broken page. */
	if (block) {
		CHECK(page_is(block + 7, KPF_HWPOISON));
		CHECK(page_is(block, KPF_COMPOUND_HEAD) && !page_is(block, KPF_BUDDY));
	}
}

/* As for a machine check, without a reference. */
static bool break_page(uint64_t pfn)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%lx", pfn * PAGE);
	write_text("/sys/devices/system/memory/hard_offline_page", text);
	return page_is(pfn, KPF_HWPOISON);
}

/* Broken pages of 4 KiB. */
static void a_small_broken_page_stays_away(void)
{
	char *memory, *by_page;
	uint64_t page, next, word;
	int fd;

	mkdir("/tmp/pages", 0700);
	CHECK(!mount("none", "/tmp/pages", "morselfs", 0, "huge=never"));
	mounted = "/tmp/pages";
	fd = make_sealed(2 * MIB, PAGE);
	mounted = MOUNT;
	memory = map(fd, 2 * MIB, PROT_READ);
	by_page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && by_page != MAP_FAILED);
	CHECK(load(memory) == word_of(0) && has_words(by_page, 0, 2 * PAGE, PAGE));
	page = pfn_of(by_page);
	next = pfn_of(by_page + PAGE);
	child_status(poison, memory);
	if (!page_is(page, KPF_HWPOISON)) {
		lacks = "no hwpoison";
		page = 0;
	} else {
		CHECK(is_told(memory) && is_told(memory));
		CHECK(dies_by(child_status(touch_for_reading, by_page), SIGBUS));
		CHECK(pread(fd, &word, 8, 0) < 0 && errno == EIO);
		CHECK(has_words(memory + PAGE, PAGE, 2 * MIB - PAGE, PAGE));
		/* The only reference is that of the morsel, which keeps it. */
		munmap(by_page, 2 * PAGE);
		CHECK(break_page(next));
		by_page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		CHECK(by_page != MAP_FAILED);
		for (int i = 0; i < 2; i++)
			CHECK(dies_by(child_status(touch_for_reading, by_page + PAGE), SIGBUS));
		CHECK(pread(fd, &word, 8, PAGE) < 0 && errno == EIO);
		CHECK(is_told(memory + PAGE));
		CHECK(has_words(memory + 2 * PAGE, 2 * PAGE, 2 * MIB - 2 * PAGE, PAGE));
	}
	munmap(memory, 2 * MIB);
	munmap(by_page, 2 * PAGE);
	close(fd);
	CHECK(!umount("/tmp/pages"));
	rmdir("/tmp/pages");
	if (page) {
		CHECK(page_is(page, KPF_HWPOISON) && !page_is(page, KPF_BUDDY));
		CHECK(page_is(next, KPF_HWPOISON) && !page_is(next, KPF_BUDDY));
	}
}

/* As in lib/test_hmm_uapi.h, the HMM test device of Linux. */
struct mirror {
	uint64_t addr, ptr, npages, cpages, faults;
};

#define MIRROR_READ		_IOWR('H', 0x00, struct mirror)
#define MIRROR_WRITE		_IOWR('H', 0x01, struct mirror)
#define MIRROR_SNAPSHOT		_IOWR('H', 0x04, struct mirror)
#define MIRROR_EXCLUSIVE	_IOWR('H', 0x05, struct mirror)

static int ask_mirror(int device, unsigned long what, char *memory, char *buffer,
		      size_t size)
{
	struct mirror mirror = { .addr = (unsigned long)memory, .ptr = (unsigned long)buffer,
				 .npages = size / PAGE };

	return ioctl(device, what, &mirror) ? -errno : (int)mirror.cpages;
}

static bool mirror_reads(int device, char *memory, char *buffer, size_t size)
{
	memset(buffer, 0xff, size);
	return ask_mirror(device, MIRROR_READ, memory, buffer, size) == (int)(size / PAGE) &&
	       !memcmp(buffer, memory, size);
}

/* A device that mirrors the page tables of a process: a GPU, RDMA. */
static void use_a_mirror(char *unused)
{
	size_t size = 4 * MIB + 3 * PAGE;
	int device = open("/dev/hmm_dmirror0", O_RDWR), fd = make_sealed(size, PAGE);
	char *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *memory = map(fd, size, PROT_READ);

	(void)unused;
	CHECK(device >= 0 && buffer != MAP_FAILED && memory != MAP_FAILED);
	CHECK(mirror_reads(device, memory, buffer, size) && has_words(buffer, 0, size, PAGE));
	CHECK(ask_mirror(device, MIRROR_SNAPSHOT, memory, buffer, size) == (int)(size / PAGE));
	CHECK((buffer[0] & 3) == 1 && (buffer[size / PAGE - 1] & 3) == 1);
	CHECK(ask_mirror(device, MIRROR_WRITE, memory, buffer, PAGE) == -EPERM);
	/* Mapped as single pages now. */
	CHECK(!munmap(memory + MIB, PAGE));
	CHECK(mirror_reads(device, memory + 2 * MIB, buffer, 2 * MIB));
	munmap(memory, size);
	close(fd);

	/* Whole GiB, and missing pages. */
	fd = make_sealed(GIB, GIB);
	memory = map(fd, GIB, PROT_READ);
	CHECK(memory != MAP_FAILED && mirror_reads(device, memory, buffer, 4 * PAGE));
	CHECK(load(buffer) == word_of(0));
	munmap(memory, GIB);
	close(fd);

	/* An open one: the device loses removed pages. */
	fd = make(size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(buffer, size, PAGE);
	CHECK(ask_mirror(device, MIRROR_WRITE, memory, buffer, size) == (int)(size / PAGE));
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(ask_mirror(device, MIRROR_EXCLUSIVE, memory, buffer, PAGE) < 0);
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MIB));
	CHECK(mirror_reads(device, memory, buffer, size) && !load(buffer));
	CHECK(has_words(buffer + 2 * MIB, 2 * MIB, size - 2 * MIB, PAGE));
	munmap(memory, size);
	close(fd);
	_exit(failed);
}

static void devices_mirror_it(void)
{
	int status = -1;
	pid_t pid;

	if (access("/dev/hmm_dmirror0", R_OK | W_OK)) {
		lacks = "no test device of HMM";
		return;
	}
	pid = fork();
	if (!pid)
		use_a_mirror(NULL);
	for (int i = 0; i < 2000 && !waitpid(pid, &status, WNOHANG); i++)
		usleep(10000);
	CHECK(kill(pid, SIGKILL) && errno == ESRCH && !status);
}

#define TEST(name) { #name, name }

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(it_is_a_file),
	TEST(it_does_what_stores_need),
	TEST(mapping_and_file_are_one),
	TEST(mapping_takes_one_store_a_gib),
	TEST(an_open_one_takes_one_fault),
	TEST(a_large_page_where_one_fits),
	TEST(a_file_that_grows_has_large_pages),
	TEST(behind_the_end_is_sigbus),
	TEST(a_sealed_one_stays),
	TEST(no_seal_while_it_can_be_written),
	TEST(a_late_pin_is_seen),
	TEST(one_address_space_writes),
	TEST(neighbours_come_and_go),
	TEST(a_part_may_be_unmapped),
	TEST(rights_may_change),
	TEST(private_ones_are_copied_when_written),
	TEST(it_may_move),
	TEST(odd_places_are_mapped_by_page),
	TEST(odd_rights_are_mapped_by_block),
	TEST(advice_takes_nothing),
	TEST(a_block_is_never_split),
	TEST(children_share_a_sealed_one),
	TEST(a_smaller_size_is_felt_everywhere),
	TEST(holes_are_zeros),
	TEST(long_work_has_pauses),
	TEST(it_is_sent_by_descriptor),
	TEST(ptrace_cannot_write_a_sealed_one),
	TEST(it_is_in_no_rss),
	TEST(it_works_switched_off),
	TEST(what_is_unmapped_is_forgotten),
	TEST(nothing_is_mapped_behind_a_mapping),
	TEST(what_comes_to_a_file_is_zero),
	TEST(giving_up_races_with_reading),
	TEST(a_page_that_went_is_mapped_by_nobody),
	TEST(many_threads_fill_it),
	TEST(faults_and_sizes_race),
	TEST(it_is_read_past_the_page_cache),
	TEST(fixed_buffers_are_the_writers),
	TEST(nobody_merges_or_watches_it),
	TEST(policies_place_it),
	TEST(balancing_leaves_it),
	TEST(swapoff_leaves_it),
	TEST(damon_leaves_it),
	TEST(a_futex_is_shared),
	TEST(others_come_and_go_by_all_ways),
	TEST(a_child_cannot_write_its_parents),
	TEST(other_processes_memory_is_read),
	TEST(nonsense_is_refused),
	TEST(a_full_mount_is_enospc),
	TEST(a_mount_takes_half_of_memory),
	TEST(tables_count_and_go),
	TEST(names_count),
	TEST(each_allocation_may_fail),
	TEST(each_step_may_be_the_last),
	TEST(a_full_group_is_enomem),
	TEST(a_gib_is_one_page),
	TEST(a_part_of_a_gib_has_no_leaf),
	TEST(a_broken_page_is_no_other),
	TEST(every_user_of_a_broken_page_is_told),
	TEST(a_small_broken_page_stays_away),
	TEST(devices_mirror_it),
	TEST(nothing_is_left),
};

static bool is_asked_for(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;

	ksft_print_header();
	sched_getaffinity(0, sizeof(cpus), &cpus);
	mkdir("/tmp", 01777);
	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "morselfs", 0, NULL))
		ksft_exit_skip("no morselfs: %s\n", strerror(errno));
	ksft_set_plan(ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!is_asked_for(tests[i].name, argc, argv)) {
			ksft_test_result_skip("%s\n", tests[i].name);
			continue;
		}
		failed = false;
		lacks = NULL;
		tests[i].run();
		/* The threads of the next test run concurrently again. */
		sched_setaffinity(0, sizeof(cpus), &cpus);
		if (lacks && !failed)
			ksft_test_result_skip("%s: %s\n", tests[i].name, lacks);
		else
			ksft_test_result(!failed, "%s\n", tests[i].name);
		if (failed && getenv("TOLLFREE_STOP_AT_FAILURE"))
			ksft_exit_fail();
	}
	umount2(MOUNT, MNT_DETACH);
	ksft_finished();
}
