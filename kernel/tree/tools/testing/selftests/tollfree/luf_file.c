// SPDX-License-Identifier: GPL-2.0-only
/* Tests of operations that change the content of a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "luf.h"

/* Exists in the lab's kernels with a file system that leases blocks to remote clients. */
#define LAYOUT		"/sys/kernel/debug/toll_lab_layout"

#ifndef FICLONE
#define FICLONE		_IOW(0x94, 9, int)
#endif

/* The reader reads beyond the end of the file. */
static int *short_file(void)
{
	int *at = map(PROT_READ, MAP_SHARED);

	int fd = open(names[0], O_RDWR);

	/* The rest of the last page is dirty, and dirty pages are not unmapped lazily. */
	must(fd >= 0 && !ftruncate(fd, PAGE - sizeof(int)) && !fsync(fd),
	     "truncate");
	close(fd);
	return at + PAGE / sizeof(int) - 1;
}

static int clone_other_file(void)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_RDWR);
	int error = ioctl(to, FICLONE, from) ? errno : 0;

	close(from);
	close(to);
	return error;
}

/* On file systems where a file can share the blocks of another one. */
static int *clonable_file(void)
{
	int *at = shared_file();

	if (clone_other_file() == EOPNOTSUPP) {
		munmap(at, PAGE);
		close(file);
		return cannot("this file system clones no files");
	}
	fill(names[0], OLD, PAGE);
	return at;
}

/* An overlay with a file only in the lower directory, which may be copied up. */
#define LAYERS		"lowerdir=lower,upperdir=upper,workdir=work"
#define OVERLAID	"merged/file"

static bool has_overlay;

static int *overlaid_file(bool is_copied_up)
{
	static const char *const dirs[] = { "lower", "upper", "work", "merged" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		mkdir(dirs[i], 0755);
	unlink("upper/file");
	fill("lower/file", OLD, PAGE);
	if (mount("luf", "merged", "overlay", 0, LAYERS)) {
		must(errno == ENODEV, "overlay");
		return cannot("a kernel without overlayfs");
	}
	has_overlay = true;
	if (is_copied_up)
		close(open(OVERLAID, O_RDWR));
	file = open(OVERLAID, O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0));
}

static int *lower_file(void)
{
	return overlaid_file(false);
}

static int *upper_file(void)
{
	return overlaid_file(true);
}

void end_overlay(void)
{
	if (has_overlay)
		must(!umount("merged"), "umount");
	has_overlay = false;
}

/* A write() of one word copies up the rest. */
static void act_copy_up(int *at)
{
	int fd = open(OVERLAID, O_RDWR), words[2] = { NEW, 0 };

	must(fd >= 0 && pwrite(fd, words, sizeof(*words), 0) == sizeof(*words), "copy up");
	must(pread(fd, words, sizeof(words), 0) == sizeof(words), "pread");
	if (words[0] != NEW || words[1] != OLD)
		ksft_print_msg("copied up: 0x%x, 0x%x\n", words[0], words[1]);
	else
		must(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at, "mmap");
	close(fd);
}

static void act_write_overlaid(int *at)
{
	int fd = open(OVERLAID, O_RDWR);

	must(fd >= 0 && pwrite(fd, aligned_page(), PAGE, 0) == PAGE, "pwrite");
	close(fd);
}

static void act_truncate_overlaid(int *at)
{
	must(!truncate(OVERLAID, 0), "truncate");
}

/* A file with blocks that a remote client can write. */
int *remote_file(void)
{
	struct statfs about;

	if (access(LAYOUT, F_OK))
		return cannot("a kernel that gives blocks to no remote client");
	must(!statfs(".", &about), "statfs");
	if (about.f_type != XFS_SUPER_MAGIC)
		return cannot("a file system that gives its blocks to no remote client");
	/* A file that ever shared blocks is not leased. */
	unlink(names[0]);
	return shared_file();
}

void act_write_remotely(int *at)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %s", NEW, names[0]);
	must(write_text(LAYOUT, text), LAYOUT);
	/* Its pages are never unmapped lazily again: later tests need another inode. */
	unlink(names[0]);
}

static void write_with(int flags)
{
	int fd = open(names[0], O_RDWR | flags);

	must(fd >= 0 && pwrite(fd, aligned_page(), PAGE, 0) == PAGE, "pwrite");
	close(fd);
}

static void act_write(int *at)
{
	write_with(0);
}

static void act_write_direct(int *at)
{
	write_with(O_DIRECT);
}

static void act_append(int *at)
{
	int fd = open(names[0], O_WRONLY | O_APPEND);

	must(write(fd, aligned_page(), sizeof(int)) == sizeof(int), "write");
	close(fd);
}

static void act_write_twice(int *at)
{
	int first = open(names[0], O_WRONLY);

	write_with(0);
	close(first);
}

/*
 * Three concurrent writers, each on its own CPU if there are four. They exist before
 * the page is unmapped: creating a thread changes mappings, which flushes.
 */
static struct {
	pthread_t threads[3];
	int waiting;
	bool begin;
	bool wrong;
} writers;

static void *write_as_one_of_many(void *cpu)
{
	stay_on((intptr_t)cpu < sysconf(_SC_NPROCESSORS_ONLN) ? (intptr_t)cpu : 0);
	__atomic_add_fetch(&writers.waiting, 1, __ATOMIC_SEQ_CST);
	while (!get(writers.begin))
		sched_yield();
	write_with(0);
	/* A writer that is done does not depend on the others. */
	if (read_now() == OLD)
		set(writers.wrong, true);
	return NULL;
}

static int *file_of_three_writers(void)
{
	static const intptr_t cpus[] = { 0, 2, 3 };

	set(writers.begin, false);
	set(writers.wrong, false);
	for (int i = 0; i < 3; i++)
		must(!pthread_create(&writers.threads[i], NULL, write_as_one_of_many,
				     (void *)cpus[i]), "no thread");
	while (get(writers.waiting) < 3)
		sched_yield();
	return shared_file();
}

void end_writers(void)
{
	if (!writers.waiting)
		return;
	set(writers.begin, true);
	for (int i = 0; i < 3; i++)
		pthread_join(writers.threads[i], NULL);
	writers.waiting = 0;
}

static void act_three_writers(int *at)
{
	end_writers();
	if (writers.wrong) {
		ksft_print_msg("one of three writers was done too early\n");
		failed = true;
	}
}

static void act_write_shared(int *at)
{
	int fd = open(names[0], O_RDWR);

	elsewhere = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(elsewhere != MAP_FAILED, "mmap");
	new_page(elsewhere);
	close(fd);
}

static void act_truncate(int *at)
{
	must(!truncate(names[0], 0), "truncate");
}

static void act_truncate_and_grow(int *at)
{
	must(!truncate(names[0], 0) && !truncate(names[0], PAGE), "truncate");
}

static void act_open_truncating(int *at)
{
	close(open(names[0], O_WRONLY | O_TRUNC));
	must(!truncate(names[0], PAGE), "truncate");
}

static void act_punch_hole(int *at)
{
	int fd = open(names[0], O_RDWR);

	must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
	     "fallocate");
	close(fd);
}

static void act_zero_range(int *at)
{
	int fd = open(names[0], O_RDWR);

	must(!fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE), "fallocate");
	close(fd);
}

static void act_copy_file_range(int *at)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_RDWR);
	loff_t here = 0, there = 0;

	must(copy_file_range(from, &here, to, &there, PAGE, 0) == PAGE, "copy_file_range");
	close(from);
	close(to);
}

static void act_clone(int *at)
{
	must(!clone_other_file(), "FICLONE");
}

static void act_sendfile(int *at)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_WRONLY);

	must(sendfile(to, from, NULL, PAGE) == PAGE, "sendfile");
	close(from);
	close(to);
}

const struct litmus luf_file_litmuses[] = {
	{ "write", shared_file, act_write, NEW },
	{ "write past the page cache", shared_file, act_write_direct, NEW },
	{ "write with O_APPEND", short_file, act_append, NEW },
	{ "write by a second writer", shared_file, act_write_twice, NEW },
	{ "write by three at a time", file_of_three_writers, act_three_writers, NEW },
	{ "write through a shared mapping", shared_file, act_write_shared, NEW },
	{ "truncate", shared_file, act_truncate, FAULTED },
	{ "truncate and grow", shared_file, act_truncate_and_grow, 0 },
	{ "open with O_TRUNC and grow", shared_file, act_open_truncating, 0 },
	{ "punch a hole", shared_file, act_punch_hole, 0 },
	{ "zero a range", shared_file, act_zero_range, 0 },
	{ "copy_file_range", shared_file, act_copy_file_range, OTHER },
	{ "clone another file", clonable_file, act_clone, OTHER },
	{ "sendfile", shared_file, act_sendfile, OTHER },
	{ "copy up in an overlay and write", lower_file, act_copy_up, NEW },
	{ "write to a file of an overlay", upper_file, act_write_overlaid, NEW },
	{ "truncate a file of an overlay", upper_file, act_truncate_overlaid, FAULTED },
	{ "write by a remote client", remote_file, act_write_remotely, NEW },
	{}
};
