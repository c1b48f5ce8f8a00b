// SPDX-License-Identifier: GPL-2.0-only
/* Tests of limits of mounts and groups, and of wrong arguments. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "morsel.h"

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

#define GROUP	"/tmp/morsel-test-cgroup"

/* A task that fills its cgroup gets an error, and no task is killed. */
static void a_full_group_is_enomem(void)
{
	int fd = make(64 * MIB);
	pid_t pid;

	mkdir(GROUP, 0755);
	CHECK(!mount("none", GROUP, "cgroup2", 0, NULL) || errno == EBUSY);
	write_text(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP "/small", 0755);
	CHECK(write_text(GROUP "/small/memory.max", "16M"));
	pid = fork();
	if (!pid) {
		char *memory;
		size_t at = 0;

		/* It needs no further memory, but for the morsel. */
		mlockall(MCL_CURRENT);
		memory = map(fd, 64 * MIB, PROT_READ | PROT_WRITE);
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
	CHECK(ends_well(pid));
	CHECK(!ftruncate(fd, 0));
	CHECK(!rmdir(GROUP "/small"));
	CHECK(!umount(GROUP));
	rmdir(GROUP);
	close(fd);
}

const struct test morsel_limits_tests[] = {
	TEST(nonsense_is_refused),
	TEST(a_full_mount_is_enospc),
	TEST(a_mount_takes_half_of_memory),
	TEST(tables_count_and_go),
	TEST(names_count),
	TEST(a_full_group_is_enomem),
	{}
};
