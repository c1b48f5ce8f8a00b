// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of swap: by madvise(), by another process, by reclaim of a cgroup. */
#ifndef STALE_SWAP_H
#define STALE_SWAP_H

#include "settings.h"
#include "stale_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>

static void swap_prepare(void)
{
	if (access("/sys/block/zram0", F_OK))
		not_possible("the kernel has no zram0 to swap to");
	if (!swap_on())
		not_possible("no swap on " ZRAM_DEVICE ": %s", strerror(errno));
}

static void pageout_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	note(region, LENGTH);
	advise(region, LENGTH, MADV_PAGEOUT);
	renew_and_finish(region, LENGTH);
}

/* Half of the pages are in swap, and come back by swapoff() while the toucher uses the other half. */
static void swapoff_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	note(region, LENGTH / 2);
	advise(region, LENGTH / 2, MADV_PAGEOUT);
	touch(region + LENGTH / 2, LENGTH / 2, any_use());
	if (swapoff(ZRAM_DEVICE))
		fail("swapoff");
	renew_and_finish(region, LENGTH);
	swap_prepare();
}

static void page_out_parent(char *region)
{
	struct iovec range = { .iov_base = region, .iov_len = LENGTH };
	int parent = (int)syscall(SYS_pidfd_open, getppid(), 0);

	if (parent < 0)
		fail("pidfd_open");
	if (syscall(SYS_process_madvise, parent, &range, 1ul, MADV_PAGEOUT, 0) != (long)LENGTH)
		fail("process_madvise");
	_exit(0);
}

/* The child must not share the pages: shared ones are not paged out. */
static void process_madvise_round(void)
{
	char *region = filled();
	pid_t child;

	advise(region, LENGTH, MADV_DONTFORK);
	touch(region, LENGTH, any_use());
	note(region, LENGTH);
	child = new_child();
	if (child == 0)
		page_out_parent(region);
	wait_for_children(1);
	renew_and_finish(region, LENGTH);
}

static void reclaim_prepare(void)
{
	swap_prepare();
	if (!group_enter())
		not_possible(GROUP_RECLAIM ": %s", strerror(errno));
}

/* Reclaim is free to find less than is requested. */
static void reclaim_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	note(region, LENGTH);
	if (!set_number(GROUP_RECLAIM, 2 * LENGTH) && errno != EAGAIN)
		fail(GROUP_RECLAIM);
	renew_and_finish(region, LENGTH);
}

#endif
