// SPDX-License-Identifier: GPL-2.0-only
/* Tests of extended attributes and access control lists of inodes of morselfs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "morsel.h"

#define OBJECT	MOUNT "/object"

static const char *const all_names[] = { "user.a", "trusted.b", "security.c" };
/* Linux itself refuses user.* for all but files and directories. */
static const char *const other_names[] = { "trusted.b", "security.c" };

static bool is_listed(const char *path, const char *name)
{
	char list[256];
	ssize_t length = llistxattr(path, list, sizeof(list));

	for (ssize_t at = 0; at < length; at += strlen(list + at) + 1)
		if (!strcmp(list + at, name))
			return true;
	return false;
}

static void keeps(const char *path, const char *name)
{
	char value[16];

	CHECK(lgetxattr(path, name, value, 16) < 0 && errno == ENODATA);
	CHECK(lsetxattr(path, name, "x", 1, XATTR_REPLACE) && errno == ENODATA);
	CHECK(!lsetxattr(path, name, "one", 3, XATTR_CREATE));
	CHECK(lsetxattr(path, name, "x", 1, XATTR_CREATE) && errno == EEXIST);
	CHECK(!lsetxattr(path, name, "three", 5, 0) && is_listed(path, name));
	CHECK(lgetxattr(path, name, NULL, 0) == 5);
	CHECK(lgetxattr(path, name, value, 16) == 5 && !memcmp(value, "three", 5));
	CHECK(lgetxattr(path, name, value, 2) < 0 && errno == ERANGE);
	CHECK(!lremovexattr(path, name) && !is_listed(path, name));
	CHECK(lremovexattr(path, name) && errno == ENODATA);
	CHECK(!lsetxattr(path, name, "", 0, 0) && !lgetxattr(path, name, value, 16));
}

static void all_inodes_have_attributes(void)
{
	int fd = open(OBJECT, O_RDWR | O_CREAT | O_EXCL, 0600);

	for (size_t i = 0; i < ARRAY_SIZE(all_names); i++)
		keeps(OBJECT, all_names[i]);
	CHECK(lgetxattr(OBJECT, "other.a", NULL, 0) < 0 && errno == EOPNOTSUPP);
	/* They belong to the inode, and not to its name. */
	CHECK(!rename(OBJECT, OBJECT "2") && fgetxattr(fd, "user.a", NULL, 0) == 0);
	CHECK(!unlink(OBJECT "2") && fgetxattr(fd, "user.a", NULL, 0) == 0);
	close(fd);
	CHECK(!mkdir(OBJECT, 0700));
	for (size_t i = 0; i < ARRAY_SIZE(all_names); i++)
		keeps(OBJECT, all_names[i]);
	CHECK(!rmdir(OBJECT) && !symlink("nowhere", OBJECT));
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++)
		keeps(OBJECT, other_names[i]);
	CHECK(!unlink(OBJECT) && !mkfifo(OBJECT, 0600));
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++)
		keeps(OBJECT, other_names[i]);
	CHECK(!unlink(OBJECT));
}

static void nameless_ones_have_them_too(void)
{
	int fd = make(0);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(!fsetxattr(fd, "user.a", "abc", 3, 0));
	CHECK(!linkat(AT_FDCWD, path, AT_FDCWD, OBJECT, AT_SYMLINK_FOLLOW));
	CHECK(lgetxattr(OBJECT, "user.a", path, 3) == 3 && !memcmp(path, "abc", 3));
	CHECK(!unlink(OBJECT));
	close(fd);
}

/* Attributes are memory of the kernel. */
static void attributes_have_a_limit(void)
{
	static char value[60000];
	int fd = make(0);

	CHECK(!fsetxattr(fd, "user.a", value, sizeof(value), 0));
	CHECK(fsetxattr(fd, "user.b", value, 10000, 0) && errno == ENOSPC);
	CHECK(!fsetxattr(fd, "user.b", value, 1000, 0));
	CHECK(!fsetxattr(fd, "user.a", value, 10, 0));
	CHECK(!fsetxattr(fd, "user.c", value, 50000, 0));
	CHECK(!fremovexattr(fd, "user.c") && !fsetxattr(fd, "user.a", value, 60000, 0));
	close(fd);
}

/* As in linux/posix_acl_xattr.h. */
struct entry {
	uint16_t tag, permissions;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct entry entries[5];
};

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 0x10, OTHER = 0x20 };

/* The owner may do everything, a user may read, others nothing. */
static const struct acl one_reads = {
	.version = 2,
	.entries = {
		{ USER_OBJ, 7, -1 }, { USER, 4, 1234 }, { GROUP_OBJ, 0, -1 },
		{ MASK, 4, -1 }, { OTHER, 0, -1 },
	},
};

static void open_as_user(char *path)
{
	bool may_read, may_write;

	if (setresgid(1234, 1234, 1234) || setresuid(1234, 1234, 1234))
		_exit(2);
	may_read = open(path, O_RDONLY) >= 0;
	may_write = open(path, O_RDWR) >= 0;
	_exit(may_write ? 3 : !may_read);
}

static bool user_reads(char *path)
{
	return !child_status(open_as_user, path);
}

static void a_list_gives_access(void)
{
	int fd = open(OBJECT, O_RDWR | O_CREAT | O_EXCL, 0600);
	struct stat stat;
	struct acl acl;

	CHECK(!user_reads(OBJECT));
	CHECK(!lsetxattr(OBJECT, "system.posix_acl_access", &one_reads, sizeof(one_reads), 0));
	CHECK(user_reads(OBJECT));
	CHECK(!fstat(fd, &stat) && (stat.st_mode & 07777) == 0740);
	CHECK(lgetxattr(OBJECT, "system.posix_acl_access", &acl, sizeof(acl)) == sizeof(acl));
	CHECK(!memcmp(&acl, &one_reads, sizeof(acl)));
	CHECK(!fchmod(fd, 0600) && !user_reads(OBJECT));
	CHECK(!fcntl(fd, F_ADD_SEALS, 0x20));
	CHECK(lsetxattr(OBJECT, "system.posix_acl_access", &one_reads, sizeof(one_reads), 0) &&
	      errno == EPERM);
	CHECK(!unlink(OBJECT));
	close(fd);
}

static bool has_mode(const char *path, mode_t mode)
{
	struct stat stat;

	return !lstat(path, &stat) && (stat.st_mode & 07777) == mode;
}

/* Without a list the umask applies, with that of the directory it does not. */
static void new_inodes_inherit_a_list(void)
{
	mode_t before = umask(027);
	char path[64];
	int fd;

	CHECK(!mkdir(OBJECT, 0777) && has_mode(OBJECT, 0750));
	CHECK(!mkdir(OBJECT "/d", 0777) && has_mode(OBJECT "/d", 0750) && !rmdir(OBJECT "/d"));
	CHECK(!mknod(OBJECT "/n", S_IFIFO | 0666, 0) && has_mode(OBJECT "/n", 0640));
	fd = open(OBJECT "/f", O_RDWR | O_CREAT | O_EXCL, 0666);
	CHECK(fd >= 0 && has_mode(OBJECT "/f", 0640) && !close(fd));
	CHECK(!unlink(OBJECT "/n") && !unlink(OBJECT "/f"));
	fd = open(OBJECT, O_RDWR | O_TMPFILE, 0666);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(!linkat(AT_FDCWD, path, AT_FDCWD, OBJECT "/t", AT_SYMLINK_FOLLOW));
	CHECK(has_mode(OBJECT "/t", 0640) && !unlink(OBJECT "/t") && !close(fd));

	CHECK(!chmod(OBJECT, 0755));
	CHECK(!lsetxattr(OBJECT, "system.posix_acl_default", &one_reads, sizeof(one_reads), 0));
	fd = open(OBJECT "/f", O_RDWR | O_CREAT | O_EXCL, 0666);
	CHECK(fd >= 0 && !close(fd) && user_reads(OBJECT "/f") && !unlink(OBJECT "/f"));
	fd = open(OBJECT, O_RDWR | O_TMPFILE, 0666);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(!linkat(AT_FDCWD, path, AT_FDCWD, OBJECT "/t", AT_SYMLINK_FOLLOW));
	CHECK(user_reads(OBJECT "/t") && !unlink(OBJECT "/t") && !close(fd));
	CHECK(!rmdir(OBJECT));
	umask(before);
}

const struct test morsel_xattr_tests[] = {
	TEST(all_inodes_have_attributes),
	TEST(nameless_ones_have_them_too),
	TEST(attributes_have_a_limit),
	TEST(a_list_gives_access),
	TEST(new_inodes_inherit_a_list),
	{}
};
