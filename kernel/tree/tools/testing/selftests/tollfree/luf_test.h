/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of lazy unmap flush. */
#ifndef TOLLFREE_LUF_TEST_H
#define TOLLFREE_LUF_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define LUF	"/sys/kernel/mm/luf/"
#define GROUP	"/tmp/luf-cgroup"

/*
 * An emulator that runs several CPUs concurrently may continue forever with code that
 * another CPU has changed, including breakpoints of a finished patch. On such an
 * emulator the runner says so, and no code is changed that another CPU may run.
 */
static inline bool code_is_fixed(void)
{
	return getenv("TOLLFREE_CODE_IS_FIXED");
}

/* Makes the test's memory reclaimable on its own. */
static inline void enter_group(void)
{
	mkdir(GROUP, 0755);
	if (mount("none", GROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		ksft_exit_skip("no cgroup2: %s\n", strerror(errno));
	write_text(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP "/test", 0755);
	if (!write_text(GROUP "/test/cgroup.procs", "0"))
		ksft_exit_skip("no cgroup: %s\n", strerror(errno));
}

/* Skip all tests if lazy unmaps are not possible; enter the tests' directory and cgroup. */
static inline void begin_luf_test(void)
{
	const char *dir = getenv("TOLLFREE_TEST_DIR");

	if (access(LUF, F_OK))
		ksft_exit_skip("no " LUF ": a kernel without CONFIG_LUF\n");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ksft_exit_skip("one CPU: nothing is unmapped lazily\n");
	dir = dir ? dir : "/data";
	if (chdir(dir))
		ksft_exit_skip("%s: %s\n", dir, strerror(errno));
	enter_group();
}

/* A statistic of the kernel, in pages or events since boot. */
static inline long count(const char *name)
{
	char path[320];

	snprintf(path, sizeof(path), LUF "stats/%s", name);
	return number(path);
}

/* Pages that reclaim unmapped lazily. */
static inline long deferred(void)
{
	return count("deferred_direct") + count("deferred_kswapd");
}

static inline long all_deferred(void)
{
	return deferred() + count("deferred_demotion") + count("deferred_promotion") +
	       count("deferred_compaction");
}

static inline long released(void)
{
	return count("released_flushed") + count("released_elided");
}

#endif
