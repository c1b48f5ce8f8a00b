/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of lazy unmap flush share. */
#ifndef TOLLFREE_LUF_TEST_H
#define TOLLFREE_LUF_TEST_H

#include <sys/mount.h>
#include <sys/stat.h>

#include "test.h"

#define LUF	"/sys/kernel/mm/luf/"
#define GROUP	"/tmp/luf-cgroup"

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
