// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the rights to a profile, and of its end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

/* File descriptors that an executed program inherits. */
#define READY_FD	100
#define GO_FD		101
#define PROFILE_FD	102

static int has_no_profile(void)
{
	char text[256];

	read_from(PROFILE, text, sizeof(text));
	return *text != '\0';
}

/* Start, wait, and have no profile. */
static int wait_without_profile(void)
{
	char c = 0;

	if (write(READY_FD, &c, 1) != 1 || read(GO_FD, &c, 1) != 1)
		return 200;
	return has_no_profile();
}

/* A descriptor opened for the previous program is not valid for this one. */
static int write_to_inherited(void)
{
	char text[4096];

	profile_of("heap 0 0x1000 " POOR, text);
	if (write(PROFILE_FD, text, strlen(text)) != -1)
		return 1;
	return errno == ESRCH || errno == EACCES ? has_no_profile() : 2;
}

/* A copy of this program with another name, on a mount that allows set-user-ID. */
static bool copy_to(const char *to, mode_t mode)
{
	int in = open(self, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool done = in >= 0 && out >= 0;

	while (done && sendfile(out, in, NULL, MIB) > 0)
		;
	close(in);
	close(out);
	return done && !chmod(to, mode);
}

static void other_programs_have_none(void)
{
	CHECK(copy_to("/tmp/other", 0755));
	CHECK(run_path("/tmp/other", FIRST "0 0x800000 " POOR, "touch_8", 0) == 8);
	unlink("/tmp/other");
}

static void more_rights_drop_it(void)
{
	CHECK(!mkdir("/tmp/suid", 0755) || errno == EEXIST);
	CHECK(!mount("none", "/tmp/suid", "tmpfs", 0, "mode=755"));
	CHECK(copy_to("/tmp/suid/econ", 0755));
	CHECK(run_path("/tmp/suid/econ", FIRST "0 0x800000 " POOR, "touch_8", 1000) == 0);
	CHECK(!chmod("/tmp/suid/econ", 04755));
	CHECK(run_path("/tmp/suid/econ", FIRST "0 0x800000 " POOR, "touch_8", 1000) == 8);
	CHECK(!umount("/tmp/suid"));
	rmdir("/tmp/suid");
}

/* An ordinary user, to which others of the same user may attach. */
static bool become_user(void)
{
	return !setuid(1000) && !prctl(PR_SET_DUMPABLE, 1);
}

/* A set-user-ID program on its own mount. */
static bool make_suid(void)
{
	if (mkdir("/tmp/suid", 0755) && errno != EEXIST)
		return false;
	return !mount("none", "/tmp/suid", "tmpfs", 0, "mode=755") &&
	       copy_to("/tmp/suid/econ", 04755);
}

static void remove_suid(void)
{
	CHECK(!umount("/tmp/suid"));
	rmdir("/tmp/suid");
}

static void *write_page(void *page)
{
	int fd = *(int *)page;
	char *text = (char *)page + PAGE;
	/* The page contains the descriptor, followed by the profile text. */
	size_t length = ((size_t *)page)[1];
	ssize_t done = write(fd, text, length);

	return (void *)(done < 0 ? (intptr_t)-errno : (intptr_t)done);
}

/*
 * Write the profile of a process that executes a program with more privileges while the
 * kernel still waits for the text. Return: 0 if the write fails.
 */
static int write_stalled(pid_t pid, int begin, int ready)
{
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_copy copy = { .len = PAGE };
	static char text[PAGE];
	struct uffd_msg message;
	__u64 features = 0;
	char path[64], c = 0;
	pthread_t thread;
	void *done = NULL;
	char *page;
	int uffd = userfaultfd(&features);

	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area.range.start = (uintptr_t)page + PAGE;
	area.range.len = PAGE;
	if (uffd < 0 || page == MAP_FAILED || ioctl(uffd, UFFDIO_REGISTER, &area))
		return 10;
	if (!become_user())
		return 11;
	profile_of("heap 0 0x1000 " POOR, text);
	snprintf(path, sizeof(path), "/proc/%d/mm_profile", pid);
	*(int *)page = open(path, O_RDWR);
	((size_t *)page)[1] = strlen(text);
	if (*(int *)page < 0)
		return 12;
	if (pthread_create(&thread, NULL, write_page, page) ||
	    read(uffd, &message, sizeof(message)) != sizeof(message))
		return 13;
	/* From here on the kernel waits. */
	if (write(begin, &c, 1) != 1 || read(ready, &c, 1) != 1)
		return 14;
	copy.src = (uintptr_t)text;
	copy.dst = (uintptr_t)page + PAGE;
	if (ioctl(uffd, UFFDIO_COPY, &copy) || pthread_join(thread, &done))
		return 15;
	return (intptr_t)done == -EACCES || (intptr_t)done == -ESRCH ? 0 : 1;
}

static void a_stalled_write_does_not_reach_more_rights(void)
{
	int begin[2], ready[2], go[2], status;
	__u64 features = 0;
	pid_t pid, writer;
	char c = 0;
	int uffd = userfaultfd(&features);

	if (uffd < 0) {
		lacks = "no userfaultfd";
		return;
	}
	close(uffd);
	CHECK(make_suid());
	CHECK(!pipe(begin) && !pipe(ready) && !pipe(go));
	pid = fork();
	if (!pid) {
		if (!become_user() || read(begin[0], &c, 1) != 1)
			_exit(210);
		dup2(ready[1], READY_FD);
		dup2(go[0], GO_FD);
		execl("/tmp/suid/econ", "/tmp/suid/econ", "-", "wait_without_profile", NULL);
		_exit(212);
	}
	writer = fork();
	if (!writer) {
		/* Wait until the other process belongs to the same user. */
		char path[64];
		struct stat about = {};

		snprintf(path, sizeof(path), "/proc/%d/mm_profile", pid);
		for (int i = 0; i < 6000 && about.st_uid != 1000; i++) {
			usleep(1000);
			stat(path, &about);
		}
		_exit(write_stalled(pid, begin[1], ready[0]));
	}
	CHECK(waitpid(writer, &status, 0) == writer && WIFEXITED(status));
	if (!CHECK(!WEXITSTATUS(status)))
		ksft_print_msg("the writer says %d\n", WEXITSTATUS(status));
	CHECK(write(begin[1], &c, 1) == 1 && write(go[1], &c, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (!CHECK(!WEXITSTATUS(status)))
		ksft_print_msg("the program says %d\n", WEXITSTATUS(status));
	for (int i = 0; i < 2; i++) {
		close(begin[i]);
		close(ready[i]);
		close(go[i]);
	}
	remove_suid();
}

static void a_descriptor_ends_with_its_program(void)
{
	int status;
	pid_t pid;

	CHECK(make_suid());
	pid = fork();
	if (!pid) {
		if (!become_user() || dup2(open(PROFILE, O_RDWR), PROFILE_FD) < 0)
			_exit(210);
		execl("/tmp/suid/econ", "/tmp/suid/econ", "-", "write_to_inherited", NULL);
		_exit(212);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (!CHECK(!WEXITSTATUS(status)))
		ksft_print_msg("the program says %d\n", WEXITSTATUS(status));
	remove_suid();
}

static void others_may_not(void)
{
	char path[64], text[256];
	int status, fd, pair[2];
	pid_t pid = getpid();

	snprintf(path, sizeof(path), "/proc/%d/mm_profile", pid);
	pid = fork();
	if (!pid) {
		if (setuid(1000))
			_exit(1);
		_exit(open(path, O_RDWR) >= 0 || (errno != EACCES && errno != EPERM));
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);

	/* It exits while the file is open elsewhere. */
	CHECK(!pipe(pair));
	pid = fork();
	if (!pid) {
		char c;

		close(pair[1]);
		_exit(read(pair[0], &c, 1) != 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/mm_profile", pid);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	close(pair[0]);
	close(pair[1]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	profile_of("", text);
	CHECK(write(fd, text, strlen(text)) == -1 && errno == ESRCH);
	close(fd);
}

const struct test econ_rights_tests[] = {
	TEST(other_programs_have_none),
	TEST(more_rights_drop_it),
	TEST(a_stalled_write_does_not_reach_more_rights),
	TEST(a_descriptor_ends_with_its_program),
	TEST(others_may_not),
	{}
};

const struct part econ_rights_parts[] = {
	PART(wait_without_profile),
	PART(write_to_inherited),
	{}
};
