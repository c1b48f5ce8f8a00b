// SPDX-License-Identifier: GPL-2.0-only
/* The reader, which holds a translation, and reclaim of what it reads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "luf.h"

struct reader reader;

static __thread sigjmp_buf no_access;

void on_no_access(int signal)
{
	siglongjmp(no_access, signal);
}

static long memory_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static int look(void)
{
	return reader.runs ? ((int (*)(void))reader.at)() : get(*reader.at);
}

static void *read_on(void *unused)
{
	stay_on(1);
	while (!get(reader.stop)) {
		if (sigsetjmp(no_access, 1))
			set(reader.value, FAULTED);
		else
			for (int i = 0; i < 100; i++)
				set(reader.value, look());
		set(reader.faults, memory_faults());
		__atomic_add_fetch(&reader.rounds, 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

/* Set the address that the reader reads from now on. */
int read_now(void)
{
	long rounds = get(reader.rounds);

	while (get(reader.rounds) < rounds + 2)
		sched_yield();
	return get(reader.value);
}

void start_reader(const void *at)
{
	reader.at = at;
	set(reader.stop, false);
	if (pthread_create(&reader.thread, NULL, read_on, NULL))
		ksft_exit_fail_msg("no thread: %s\n", strerror(errno));
	read_now();
	reader.old = read_now();
}

void stop_reader(void)
{
	set(reader.stop, true);
	pthread_join(reader.thread, NULL);
	reader.runs = false;
}

static int pagemap = -1;

bool is_mapped(const void *at)
{
	uint64_t entry = 0;

	if (pagemap < 0)
		pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pread(pagemap, &entry, sizeof(entry), (uintptr_t)at / PAGE * sizeof(entry)) !=
	    sizeof(entry))
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry >> 63;
}

/* A child needs its own. */
void close_pagemap(void)
{
	close(pagemap);
	pagemap = -1;
}

void reclaim_all(void)
{
	/* Fails if less can be reclaimed. */
	write_text(GROUP "/test/memory.reclaim", "64M");
}

/*
 * With page-table isolation each interrupt switches to the kernel's tables.
 * A CPU without PCIDs drops all translations there, and none is ever
 * stale; any other one keeps its translations.
 */
static bool isolates_tables(void)
{
	char text[4096] = "";
	int fd = open("/proc/cpuinfo", O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strstr(text, " pti ");
}

int tries(void)
{
	return isolates_tables() ? TRIES / 10 : TRIES;
}

/* For such a small cgroup the kernel uses counters that are updated every 2 s. */
void wait_a_bit(void)
{
	usleep(100000);
}

/*
 * Trigger unrelated flushes now, and not while a test has its
 * stale translation: the first store to a page after fork, and a
 * change of a mapping after an eager unmap, even long ago.
 */
static void settle(void)
{
	static void *page;

	aligned_page();
	if (!page)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	set(*(int *)page, 0);
	mprotect(page, PAGE, PROT_READ);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* Reclaim the page. Return: true once the reader reads it although nothing maps it. */
bool make_stale(const void *at)
{
	long before = deferred(), faults = 0;
	int value = reader.old, unmapped = 0, most = tries();

	settle();
	for (int i = 0; i < most; i++) {
		read_now();
		faults = get(reader.faults);
		reclaim_all();
		if (is_mapped(at)) {
			wait_a_bit();
			continue;
		}
		unmapped++;
		value = read_now();
		if (value == reader.old && get(reader.faults) == faults && !is_mapped(at) &&
		    deferred() > before)
			return true;
	}
	ksft_print_msg("unmapped %d times of %d, %ld pages lazily; read 0x%x, %ld faults\n",
		       unmapped, most, deferred() - before, value,
		       get(reader.faults) - faults);
	return false;
}

void not_stale(const char *name)
{
	if (isolates_tables()) {
		lacks = "no translation outlives an interrupt";
	} else {
		ksft_print_msg("%s: the page was not unmapped lazily\n", name);
		failed = true;
	}
}
