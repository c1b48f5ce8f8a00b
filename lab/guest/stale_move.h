// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases that move memory: mremap(), migration between nodes, compaction, and merging by KSM. */
#ifndef STALE_MOVE_H
#define STALE_MOVE_H

#include "stale_huge.h"

#include <dirent.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#define NUMA_SETTINGS "/sys/kernel/debug/sched/numa_balancing"

static void move(char *from, size_t length, char *to)
{
	if (mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		fail("mremap");
}

/* New pages come to the old address; then the moved ones get a new owner. */
static void after_move(char *from, size_t length, size_t stride)
{
	fill_each(map_at(from, length), length, stride);
	settle();
	unmap(ASIDE, length);
	renew(length / stride);
	finish(from, length);
}

static void mremap_round(void)
{
	char *region = filled();

	touch(region, LENGTH, any_use());
	move(region, LENGTH, ASIDE);
	after_move(region, LENGTH, PAGE);
}

/* A whole table moves. */
static void mremap_pmd_round(void)
{
	char *block = map_at(BLOCK, REGION);

	advise(block, REGION, MADV_NOHUGEPAGE);
	touch_huge(fill_each(block, REGION, PART), any_use());
	move(block, REGION, ASIDE);
	after_move(block, REGION, PART);
}

static void mremap_huge_round(void)
{
	char *block = huge_page(BLOCK);

	touch_huge(block, any_use());
	move(block, REGION, ASIDE);
	after_move(block, REGION, PART);
}

static unsigned int here, there;  /* the node of CPU 0, and another one with memory */

static unsigned int node_of(unsigned int cpu)
{
	char path[64];

	for (unsigned int node = 0; node < 64; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpu%u", node, cpu);
		if (!access(path, F_OK))
			return node;
	}
	return 0;
}

static bool has_memory(unsigned int node)
{
	char path[64], text[128], *total;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", node);
	if (!get(path, text, sizeof(text)))
		return false;
	total = strstr(text, "MemTotal:");
	return total && strtoul(total + strlen("MemTotal:"), NULL, 10);
}

static void nodes_prepare(void)
{
	here = node_of(0);
	for (there = 0; there < 64; there++)
		if (there != here && has_memory(there))
			return;
	not_possible("there is no second node with memory");
}

static void migrate_round(void)
{
	char *region = filled();
	void *pages[PAGES];
	int nodes[PAGES], states[PAGES];

	for (int i = 0; i < PAGES; i++) {
		pages[i] = region + (size_t)i * PAGE;
		nodes[i] = (int)there;
	}
	touch(region, LENGTH, any_use());
	note(region, LENGTH);
	if (syscall(SYS_move_pages, 0, (unsigned long)PAGES, pages, nodes, states, MPOL_MF_MOVE) < 0)
		fail("move_pages");
	renew_and_finish(region, LENGTH);
}

static void mbind_round(void)
{
	unsigned long mask = 1ul << there;
	char *region = filled();

	touch(region, LENGTH, any_use());
	note(region, LENGTH);
	if (syscall(SYS_mbind, region, LENGTH, MPOL_BIND, &mask, 64ul, MPOL_MF_MOVE))
		fail("mbind");
	renew_and_finish(region, LENGTH);
}

/* Waits until the kernel's own thread or timer has done it, but about that number of milliseconds at most. */
static void wait_until(bool (*is_done)(void), int milliseconds)
{
	while (!is_done() && milliseconds--)
		usleep(1000);
}

static bool has_moved(void)
{
	return changed_now() == noted.pages;
}

/* The delay until the first scan is set when a process begins, so the case continues in a child. */
static void continue_in_child(void)
{
	pid_t child = new_child();
	int status;

	if (child == 0)
		return;
	if (waitpid(child, &status, 0) != child)
		fail("waitpid");
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void numa_prepare(void)
{
	nodes_prepare();
	there = node_of(1);
	if (there == here)
		not_possible("CPUs 0 and 1 are in one node");
	if (!set("/proc/sys/kernel/numa_balancing", "1"))
		not_possible("/proc/sys/kernel/numa_balancing: %s", strerror(errno));
	if (!set(NUMA_SETTINGS "/scan_delay_ms", "1") || !set(NUMA_SETTINGS "/scan_period_min_ms", "5") ||
	    !set(NUMA_SETTINGS "/scan_period_max_ms", "10"))
		not_possible(NUMA_SETTINGS ": %s", strerror(errno));
	continue_in_child();
}

/* The pages follow the toucher to its node, once they are on the lists of reclaim: MADV_COLD puts them there. */
static void numa_round(void)
{
	char *region = filled();

	advise(region, LENGTH, MADV_COLD);
	note(region, LENGTH);
	touch(region, LENGTH, READ | WRITE | ON);
	wait_until(has_moved, 300);
	renew_and_finish(region, LENGTH);
}

enum { COMPACT_PAGES = 1024 };

/* Every second page is free, so that compaction has pages to move and frames to fill. */
static void compact_round(void)
{
	char *region = fill(map_at(AREA + GIB, COMPACT_PAGES * PAGE), COMPACT_PAGES * PAGE);

	for (size_t at = 0; at < COMPACT_PAGES * PAGE; at += 2 * PAGE)
		advise(region + at, PAGE, MADV_DONTNEED);
	touch_each(region + PAGE, COMPACT_PAGES * PAGE, 2 * PAGE, any_use());
	note(region, COMPACT_PAGES * PAGE);
	if (!set("/proc/sys/vm/compact_memory", "1"))
		fail("/proc/sys/vm/compact_memory");
	renew(COMPACT_PAGES / 2);
	count_changed();
	finish(region, COMPACT_PAGES * PAGE);
}

static void compact_prepare(void)
{
	if (access("/proc/sys/vm/compact_memory", W_OK))
		not_possible("/proc/sys/vm/compact_memory: %s", strerror(errno));
}

/* The thread that merges frees frames on its CPU, where the main thread then allocates. */
static void pin_named(const char *name)
{
	DIR *directory = opendir("/proc");
	char path[64], text[64];
	struct dirent *entry;
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		if (get(path, text, sizeof(text)) && !strncmp(text, name, strlen(name)))
			sched_setaffinity(atoi(entry->d_name), sizeof(first), &first);
	}
	closedir(directory);
}

static void ksm_stop(void)
{
	set(KSM_RUN, "0");
}

static void ksm_prepare(void)
{
	if (!set(KSM_RUN, "1"))
		not_possible(KSM_RUN ": %s", strerror(errno));
	if (!set(KSM "/sleep_millisecs", "1") || !set(KSM "/pages_to_scan", "1000"))
		fail(KSM);
	pin_named("ksmd");
	atexit(ksm_stop);
}

static bool is_merged(void)
{
	return get_number(KSM "/pages_sharing") >= PAGES - 1;
}

/* Equal pages become one; a write makes a copy of it. */
static void ksm_round(void)
{
	char *region = filled();

	advise(region, LENGTH, MADV_MERGEABLE);
	touch(region, LENGTH, READ | sometimes_on());
	note(region, LENGTH);
	wait_until(is_merged, 1000);
	renew(PAGES - 1);
	count_changed();
	touch(region, LENGTH, READ | ON);
	fill(region, LENGTH);
	finish(region, LENGTH);
}

#endif
