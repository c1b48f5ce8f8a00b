/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by all tests of the queue. */
#ifndef TOLLFREE_TEST_H
#define TOLLFREE_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kselftest.h"

#define PAGE	4096UL

/* Other threads access the same memory. */
#define get(variable)		__atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define set(variable, to)	__atomic_store_n(&(variable), to, __ATOMIC_SEQ_CST)

/* End the program if a test cannot continue. */
static inline void must(bool done, const char *what)
{
	if (!done)
		ksft_exit_fail_msg("%s: %s\n", what, strerror(errno));
}

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Read a file of sysfs. */
static inline long number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	return atol(text);
}

static inline void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Open a userfaultfd and get its features, unchanged on failure. */
static inline int userfaultfd(__u64 *features)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api))
		*features = api.features;
	return fd;
}

#endif
