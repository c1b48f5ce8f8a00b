// SPDX-License-Identifier: GPL-2.0-only
/* Tests of operations that wait for flushes in progress. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luf_pool.h"

#define DELAY	LUF "debug_flush_delay_ms"
#define MEMORY	"/sys/devices/system/memory"

#define SOFT_OFFLINE	MEMORY "/soft_offline_page"
#define CMA	"/sys/kernel/debug/cma/reserved/"

static pid_t start_slow_flush(int ms)
{
	pid_t child;

	if (!defer_some(CHUNK))
		return -1;
	/* The last pages may have filled a pool, which is flushed at once. */
	if (!waiting())
		defer(0, CHUNK);
	if (!waiting())
		return -1;
	set_number(DELAY, ms);
	child = fork();
	must(child >= 0, "fork");
	if (!child)
		_exit(write_text(LUF "drain", "1") ? KSFT_PASS : KSFT_FAIL);
	/* Any task may flush first. */
	for (int i = 0; i < 1000 && number(DELAY) > 0; i++)
		usleep(1000);
	return child;
}

/* Act during a flush that takes the given time. */
static void during_flush(int ms, bool (*act)(void))
{
	pid_t child;

	if (access(DELAY, F_OK)) {
		lacks = "a kernel without CONFIG_LUF_DEBUG";
		return;
	}
	for (int tries = 0; tries < 5; tries++) {
		bool done;

		child = start_slow_flush(ms);
		if (child < 0)
			break;
		/* A slow machine may be too late. */
		done = number(DELAY) < 0;
		if (done)
			CHECK(act());
		waitpid(child, NULL, 0);
		if (done)
			return;
	}
	ksft_print_msg("nothing was flushed slowly\n");
	failed = true;
}

/* Whether the slow flush has ended. */
static bool has_ended(void)
{
	return number(DELAY) >= 0;
}

static bool act_drain(void)
{
	return write_text(LUF "drain", "1") && !waiting() && has_ended();
}

static bool act_disable(void)
{
	return write_text(LUF "enabled", "0") && !waiting() && has_ended();
}

static char block[128];	/* of memory, in the zone that the file was in */

/* Whether a memory block has no hole. */
static bool is_all_memory(uint64_t begin, uint64_t end)
{
	unsigned long long first, last;
	FILE *ranges = fopen("/proc/iomem", "re");
	bool found = false;
	char line[256];

	while (!found && ranges && fgets(line, sizeof(line), ranges))
		found = strstr(line, " : System RAM") &&
			sscanf(line, "%llx-%llx", &first, &last) == 2 &&
			first <= begin && last >= end - 1;
	if (ranges)
		fclose(ranges);
	return found;
}

/* The zone of a block, as text; empty for a block in more than one. */
static void zone_of(long number, char *zone, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), MEMORY "/memory%ld/valid_zones", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	memset(zone, 0, size);
	if (fd < 0)
		return;
	if (read(fd, zone, size - 1) < 0 || !strncmp(zone, "none", 4))
		*zone = 0;
	close(fd);
}

/*
 * The block nearest to the file's first page. One with a hole, or in two zones, is
 * refused before its zone is blocked, and tests nothing.
 */
static void find_block(void)
{
	long own, size = 0, nearest = LONG_MAX;
	char text[32] = "", zone[64];
	int fd = open(MEMORY "/block_size_bytes", O_RDONLY | O_CLOEXEC);

	*block = 0;
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		size = strtol(text, NULL, 16);
	if (fd >= 0)
		close(fd);
	if (!size)
		return;
	touch(0, 1);
	own = frame_of(at) * PAGE / size;
	for (long i = 0; i < 2 * own + 2; i++) {
		zone_of(i, zone, sizeof(zone));
		if (!*zone || labs(i - own) >= nearest ||
		    !is_all_memory(i * size, (i + 1) * size))
			continue;
		nearest = labs(i - own);
		snprintf(block, sizeof(block), MEMORY "/memory%ld/state", i);
	}
}

/* Success does not matter: the zone is blocked first. */
static bool act_offline(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(5);
		_exit(!write_text(block, "offline"));
	}
	waitpid(child, NULL, 0);
	return has_ended();
}

/*
 * For a kernel page that cannot be offlined, everything that holds back pages is drained,
 * as before the OOM killer runs.
 */
static bool act_soft_offline(void)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)frame_of((void *)getauxval(AT_SYSINFO_EHDR)) * PAGE);
	return !write_text(SOFT_OFFLINE, text) && has_ended();
}

static void a_drain_waits_for_flushes(void)
{
	during_flush(500, act_drain);
}

static void switching_off_waits_for_flushes(void)
{
	if (code_is_fixed())
		lacks = "an emulator that may run old code for ever";
	else
		during_flush(500, act_disable);
}

static void offlining_waits_for_flushes(void)
{
	find_block();
	if (!*block) {
		lacks = "no memory that can be taken away";
		return;
	}
	during_flush(500, act_offline);
	/* Ignore the error if it is still online. */
	for (int i = 0; i < 1000 && !write_text(block, "online") && errno == EBUSY; i++)
		usleep(1000);
}

static bool act_allocate_contiguous(void)
{
	return write_text(CMA "alloc", "1") && has_ended();
}

static void contiguous_allocations_wait_for_flushes(void)
{
	if (access(CMA "alloc", W_OK)) {
		lacks = "a kernel without CONFIG_CMA_DEBUGFS";
		return;
	}
	during_flush(500, act_allocate_contiguous);
	write_text(CMA "free", "1");
}

static void what_drains_all_waits_for_flushes(void)
{
	if (access(SOFT_OFFLINE, F_OK))
		lacks = "a kernel without CONFIG_MEMORY_FAILURE";
	else
		during_flush(500, act_soft_offline);
}

/* More pages than the pool holds. Reclaim waits in vain once, and then flushes itself. */
static bool act_fill(void)
{
	long waits = number(LUF "stats/room_waited");

	defer(0, PAGES);
	waits = number(LUF "stats/room_waited") - waits;
	ksft_print_msg("waited %ld times\n", waits);
	return waits >= 1 && waits <= 3;
}

static void what_finds_no_room_waits_for_a_flush_once(void)
{
	set_number(LUF "pool_max_pages", 128);
	during_flush(3000, act_fill);
}

const struct test luf_pool_wait_tests[] = {
	TEST(a_drain_waits_for_flushes),
	TEST(switching_off_waits_for_flushes),
	TEST(offlining_waits_for_flushes),
	TEST(contiguous_allocations_wait_for_flushes),
	TEST(what_drains_all_waits_for_flushes),
	TEST(what_finds_no_room_waits_for_a_flush_once),
	{}
};
