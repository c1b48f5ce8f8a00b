// SPDX-License-Identifier: GPL-2.0-only
/* Tests of other users of zeroed blocks: everything that needs memory can have it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

#define BLOCKS	"/sys/devices/system/memory/"
#define GROUP	"/tmp/econ-cgroup"

static int touch_each_in_group(void)
{
	return write_text(GROUP "/small/cgroup.procs", "0") ? touch_each_of_8() : 202;
}

static void what_is_kept_is_available(void)
{
	bool is_kept = false;
	long before = 0;

	/* Earlier tests may have left too few free blocks. */
	for (int i = 0; i < 12 && !is_kept; i++) {
		if (i)
			free_more_blocks();
		limit_to("0");
		want_many();
		before = memory_of("MemAvailable:");
		limit_to("32");
		/* Without a process that frees blocks, which per-CPU lists keep for a while. */
		/* And more on other nodes, if earlier tests wanted some there. */
		is_kept = wait_for_blocks(32, 5) >= 32;
	}
	if (!CHECK(is_kept))
		print_stock();
	CHECK(memory_of("MemAvailable:") > before - 32);
	all_are_accounted_for();
}

/*
 * Allocate single pages until no block is kept. They are locked: kswapd would swap others out
 * before it takes blocks that pay for their memory.
 */
static int use_memory(void)
{
	size_t most = memory_of("MemTotal:") * MIB;

	for (size_t used = 0; used < most && zeroed("blocks"); used += MIB) {
		char *memory = map(MIB);

		if (!memory || madvise(memory, MIB, MADV_NOHUGEPAGE) || mlock(memory, MIB))
			return 1;
	}
	return zeroed("blocks") != 0;
}

static void who_needs_memory_has_it(void)
{
	long kills = vmstat_of("\noom_kill ");
	int status;
	pid_t pid;

	limit_to("32");
	CHECK(stock_up(32));
	pid = fork();
	if (!pid)
		_exit(use_memory());
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(vmstat_of("\noom_kill ") == kills);
	all_are_accounted_for();
}

/* Number of blocks, and number of blocks freed for one huge page. */
static bool soak_up_kept(long *kept, long *most)
{
	long before;

	write_text(LEDGER, "off");
	stay_on(0);
	if (!break_up(16 * PAGE) || !begin_to_soak())
		return false;
	before = *kept = zeroed("blocks");
	while (before && soak_up_block()) {
		long now = zeroed("blocks");

		if (before - now > *most)
			*most = before - now;
		before = now;
	}
	return !before;
}

/* Return: false if the attempt was not possible. */
static bool soak_up_in_child(long nr[2])
{
	bool done;
	int fds[2];
	pid_t pid;

	nr[0] = 0;
	nr[1] = 0;
	if (!stock_up(16) || !CHECK(!pipe(fds)))
		return false;
	pid = fork();
	if (!pid)
		_exit(!soak_up_kept(&nr[0], &nr[1]) ||
		      write(fds[1], nr, 2 * sizeof(*nr)) != 2 * sizeof(*nr));
	close(fds[1]);
	done = read(fds[0], nr, 2 * sizeof(*nr)) == 2 * sizeof(*nr);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return done;
}

/* One at a time: the others stay. Another task may need some concurrently. */
static void who_needs_a_block_has_it(void)
{
	bool is_tried = false, is_seen = false;
	long nr[2];

	limit_to("16");
	for (int i = 0; i < 10 && !is_seen && !failed; i++) {
		if (!soak_up_in_child(nr) || nr[0] < 8)
			continue;
		ksft_print_msg("%ld of %ld blocks at once\n", nr[1], nr[0]);
		is_tried = true;
		is_seen = nr[1] <= 2;
	}
	if (is_tried)
		CHECK(is_seen);
	else
		lacks = "too few were left";
	all_are_accounted_for();
}

static void drop_caches_drops_them(void)
{
	long given;

	limit_to("8");
	given = zeroed("given_back");
	for (int i = 0; i < 10 && zeroed("given_back") < given + 4 && stock_up(8); i++) {
		given = zeroed("given_back");
		CHECK(write_text("/proc/sys/vm/drop_caches", "2"));
	}
	CHECK(zeroed("given_back") >= given + 4);
	all_are_accounted_for();
}

static void what_a_group_may_not_have_is_put_back(void)
{
	long back = zeroed("put_back");

	mount_groups(GROUP);
	mkdir(GROUP "/small", 0755);
	if (write_text(GROUP "/small/memory.max", "1M")) {
		limit_to("8");
		CHECK(stock_up(4));
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_each_in_group") == 0);
		CHECK(zeroed("put_back") >= back + 4);
		all_are_accounted_for();
	} else {
		lacks = "no groups";
	}
	rmdir(GROUP "/small");
	unmount_groups(GROUP);
}

/* A kept block in /proc/kpageflags: without an owner. */
static bool is_kept(int flags, unsigned long frame)
{
	const uint64_t known = 1 << 5 | 1 << 7 | 1 << 12 | 1 << 17 | 1 << 26;
	uint64_t head = 0, tail = 0;

	if (pread(flags, &head, 8, 8 * frame) != 8 ||
	    pread(flags, &tail, 8, 8 * (frame + 511)) != 8)
		return false;
	return head & 1 << 15 && tail & 1 << 16 && !(head & known);
}

/* A child tries, because it may have to be killed. */
static bool take_offline(const char *path)
{
	char state[16] = "";
	pid_t pid = fork();

	if (!pid) {
		alarm(20);
		_exit(!write_text(path, "offline"));
	}
	waitpid(pid, NULL, 0);
	read_from(path, state, sizeof(state));
	return !strcmp(state, "offline\n");
}

static void put_online(const char *path)
{
	for (int i = 0; i < 6000 && !write_text(path, "online"); i++)
		usleep(10000);
}

/* Return: number of the first memory block, from @block on, that contains a kept block. */
static int with_kept(int flags, int block, unsigned long frames)
{
	char path[128];

	for (;; block++) {
		snprintf(path, sizeof(path), BLOCKS "memory%d/state", block);
		if (access(path, W_OK))
			return -1;
		for (unsigned long frame = block * frames; frame < (block + 1) * frames;
		     frame += 512)
			if (is_kept(flags, frame))
				return block;
	}
}

static void memory_with_blocks_goes_offline(void)
{
	int flags = open("/proc/kpageflags", O_RDONLY), block = -1;
	char text[32] = "", path[128];
	unsigned long frames;

	read_from(BLOCKS "block_size_bytes", text, sizeof(text));
	frames = strtoul(text, NULL, 16) / PAGE;
	lacks = "nothing can be taken offline";
	limit_to("32");
	while (frames && flags >= 0 && stock_up(32)) {
		block = with_kept(flags, block + 1, frames);
		if (block < 0)
			break;
		snprintf(path, sizeof(path), BLOCKS "memory%d/state", block);
		if (take_offline(path)) {
			lacks = NULL;
			put_online(path);
			break;
		}
		/* Other tasks may interfere, or it is the kept block. */
		limit_to("0");
		if (take_offline(path)) {
			put_online(path);
			ksft_print_msg("it goes offline only if nothing is kept\n");
			failed = true;
			break;
		}
		limit_to("32");
	}
	close(flags);
	all_are_accounted_for();
}

/* One page is offlined, and the rest of the block is usable. */
static void a_page_of_a_block_may_go_bad(void)
{
	const char *file = "/sys/devices/system/memory/soft_offline_page";
	int flags = open("/proc/kpageflags", O_RDONLY), block;
	char text[32] = "";
	unsigned long frames, frame;
	bool done = false;

	read_from(BLOCKS "block_size_bytes", text, sizeof(text));
	frames = strtoul(text, NULL, 16) / PAGE;
	if (access(file, W_OK) || flags < 0 || !frames) {
		lacks = "no pages that may go bad";
		return;
	}
	limit_to("8");
	/* Another task may get the block first. */
	for (int i = 0; i < 10 && !done && stock_up(8); i++) {
		block = with_kept(flags, 0, frames);
		if (!CHECK(block >= 0))
			break;
		for (frame = block * frames; !is_kept(flags, frame); frame += 512)
			;
		snprintf(text, sizeof(text), "0x%lx", (frame + 77) * PAGE);
		done = write_text(file, text);
	}
	CHECK(done);
	close(flags);
	all_are_accounted_for();
}

const struct test econ_zero_use_tests[] = {
	TEST(what_is_kept_is_available),
	TEST(who_needs_memory_has_it),
	TEST(who_needs_a_block_has_it),
	TEST(drop_caches_drops_them),
	TEST(what_a_group_may_not_have_is_put_back),
	TEST(memory_with_blocks_goes_offline),
	TEST(a_page_of_a_block_may_go_bad),
	{}
};

const struct part econ_zero_use_parts[] = {
	PART(touch_each_in_group),
	{}
};
