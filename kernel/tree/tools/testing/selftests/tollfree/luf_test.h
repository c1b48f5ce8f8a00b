/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of lazy unmap flush share. */
#ifndef TOLLFREE_LUF_TEST_H
#define TOLLFREE_LUF_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kselftest.h"

#define PAGE	4096UL
#define LUF	"/sys/kernel/mm/luf/"
#define GROUP	"/tmp/luf-cgroup"

/* Others change what is read, and read what is written. */
#define get(variable)		__atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define set(variable, to)	__atomic_store_n(&(variable), to, __ATOMIC_SEQ_CST)

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/*
 * An emulator that runs CPUs at a time goes on with code that another CPU has
 * changed, now and then and for ever, breakpoints of a patch that is done
 * included. Who runs the tests there says so, and no code is changed that another
 * CPU may run.
 */
static bool code_is_fixed(void)
{
	return getenv("TOLLFREE_CODE_IS_FIXED");
}

/* What the test maps can then be reclaimed by itself. */
static void enter_group(void)
{
	mkdir(GROUP, 0755);
	if (mount("none", GROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		ksft_exit_skip("no cgroup2: %s\n", strerror(errno));
	write_text(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP "/test", 0755);
	if (!write_text(GROUP "/test/cgroup.procs", "0"))
		ksft_exit_skip("no cgroup: %s\n", strerror(errno));
}

#endif
