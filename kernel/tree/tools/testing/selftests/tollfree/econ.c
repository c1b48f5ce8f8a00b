// SPDX-License-Identifier: GPL-2.0-only
/*
 * econ: tests of profiles. A program with a profile of an earlier run has huge pages
 * where its profile says that they pay, and nowhere else.
 *
 * Needs root, and a node with some free huge pages. Arguments name the tests to run, all
 * if there are none.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

#include "test.h"

#define MIB		0x100000UL
#define REGION		(2 * MIB)
#define SYSFS		"/sys/kernel/mm/econ/"
#define THP		"/sys/kernel/mm/transparent_hugepage/"
#define PROFILE		"/proc/self/mm_profile"
#define LEDGER		"/proc/self/mm_ledger"
#define ZEROED		SYSFS "zeroed_blocks/"
#define BLOCKS		"/sys/devices/system/memory/"
#define GROUP		"/tmp/econ-cgroup"
/* The first readable and writable mapping of 8 MiB. */
#define FIRST		"mmap 0 23 3 "
#define RICH		"50000000 512 100\n"
#define POOR		"0 8 100\n"
/* All pages are touched, and page walks cost nothing. */
#define FILLED		"0 512 100\n"
/* Timeout for work of other threads, in seconds. */
#define PATIENCE	60
/* Less than clearing costs, and more than the rest of a fault. */
#define FAIR		"50000 0 100\n"
/* A benefit above the upper bound, and the value that the kernel uses. */
#define ABSURD		"18446744073709551615 512 100\n"
#define MOST_OF_A_ROW	10000000000L
/* Largest loss of one fault: a region that is worth more than a second tries anyway. */
#define HOSTILE		"heap 0 0x8000000 990000000 512 100\n"
/* Upper bound of the losses, and of the credit, in the ledger of a node. */
#define MOST_OF_A_POT	1000000000L
/* An eighth of the CPU time of a process is credit for compaction, all of it for zeroing. */
#define COMPACT_SHARE	8
/* File descriptors that an executed program inherits. */
#define READY_FD	100
#define GO_FD		101
#define PROFILE_FD	102

/* As in include/uapi/linux/econ.h. */
#ifndef PR_ECON
#define PR_ECON			0x45434f4e
#define PR_ECON_GET_MODE	0
#define PR_ECON_SET_MODE	1
#define PR_ECON_MODE_DEFAULT	0
#define PR_ECON_MODE_OFF	1
#define PR_ECON_MODE_OBSERVE	2
#define PR_ECON_MODE_ON		3
#endif

static bool failed;
static const char *lacks;

static bool check(bool is_true, const char *text, int line)
{
	if (!is_true) {
		failed = true;
		ksft_print_msg("%s:%d: %s (%s)\n", __FILE__, line, text, strerror(errno));
	}
	return is_true;
}

#define CHECK(condition) check(condition, #condition, __LINE__)

/* A profile of this program. */
static void profile_of(const char *rows, char *text)
{
	int nr = 0;

	for (const char *c = rows; *c; c++)
		nr += *c == '\n';
	sprintf(text, "mm_profile 1\nprogram econ\nrun 1000000000000\n%send %d\n", rows, nr);
}

static int write_to(const char *path, const char *text, size_t length)
{
	int fd = open(path, O_RDWR), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, length) != (ssize_t)length)
		err = -errno;
	close(fd);
	return err;
}

/* Give this process a profile with the given number of rows. */
static bool give(const char *rows)
{
	char text[4096];

	profile_of(rows, text);
	return !write_to(PROFILE, text, strlen(text));
}

static void read_from(const char *path, char *text, size_t length)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, length - 1);

	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

/* One of the five counters of a model, of the machine. */
static long stat_of(const char *model, const char *number)
{
	char path[128], text[256], *at;

	snprintf(path, sizeof(path), SYSFS "stats/%s", model);
	read_from(path, text, sizeof(text));
	at = strstr(text, number);
	return at ? atol(at + strlen(number)) : -1;
}

/* A field of a mapping in smaps, in MiB; -1 if it does not exist. */
static long smaps_mib(const void *memory, const char *format)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, kib;
	bool is_it = false;
	long found = -1;
	char line[256];

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			is_it = (unsigned long)memory >= begin && (unsigned long)memory < end;
		else if (is_it && sscanf(line, format, &kib) == 1)
			found = kib >> 10;
	}
	if (smaps)
		fclose(smaps);
	return found;
}

/* Size of the huge pages in a mapping, in MiB. */
static long huge_in(const void *memory)
{
	return smaps_mib(memory, "AnonHugePages: %lu");
}

static char *map(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A plain store: emulators may read before they exchange. */
static void touch(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
}

/*
 * Actions of this program when it executes itself. Its exit status is the result:
 * MiB in huge pages, or 200 and more for other failures.
 */

static int touch_8(void)
{
	char *memory = map(8 * MIB);

	if (!memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

static int touch_8_by_prctl(void)
{
	return prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_OFF, 0, 0) ? 202 : touch_8();
}

static int touch_second(void)
{
	return map(8 * MIB) ? touch_8() : 200;
}

/* Another mapping without a profile replaces it. */
static int touch_anew(void)
{
	char *memory = map(8 * MIB);

	if (!memory || munmap(memory, 8 * MIB) ||
	    mmap(memory, 8 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

static int touch_moved(void)
{
	char *memory = map(8 * MIB), *between = map(64 * MIB), *to;

	if (!memory || !between)
		return 200;
	to = (char *)(((uintptr_t)between + REGION - 1) & ~(REGION - 1));
	if (mremap(memory, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return 201;
	touch(to, 16 * MIB);
	return huge_in(to);
}

static int touch_as_child(void)
{
	char *memory = map(8 * MIB);
	int status;
	pid_t pid;

	if (!memory)
		return 200;
	pid = fork();
	if (!pid) {
		touch(memory, 8 * MIB);
		_exit(huge_in(memory));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

static int touch_heap(void)
{
	char *begin = sbrk(0), *end = begin + 8 * MIB;

	if (sbrk(8 * MIB) == (void *)-1)
		return 200;
	touch(begin, end - begin);
	return huge_in(begin);
}

static char zeros[12 * MIB];

static int touch_bss(void)
{
	touch(zeros, sizeof(zeros));
	return huge_in(zeros + REGION);
}

/* Read before the first write. */
static int read_8(void)
{
	char *memory = map(8 * MIB);

	if (!memory)
		return 200;
	for (size_t at = 0; at < 8 * MIB; at += REGION)
		get(memory[at]);
	return huge_in(memory);
}

/* A request of the user needs no decision. */
static int touch_advised(void)
{
	char *memory = map(8 * MIB);

	if (!memory || madvise(memory, 8 * MIB, MADV_HUGEPAGE))
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* No first touch maps a huge page. khugepaged may collapse before the last one. */
static char *map_small(void)
{
	char *memory = map(8 * MIB);

	write_text(SYSFS "costs/clear_huge", "9000000000000");
	if (memory)
		touch(memory, 8 * MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	return memory;
}

/* Wait for khugepaged. */
static int wait_for_promotion(void)
{
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return huge_in(memory);
}

static int wait_in_vain(void)
{
	long scans = number(THP "khugepaged/full_scans") + 3;
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && number(THP "khugepaged/full_scans") < scans; i++)
		usleep(10000);
	return huge_in(memory);
}

static bool shrink(void)
{
	return write_text("/proc/sys/vm/drop_caches", "2");
}

/* Most of each region stays zeros. */
static char *touch_a_page_of_each(void)
{
	char *memory = map(8 * MIB);

	for (size_t at = 0; memory && at < 8 * MIB; at += REGION)
		touch(memory + at, PAGE);
	return memory;
}

static int shrink_mostly_empty(void)
{
	char *memory = touch_a_page_of_each();

	if (!memory || huge_in(memory) != 8)
		return 200;
	return shrink() ? huge_in(memory) : 201;
}

/* Independent of its profile. */
static int shrink_as_stock(void)
{
	write_text(LEDGER, "off");
	return shrink_mostly_empty();
}

/* A child inherits it, and exits as soon as the pipe has no writer. */
static int shrink_shared(void)
{
	char *memory = touch_a_page_of_each(), c;
	int ends[2], status;
	bool done;
	pid_t pid;

	if (!memory || huge_in(memory) != 8 || pipe(ends))
		return 200;
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &c, 1) != 0);
	}
	done = pid > 0 && shrink();
	close(ends[1]);
	if (!done || waitpid(pid, &status, 0) != pid || status)
		return 201;
	return huge_in(memory);
}

static int touch_each(size_t size)
{
	char *memory;

	memory = map(size);
	if (!memory)
		return 200;
	for (size_t at = PAGE; at < size; at += REGION)
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
	for (size_t at = 0; at < size; at++)
		if (memory[at] != (at % REGION == PAGE) && size == 8 * MIB)
			return 201;
	return huge_in(memory);
}

static int touch_each_of_8(void)
{
	return touch_each(8 * MIB);
}

/* By then it has used CPU time that pays for zeroing. */
static int touch_each_of_128(void)
{
	struct timespec it = {};

	while (!it.tv_sec && it.tv_nsec < 20000000)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &it);
	return touch_each(128 * MIB) < 200 ? 0 : 200;
}

static int touch_each_in_group(void)
{
	return write_text(GROUP "/small/cgroup.procs", "0") ? touch_each_of_8() : 202;
}

static int touch_each_by(int policy, int away)
{
	unsigned int cpu, node;
	unsigned long nodes;

	if (syscall(SYS_getcpu, &cpu, &node, NULL))
		return 203;
	nodes = policy == MPOL_INTERLEAVE ? 3 : 1UL << (node ^ away);
	if (syscall(SYS_set_mempolicy, policy, &nodes, 8 * sizeof(nodes)))
		return 204;
	return touch_each_of_8();
}

static int touch_each_here(void)
{
	return touch_each_by(MPOL_BIND, 0);
}

static int touch_each_away(void)
{
	return touch_each_by(MPOL_BIND, 1);
}

static int touch_each_in_turn(void)
{
	return touch_each_by(MPOL_INTERLEAVE, 0);
}

/* The requested size is the current one. */
static int mremap_in_place(void)
{
	char *memory = map(8 * MIB);

	if (!memory || mremap(memory, PAGE, PAGE, 0) != memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* Move the second region. Return: MiB in huge pages there, times 10, plus in the rest. */
static int mremap_a_part(void)
{
	char *memory = map(8 * MIB), *between, *to;

	/* A gap around each, so that they do not merge. */
	between = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!memory || between == MAP_FAILED)
		return 200;
	to = (char *)(((uintptr_t)between + 2 * REGION - 1) & ~(REGION - 1));
	if (mremap(memory + REGION, REGION, REGION, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return 201;
	touch(memory, REGION);
	touch(memory + 2 * REGION, 2 * REGION);
	touch(to, REGION);
	return 10 * huge_in(to) + huge_in(memory) + huge_in(memory + 2 * REGION);
}

static bool wait_for_scans(long scans)
{
	scans += number(THP "khugepaged/full_scans");
	for (int i = 0; i < 6000 && number(THP "khugepaged/full_scans") < scans; i++)
		usleep(10000);
	return number(THP "khugepaged/full_scans") >= scans;
}

static int wait_after_promotion(void)
{
	char *memory = map_small();

	if (!memory)
		return 200;
	for (int i = 0; i < 6000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return wait_for_scans(3) ? huge_in(memory) : 201;
}

/* Touch half of each region, which khugepaged may not fill up. */
static int wait_with_holes(void)
{
	char *memory = map(8 * MIB);

	write_text(SYSFS "costs/clear_huge", "9000000000000");
	for (size_t at = 0; memory && at < 8 * MIB; at += REGION)
		touch(memory + at, MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	return memory && wait_for_scans(3) ? huge_in(memory) : 200;
}

/* Return: MiB of a mapping that are in swap. */
static long swapped_in(const void *memory)
{
	return smaps_mib(memory, "Swap: %lu");
}

/* Return: 0 if swap-in asks the model of swap-in, 1 if it asks that of clearing. */
static int swap_out_and_in(void)
{
	char *memory = map(8 * MIB);
	long large, swap;

	if (!memory)
		return 200;
	touch(memory, 8 * MIB);
	for (int i = 0; i < 100 && swapped_in(memory) < 4; i++)
		if (madvise(memory, 8 * MIB, MADV_PAGEOUT))
			return 201;
	if (swapped_in(memory) < 4)
		return 202;
	large = stat_of("large", "asked");
	swap = stat_of("swap", "asked");
	touch(memory, 8 * MIB);
	if (stat_of("large", "asked") > large + 8)
		return 1;
	return stat_of("swap", "asked") > swap + 8 ? 0 : 2;
}

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

/*
 * Touch a page of each region of the heap, and free it with its page tables, so that the
 * next touch is another decision; then do not run for a while.
 */
static bool touch_heap_again(useconds_t pause)
{
	char *begin = sbrk(8 * MIB);

	if (begin == (void *)-1)
		return false;
	for (size_t at = 0; at < 8 * MIB; at += REGION)
		touch(begin + at, PAGE);
	if (sbrk(-8 * (long)MIB) == (void *)-1)
		return false;
	usleep(pause);
	return true;
}

/* Lack as many huge pages as possible with little CPU time. */
static int lose_often(void)
{
	for (int i = 0; i < 60; i++)
		if (!touch_heap_again(2000))
			return 200;
	return 0;
}

/* Use up zeroed blocks, and leave time to make more. */
static int use_up_zeroed(void)
{
	for (int i = 0; i < 80; i++)
		if (!touch_heap_again(20000))
			return 200;
	return 0;
}

static int touch_here(void)
{
	unsigned long nodes = 1;

	return syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 8 * sizeof(nodes)) ? 203 : touch_8();
}

/* A policy of the mapping, not of the task. */
static char *map_on(size_t size, int node)
{
	unsigned long nodes = 1UL << node;
	char *memory = map(size);

	if (memory && syscall(SYS_mbind, memory, size, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0))
		return NULL;
	return memory;
}

static int touch_on_second_node(void)
{
	char *memory = map_on(8 * MIB, 1);

	if (!memory)
		return 203;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* 4 KiB pages for khugepaged to collapse. */
static int wait_on_second_node(void)
{
	char *memory = map_on(8 * MIB, 1);

	if (!memory)
		return 203;
	write_text(SYSFS "costs/clear_huge", "9000000000000");
	touch(memory, 8 * MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	for (int i = 0; i < 2000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return huge_in(memory);
}

static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
	{ "touch_8", touch_8 },
	{ "touch_second", touch_second },
	{ "read_8", read_8 },
	{ "touch_anew", touch_anew },
	{ "touch_moved", touch_moved },
	{ "touch_as_child", touch_as_child },
	{ "touch_heap", touch_heap },
	{ "touch_bss", touch_bss },
	{ "touch_advised", touch_advised },
	{ "wait_for_promotion", wait_for_promotion },
	{ "wait_in_vain", wait_in_vain },
	{ "shrink_mostly_empty", shrink_mostly_empty },
	{ "shrink_as_stock", shrink_as_stock },
	{ "shrink_shared", shrink_shared },
	{ "touch_each_of_8", touch_each_of_8 },
	{ "touch_each_of_128", touch_each_of_128 },
	{ "touch_each_in_group", touch_each_in_group },
	{ "touch_each_here", touch_each_here },
	{ "touch_each_away", touch_each_away },
	{ "touch_each_in_turn", touch_each_in_turn },
	{ "touch_8_by_prctl", touch_8_by_prctl },
	{ "mremap_in_place", mremap_in_place },
	{ "mremap_a_part", mremap_a_part },
	{ "wait_after_promotion", wait_after_promotion },
	{ "wait_with_holes", wait_with_holes },
	{ "swap_out_and_in", swap_out_and_in },
	{ "wait_without_profile", wait_without_profile },
	{ "write_to_inherited", write_to_inherited },
	{ "lose_often", lose_often },
	{ "use_up_zeroed", use_up_zeroed },
	{ "touch_here", touch_here },
	{ "touch_on_second_node", touch_on_second_node },
	{ "wait_on_second_node", wait_on_second_node },
};

static char self[PATH_MAX];

/* Execute this program by a path, with a profile if there are rows. */
static int run_path(const char *path, const char *rows, const char *part, uid_t uid)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* Each node keeps its own blocks. */
		stay_on(0);
		if (rows && !give(rows))
			_exit(210);
		if (uid && setuid(uid))
			_exit(211);
		execl(path, path, "-", part, NULL);
		_exit(212);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 213;
}

static int run(const char *rows, const char *part)
{
	return run_path(self, rows, part, 0);
}

/* Saved content of a file, to be restored. */
struct kept {
	const char *path;
	char text[32];
};

static void keep(struct kept *files, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		read_from(files[i].path, files[i].text, sizeof(files[i].text));
		CHECK(*files[i].text);
	}
}

static void put_back(struct kept *files, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		CHECK(write_text(files[i].path, files[i].text));
}

/* Tests */

static void without_a_profile_all_is_stock(void)
{
	long asked = stat_of("huge", "asked");

	CHECK(run(NULL, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
}

static void what_pays_is_huge(void)
{
	long asked = stat_of("huge", "asked"), approved = stat_of("huge", "approved");

	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") >= asked + 4);
	CHECK(stat_of("huge", "approved") == approved + 4);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0x200000 0x400000 " RICH FIRST "0x400000 0x800000 " POOR, "touch_8") == 2);
}

/* Such a mapping is treated as without a profile. */
static void unprofiled_mapping_uses_stock_policy(void)
{
	long asked = stat_of("huge", "asked");

	CHECK(run("mmap 7 23 3 0 0x800000 " POOR, "touch_8") == 8);
	CHECK(run("mmap 0 23 1 0 0x800000 " POOR, "touch_8") == 8);
	CHECK(run("mmap 0 22 3 0 0x400000 " POOR, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
}

/* Extrapolation starts at a quarter. */
static void a_part_speaks_for_its_region(void)
{
	CHECK(run(FIRST "0 0x80000 400000 0 100\n", "touch_8") == 2);
	CHECK(run(FIRST "0 0x40000 400000 0 100\n", "touch_8") == 0);
}

static void confidence_and_touched_pages_count(void)
{
	CHECK(run(FIRST "0 0x800000 50000000 1 0\n", "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 50000000 1 50\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 51 100\n", "touch_8") == 0);
}

/* Without the huge zero page a read takes a block; with it the zero page pays or not. */
static void what_is_read_is_asked_about_too(void)
{
	struct kept kept[] = { { .path = THP "use_zero_page" } };
	long asked, approved;

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "0"));
	CHECK(run(NULL, "read_8") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH, "read_8") == 8);
	CHECK(run(FIRST "0 0x800000 " POOR, "read_8") == 0);
	CHECK(write_text(kept[0].path, "1"));
	asked = stat_of("huge", "asked");
	approved = stat_of("huge", "approved");
	CHECK(run(FIRST "0 0x800000 0 1 100\n", "read_8") == 0);
	CHECK(stat_of("huge", "asked") >= asked + 4 && stat_of("huge", "approved") == approved);
	CHECK(run(FIRST "0 0x800000 " RICH, "read_8") == 0);
	CHECK(stat_of("huge", "approved") >= approved + 4);
	put_back(kept, ARRAY_SIZE(kept));
}

static void mappings_are_told_apart_by_their_order(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR "mmap 1 23 3 0 0x800000 " RICH, "touch_second") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH "mmap 1 23 3 0 0x800000 " POOR, "touch_second") == 0);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_anew") == 8);
}

static void rows_move_and_grow_with_a_mapping(void)
{
	CHECK(run(FIRST "0 0x1000000 " RICH, "touch_moved") == 16);
	CHECK(run(FIRST "0 0x400000 " RICH, "touch_moved") == 4);
}

static void mremap_of_a_part_keeps_the_rest(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR, "mremap_in_place") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "mremap_in_place") == 8);
	CHECK(run(FIRST "0 0x200000 " POOR FIRST "0x200000 0x400000 " RICH
		  FIRST "0x400000 0x800000 " POOR, "mremap_a_part") == 20);
	CHECK(run(FIRST "0 0x200000 " RICH FIRST "0x200000 0x400000 " POOR
		  FIRST "0x400000 0x800000 " RICH, "mremap_a_part") == 6);
}

static void heap_and_bss_have_rows(void)
{
	/* Mappings need not begin at a multiple of 2 MiB. */
	CHECK(run("heap 0 0x4000000 " RICH, "touch_heap") >= 6);
	CHECK(run("heap 0 0x4000000 " POOR, "touch_heap") == 0);
	CHECK(run("bss 0 0x4000000 " RICH, "touch_bss") >= 10);
	CHECK(run("bss 0 0x4000000 " POOR, "touch_bss") == 0);
}

static void children_inherit(void)
{
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_as_child") == 8);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_as_child") == 0);
}

static void madvise_is_the_users_own_decision(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_advised") == 8);
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

static void modes(void)
{
	long asked;

	CHECK(write_text(SYSFS "mode", "observe"));
	asked = stat_of("huge", "asked");
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") >= asked + 4);
	CHECK(write_text(SYSFS "mode", "off"));
	asked = stat_of("huge", "asked");
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
	CHECK(write_text(SYSFS "mode", "on"));
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(!write_text(SYSFS "mode", "sometimes") && errno == EINVAL);
	CHECK(!write_text(SYSFS "mode", "default") && errno == EINVAL);
	CHECK(!write_text(SYSFS "mode", "") || errno == EINVAL);
}

/* This process itself, which was never executed with a profile. */
static void a_process_has_a_ledger_and_a_mode(void)
{
	char text[4096], rows[4096];

	CHECK(give("heap 0 0x1000 " POOR));
	read_from(LEDGER, text, sizeof(text));
	CHECK(strstr(text, "mode default\n") && strstr(text, "\nhuge ") && strstr(text, "\nzero "));
	CHECK(write_text(LEDGER, "observe"));
	read_from(LEDGER, text, sizeof(text));
	CHECK(strstr(text, "mode observe\n"));
	CHECK(!write_text(LEDGER, "nonsense") && errno == EINVAL);
	CHECK(!write_text(LEDGER, "a text that is longer than any mode") && errno == EINVAL);
	read_from(PROFILE, rows, sizeof(rows));
	CHECK(strstr(rows, "mm_profile 1\nprogram econ\nrun 1000000000000\n"));
	CHECK(strstr(rows, "\nheap 0x0 0x1000 0 8 100 # at 0x"));
	CHECK(strstr(rows, "\nend 1\n"));
}

/* Set the mode by prctl(), and by the file. */
static void prctl_sets_the_mode(void)
{
	static const char *const names[] = { "default", "off", "observe", "on" };
	char text[4096], line[32];

	CHECK(write_text(PROFILE, "none"));
	CHECK(prctl(PR_ECON, PR_ECON_GET_MODE, 0, 0, 0) == -1 && errno == ENODATA);
	CHECK(prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_OFF, 0, 0) == -1 && errno == ENODATA);
	CHECK(give("heap 0 0x1000 " POOR));
	CHECK(prctl(PR_ECON, PR_ECON_GET_MODE, 0, 0, 0) == PR_ECON_MODE_DEFAULT);
	for (int mode = PR_ECON_MODE_ON; mode >= PR_ECON_MODE_DEFAULT; mode--) {
		CHECK(!prctl(PR_ECON, PR_ECON_SET_MODE, mode, 0, 0));
		CHECK(prctl(PR_ECON, PR_ECON_GET_MODE, 0, 0, 0) == mode);
		read_from(LEDGER, text, sizeof(text));
		snprintf(line, sizeof(line), "mode %s\n", names[mode]);
		CHECK(!strncmp(text, line, strlen(line)));
	}
	CHECK(prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_ON + 1, 0, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_ECON, PR_ECON_SET_MODE, -1L, 0, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_ON, 1, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_ON, 0, 1) == -1 && errno == EINVAL);
	CHECK(prctl(PR_ECON, PR_ECON_GET_MODE, 1, 0, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_ECON, 2, 0, 0, 0) == -1 && errno == EINVAL);
	/* Mode on: the profile of the program says that nothing pays. */
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8_by_prctl") == 8);
}

/* The text that was read can be written again. */
static void it_is_read_as_it_was_written(void)
{
	char text[4096], rows[4096];

	CHECK(give("heap 0 0x1000 " POOR FIRST "0 0x800000 " RICH));
	read_from(PROFILE, rows, sizeof(rows));
	CHECK(!write_to(PROFILE, rows, strlen(rows)));
	read_from(PROFILE, text, sizeof(text));
	CHECK(!strcmp(text, rows));
}

static void is_refused(const char *text, size_t length, int err, const char *reason)
{
	char kept[4096], now[4096], said[256];
	int fd = open(PROFILE, O_RDWR);
	ssize_t n;

	read_from(PROFILE, kept, sizeof(kept));
	CHECK(fd >= 0 && write(fd, text, length) == -1 && errno == err);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n < 0 ? 0 : n] = '\0';
	if (reason && !CHECK(!strcmp(said, reason)))
		ksft_print_msg("%s", said);
	close(fd);
	/* The refused profile changed nothing. */
	read_from(PROFILE, now, sizeof(now));
	CHECK(!strcmp(kept, now));
}

static void nonsense_is_refused(void)
{
	static char junk[MIB + 1];
	char text[4096];

	CHECK(give("heap 0 0x1000 " POOR));
	is_refused("", 0, EINVAL, "line 1: empty\n");
	profile_of("heap 0 0x2000 " POOR "heap 0x1000 0x3000 " POOR, text);
	is_refused(text, strlen(text), EINVAL,
		   "line 5: another row has a part of the same memory\n");
	profile_of("heap 0x3000 0x1000 " POOR, text);
	is_refused(text, strlen(text), EINVAL, "line 4: the end is not behind the begin\n");
	profile_of("heap 0 0xfffffffffffff000 " POOR, text);
	is_refused(text, strlen(text), EINVAL, "line 4: no end up to 2^56\n");
	profile_of("heap 0 0x1000 " POOR, text);
	is_refused(text, strlen(text) / 2, EINVAL, NULL);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = i * 2654435761u >> 13;
	is_refused(junk, MIB, EINVAL, NULL);
	is_refused(junk, MIB + 1, E2BIG, NULL);
	is_refused(NULL, 100, EFAULT, NULL);
}

/* Children keep what they have inherited. */
static void a_profile_can_be_removed(void)
{
	char text[256];

	CHECK(give("heap 0 0x1000 " POOR FIRST "0 0x800000 " POOR));
	CHECK(run(NULL, "touch_8") == 0);
	CHECK(write_text(PROFILE, "none\n"));
	read_from(PROFILE, text, sizeof(text));
	CHECK(!*text);
	read_from(LEDGER, text, sizeof(text));
	CHECK(!*text);
	CHECK(run(NULL, "touch_8") == 8);
	CHECK(write_text(PROFILE, "none"));
	CHECK(!write_text(PROFILE, "nonesuch") && errno == EINVAL);
}

/* As many rows as fit: one per mapping, all of the heap, all of one mapping. */
static void a_large_profile_is_taken(void)
{
	static char text[MIB];
	size_t length = sprintf(text, "mm_profile 1\nprogram econ\nrun 1\n");
	int nr = 0;

	while (length < sizeof(text) - 64)
		length += sprintf(text + length, "mmap %d 21 3 0 4096 1 1 1\n", nr++);
	length += sprintf(text + length, "end %d\n", nr);
	CHECK(!write_to(PROFILE, text, length));
	ksft_print_msg("%d rows\n", nr);
	CHECK(run(NULL, "touch_8") == 8);

	length = sprintf(text, "mm_profile 1\nprogram econ\nrun 1\n");
	for (nr = 0; length < sizeof(text) - 64; nr++)
		length += sprintf(text + length, "heap 0x%x 0x%x 1 1 1\n", nr << 12,
				  (nr + 1) << 12);
	length += sprintf(text + length, "end %d\n", nr);
	CHECK(nr >= 31000 && !write_to(PROFILE, text, length));
	ksft_print_msg("%d rows of the heap\n", nr);
	CHECK(run(NULL, "touch_heap") == 0);

	length = sprintf(text, "mm_profile 1\nprogram econ\nrun 1\n");
	for (nr = 0; length < sizeof(text) - 64; nr++)
		length += sprintf(text + length, FIRST "0x%x 0x%x 1 1 1\n", nr << 12,
				  (nr + 1) << 12);
	length += sprintf(text + length, "end %d\n", nr);
	CHECK(nr >= 26000 && !write_to(PROFILE, text, length));
	ksft_print_msg("%d rows of one mapping\n", nr);
	CHECK(run(NULL, "touch_8") == 0);
	CHECK(give(""));
}

/* The benefit of a row is clamped, also in the public counters. */
static void absurd_values_do_no_harm(void)
{
	long before = stat_of("huge", "benefit_ns"), approved = stat_of("huge", "approved"), after;
	char rows[4096], most[64];

	CHECK(before >= 0);
	CHECK(run(FIRST "0 0x800000 " ABSURD, "touch_8") == 8);
	after = stat_of("huge", "benefit_ns");
	approved = stat_of("huge", "approved") - approved;
	CHECK(after > before);
	CHECK(after - before <= approved * (MOST_OF_A_ROW + 512 * number(SYSFS "costs/fault")));
	CHECK(give(FIRST "0 0x800000 " ABSURD));
	read_from(PROFILE, rows, sizeof(rows));
	snprintf(most, sizeof(most), " %ld 512 100", MOST_OF_A_ROW);
	CHECK(strstr(rows, most));
	CHECK(give(""));
}

/* The counters saturate. */
static void statistics_saturate(void)
{
	struct kept kept[] = { { .path = SYSFS "costs/fault" } };

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "9223372036854775808"));
	for (int i = 0; i < 2; i++) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
		CHECK(stat_of("huge", "benefit_ns") == LONG_MAX);
	}
	put_back(kept, ARRAY_SIZE(kept));
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

/* Restored for each test. */
static struct kept prices[] = {
	{ .path = SYSFS "costs/fault" },
	{ .path = SYSFS "costs/huge_fault" },
	{ .path = SYSFS "costs/clear_page" },
	{ .path = SYSFS "costs/clear_huge" },
	{ .path = SYSFS "costs/compact_block" },
	{ .path = SYSFS "costs/collapse" },
	{ .path = SYSFS "costs/split" },
	{ .path = SYSFS "costs/reclaim_page" },
	{ .path = SYSFS "costs/flush" },
	{ .path = SYSFS "costs/read_again" },
};

static void prices_may_be_anything(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		const char *path = prices[i].path;

		CHECK(number(path) > 0);
		CHECK(write_text(path, "0"));
		CHECK(!write_text(path, "-1") && errno == EINVAL);
		CHECK(!write_text(path, "18446744073709551616") && errno == ERANGE);
		CHECK(!write_text(path, "cheap") && errno == EINVAL);
	}
	/* All costs are 0; only page walks have a benefit. */
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++)
		CHECK(write_text(prices[i].path, "9223372036854775808"));
	CHECK(run(FIRST "0 0x800000 50000000 0 100\n", "touch_8") == 0);
}

/* Number of samples of a cost, and their median. */
static long samples_of(const char *cost, long *half)
{
	char text[1024], *at, name[32];
	long tenths, seen = -1;

	read_from(SYSFS "costs/samples", text, sizeof(text));
	snprintf(name, sizeof(name), "%s ", cost);
	at = strstr(text, name);
	if (at)
		sscanf(at + strlen(name), "%ld %ld %ld", half, &tenths, &seen);
	return seen;
}

static void prices_are_measured(void)
{
	long half, before, huge, fault;
	char cost[32];

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(!samples_of("clear_huge", &half) && !samples_of("fault", &half));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(!samples_of("clear_huge", &half));
	CHECK(write_text(SYSFS "costs/clear_huge", "1"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	for (int i = 0; i < 10 && samples_of("clear_huge", &half) < 1; i++)
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	for (int i = 0; i < 4; i++)
		CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
	huge = samples_of("clear_huge", &half);
	fault = samples_of("fault", &before);
	/* One of 254 faults that were not huge. */
	CHECK(fault > 8 && fault < 2048 && before > 100);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	read_from(SYSFS "costs/clear_huge", cost, sizeof(cost));
	if (huge)
		CHECK(half > 1000 && atol(cost) > 1000);
	else
		lacks = "an interrupt came during each clearing";
	CHECK(!write_text(SYSFS "costs/samples", "1") && errno == EINVAL);
	CHECK(!write_text(SYSFS "costs/frozen", "cold") && errno == EINVAL);
}

/* The page is evicted and refaults before any other. */
static void what_is_read_again_is_counted(void)
{
	const char *dir = getenv("TOLLFREE_TEST_DIR");
	long again = number(SYSFS "stats/refaults"), half;
	char name[PATH_MAX], *at;
	int fd;

	snprintf(name, sizeof(name), "%s/read-again", dir ? dir : "/data");
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || access("/sys/kernel/mm/luf/enabled", F_OK)) {
		lacks = "no pools of pages that wait, or no directory for a file";
		close(fd);
		return;
	}
	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	for (int i = 0; i < 256; i++)
		CHECK(write(fd, name, PAGE) == PAGE);
	CHECK(!fsync(fd));
	at = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED && !madvise(at, MIB, MADV_RANDOM));
	for (int i = 0; i < 1000 && !failed; i++) {
		for (size_t page = 0; page < MIB; page += PAGE)
			get(at[page]);
		if (number(SYSFS "stats/refaults") > again &&
		    samples_of("read_again", &half) > 0)
			break;
		CHECK(!madvise(at, MIB, MADV_PAGEOUT));
	}
	CHECK(number(SYSFS "stats/refaults") > again);
	CHECK(samples_of("read_again", &half) > 0 && half > 0);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	munmap(at, MIB);
	close(fd);
	unlink(name);
}

/* Number of all faults of a kind. */
static long faults_of(const char *kind)
{
	char path[128], text[4096], *line, *rest;
	long low, faults, sum = 0;

	snprintf(path, sizeof(path), SYSFS "fault_latency/%s", kind);
	read_from(path, text, sizeof(text));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (sscanf(line, "%ld %ld", &low, &faults) == 2)
			sum += faults;
	return sum;
}

static void faults_are_counted_by_kind(void)
{
	long huge = faults_of("huge_cleared"), base = faults_of("base"), file = faults_of("file");

	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(faults_of("huge_cleared") == huge);
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(faults_of("huge_cleared") >= huge + 4);
	CHECK(faults_of("file") > file);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(faults_of("base") >= base + 2048);
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	base = faults_of("base");
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(faults_of("base") == base);
}

static void no_fault_waits_for_a_block(void)
{
	long asked = stat_of("direct", "asked"), approved = stat_of("direct", "approved");

	CHECK(write_text(THP "defrag", "always"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("direct", "asked") >= asked + 4);
	CHECK(stat_of("direct", "approved") == approved);
	CHECK(write_text(THP "defrag", "madvise"));
}

static void smaller_blocks_are_priced_too(void)
{
	long asked = stat_of("large", "asked"), approved = stat_of("large", "approved");

	if (access(THP "hugepages-64kB/enabled", W_OK)) {
		lacks = "no blocks between 4 KiB and 2 MiB";
		return;
	}
	CHECK(write_text(THP "hugepages-64kB/enabled", "always"));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 0);
	/* One for each 64 KiB, and those of the stack. */
	CHECK(stat_of("large", "approved") >= approved + 128);
	approved = stat_of("large", "approved");
	asked = stat_of("large", "asked");
	CHECK(run(FIRST "0 0x800000 0 8 100\n", "touch_8") == 0);
	CHECK(stat_of("large", "asked") >= asked + 128);
	CHECK(stat_of("large", "approved") == approved);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(THP "hugepages-64kB/enabled", "never"));
}

static void khugepaged_copies_what_pays(void)
{
	char sleep[32], pages[32];
	long asked, approved;

	read_from(THP "khugepaged/scan_sleep_millisecs", sleep, sizeof(sleep));
	read_from(THP "khugepaged/pages_to_scan", pages, sizeof(pages));
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", "10"));
	CHECK(write_text(THP "khugepaged/pages_to_scan", "100000"));
	approved = stat_of("huge", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_for_promotion") == 8);
	CHECK(stat_of("huge", "approved") == approved);
	/* The faults have happened already: they have no benefit. */
	asked = stat_of("promote", "asked");
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "wait_in_vain") == 0);
	CHECK(stat_of("promote", "asked") > asked);
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", sleep));
	CHECK(write_text(THP "khugepaged/pages_to_scan", pages));
}

/* Approvals are counted when the collapse is done: not per scan, and not on failure. */
static void promotion_is_booked_once(void)
{
	struct kept kept[] = {
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
		{ .path = THP "khugepaged/max_ptes_none" },
	};
	long approved;

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "10"));
	CHECK(write_text(kept[1].path, "100000"));
	approved = stat_of("promote", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_after_promotion") == 8);
	CHECK(stat_of("promote", "approved") == approved + 4);
	CHECK(write_text(kept[2].path, "0"));
	approved = stat_of("promote", "approved");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_with_holes") == 0);
	CHECK(stat_of("promote", "approved") == approved);
	put_back(kept, ARRAY_SIZE(kept));
}

/* Swap in memory, which allows reading blocks of several pages. */
static bool swap_to_memory(void)
{
	static char page[PAGE];
	int fd = open("/dev/zram0", O_WRONLY);
	uint32_t head[] = { 1, 32 * MIB / PAGE - 1, 0 };
	bool done;

	if (fd < 0 || !write_text("/sys/block/zram0/disksize", "32M")) {
		close(fd);
		return false;
	}
	memcpy(page + 1024, head, sizeof(head));
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	done = pwrite(fd, page, PAGE, 0) == PAGE && !fsync(fd);
	close(fd);
	return done && !swapon("/dev/zram0", SWAP_FLAG_PREFER | 100);
}

static void swap_in_is_not_priced_as_a_clear(void)
{
	int found = 0;

	if (access(THP "hugepages-64kB/enabled", W_OK) || !swap_to_memory()) {
		lacks = "no blocks of 64 KiB, or no swap in memory";
		return;
	}
	CHECK(write_text(THP "hugepages-64kB/enabled", "always"));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	for (int i = 0; i < 10; i++) {
		found = run(FIRST "0 0x800000 " FILLED, "swap_out_and_in");
		/* Another task may have prevented the swap-out. */
		if (found != 202)
			break;
	}
	if (!CHECK(!found))
		ksft_print_msg("the program says %d\n", found);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(THP "hugepages-64kB/enabled", "never"));
	CHECK(!swapoff("/dev/zram0"));
	CHECK(write_text("/sys/block/zram0/reset", "1"));
}

static time_t now(void)
{
	struct timespec it;

	clock_gettime(CLOCK_MONOTONIC, &it);
	return it.tv_sec;
}

/*
 * Wait until none of it is huge, or for @sought. The shrinker checks a page once, and
 * skips one that is locked.
 */
static bool comes_to(long sought, const char *rows, const char *part)
{
	time_t begin = now();
	int found;

	do {
		found = run(rows, part);
	} while (found != sought && now() < begin + PATIENCE);
	return found == sought;
}

static void what_is_mostly_empty_is_split_if_that_pays(void)
{
	struct kept kept[] = {
		{ .path = THP "shrink_underused" },
		{ .path = THP "khugepaged/max_ptes_none" },
		{ .path = SYSFS "costs/split" },
		{ .path = SYSFS "costs/reclaim_page" },
	};
	long asked, approved;

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "1"));
	CHECK(write_text(kept[1].path, "400"));
	CHECK(write_text(kept[2].path, "60000"));
	CHECK(write_text(kept[3].path, "3000"));
	approved = stat_of("demote", "approved");
	CHECK(comes_to(0, FIRST "0 0x800000 " FILLED, "shrink_mostly_empty"));
	CHECK(stat_of("demote", "approved") >= approved + 4);
	/* The page walks cost more than the empty pages are worth. */
	approved = stat_of("demote", "approved");
	asked = stat_of("demote", "asked");
	CHECK(run(FIRST "0 0x800000 " RICH, "shrink_mostly_empty") == 8);
	CHECK(stat_of("demote", "asked") >= asked + 4);
	CHECK(stat_of("demote", "approved") == approved);
	/* It pays if reclaim is expensive. */
	CHECK(write_text(kept[3].path, "300000"));
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_mostly_empty"));
	CHECK(write_text(kept[3].path, "3000"));
	/* A page of two processes needs no decision. */
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_shared"));
	CHECK(write_text(SYSFS "mode", "observe"));
	asked = stat_of("demote", "asked");
	CHECK(comes_to(0, FIRST "0 0x800000 " RICH, "shrink_mostly_empty"));
	CHECK(stat_of("demote", "asked") >= asked + 4);
	CHECK(write_text(SYSFS "mode", "on"));
	put_back(kept, ARRAY_SIZE(kept));
}

/* A process that holds memory so that much memory is free, but no block. */
static struct {
	pid_t pid;
	int ask;
	int answer;
} holder;

/* Fill memory with 4 KiB pages, and free most of each 64 KiB. */
static bool break_up(void)
{
	struct sysinfo about;
	size_t size, leave, at;
	char *memory;

	if (sysinfo(&about))
		return false;
	size = about.totalram * about.mem_unit & ~(REGION - 1);
	leave = size / 16 + 32 * MIB;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		return false;
	for (at = 0; at < size; at += MIB) {
		if (sysinfo(&about) || about.freeram * about.mem_unit < leave)
			break;
		touch(memory + at, MIB);
	}
	for (size = at, at = 0; at < size; at += 16 * PAGE)
		if (madvise(memory + at + PAGE, 15 * PAGE, MADV_DONTNEED))
			return false;
	return true;
}

/* Memory; each region of it is touched once. */
static struct {
	char *memory;
	size_t used;
} soaked;

#define MOST_SOAKED	(1024 * MIB)

static bool begin_to_soak(void)
{
	char *at = mmap(NULL, MOST_SOAKED + REGION, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	soaked.memory = (char *)(((uintptr_t)at + REGION - 1) & ~(REGION - 1));
	return at != MAP_FAILED;
}

/* A block that this CPU gets without waiting, if there is one. */
static bool soak_up_block(void)
{
	char *at = soaked.memory + soaked.used;
	long before = huge_in(soaked.memory);

	touch(at, PAGE);
	if (huge_in(soaked.memory) > before) {
		soaked.used += REGION;
		return true;
	}
	/* With its page table, so that the next touch is another decision. */
	mmap(at, REGION, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return false;
}

/* The blocks of all nodes. */
static bool soak_up(void)
{
	for (int cpu = 0; cpu < get_nprocs(); cpu++) {
		stay_on(cpu);
		while (soaked.used < MOST_SOAKED && soak_up_block())
			;
	}
	return soaked.used < MOST_SOAKED;
}

static void hold(int ask, int answer)
{
	char c = 0;

	/* Drop an inherited profile. */
	write_text(LEDGER, "off");
	if (!break_up() || !begin_to_soak())
		_exit(1);
	do {
		if (!soak_up() || write(answer, &c, 1) != 1)
			_exit(1);
	} while (read(ask, &c, 1) == 1);
	_exit(0);
}

/* Take all blocks of a node, and more on request: other tasks free some. */
static void take_node(int node, int ask, int answer)
{
	unsigned long nodes = 1UL << node;
	int cpus = get_nprocs();
	char c = 0;

	write_text(LEDGER, "off");
	if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes)) ||
	    !begin_to_soak())
		_exit(1);
	do {
		/* Per-CPU lists keep some freed blocks. */
		for (int i = 0; i < 2 * cpus; i++) {
			stay_on(i % cpus);
			for (int misses = 0; soaked.used < MOST_SOAKED && misses < 2;)
				misses = soak_up_block() ? 0 : misses + 1;
		}
		if (write(answer, &c, 1) != 1)
			_exit(1);
	} while (read(ask, &c, 1) == 1);
	_exit(0);
}

static bool is_answered(void)
{
	char c;

	return read(holder.answer, &c, 1) == 1;
}

/* Take all blocks, of all nodes or of one. */
static bool hold_node(int node)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	holder.pid = fork();
	if (!holder.pid) {
		close(to[1]);
		close(from[0]);
		if (node >= 0)
			take_node(node, to[0], from[1]);
		hold(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	holder.ask = to[1];
	holder.answer = from[0];
	return holder.pid > 0 && is_answered();
}

static bool hold_memory(void)
{
	return hold_node(-1);
}

/* Other tasks may have freed some meanwhile. */
static bool hold_more(void)
{
	bool done = write(holder.ask, "", 1) == 1 && is_answered();

	return CHECK(done);
}

/* A program loses the benefit of a block, unless one was freed meanwhile. */
static void lose(void)
{
	if (hold_more())
		run(FIRST "0 0x800000 " RICH, "touch_8");
}

static bool let_go(void)
{
	int status;

	close(holder.ask);
	close(holder.answer);
	return waitpid(holder.pid, &status, 0) == holder.pid && !status;
}

/* Sum of a field of the ledgers of all nodes. */
static long ledgers(const char *number)
{
	char text[4096], *at = text;
	long sum = 0;

	read_from(SYSFS "stats/ledger", text, sizeof(text));
	while ((at = strstr(at, number))) {
		at += strlen(number);
		sum += atol(at);
	}
	return sum;
}

/* Cost of an attempt, and smallest and largest loss of a fault. */
#define ATTEMPT_NS	4000000L
#define LEAST_NS	45000000L
#define MOST_NS		52000000L
/* Half-life of losses, in seconds. */
#define HALF_LIFE	17

struct ledger {
	long faults;
	long refused_ns;
	long made;
};

/* kcompactd pays before it counts its result: read the result first. */
static struct ledger ledger_now(void)
{
	struct ledger it;

	it.made = ledgers("blocks_made ");
	it.refused_ns = ledgers("refused_ns ");
	it.faults = ledgers("faults ");
	return it;
}

/* At least this number of attempts was paid. */
static void check_that_it_is_paid(struct ledger before, long attempts)
{
	struct ledger after = ledger_now();

	CHECK(attempts > 0);
	CHECK(after.refused_ns <= before.refused_ns - attempts * ATTEMPT_NS +
				  (after.faults - before.faults) * MOST_NS);
}

/* The loss of a rich program is counted, but is less than the cost of a block. */
static void check_that_losses_are_counted(void)
{
	struct ledger before = ledger_now(), after;
	long asked = stat_of("compact", "asked"), least;
	time_t begin = now();

	CHECK(write_text(SYSFS "costs/compact_block", "9000000000000"));
	do {
		lose();
		after = ledger_now();
	} while (after.faults < before.faults + 4 && now() < begin + PATIENCE);
	CHECK(after.faults >= before.faults + 4);
	least = before.refused_ns + (after.faults - before.faults) * LEAST_NS;
	if (least > MOST_OF_A_POT)
		least = MOST_OF_A_POT;
	CHECK(after.refused_ns >= least >> ((now() - begin) / HALF_LIFE + 1));
	CHECK(after.refused_ns <= before.refused_ns + (after.faults - before.faults) * MOST_NS);
	CHECK(stat_of("compact", "asked") == asked);
	CHECK(write_text(SYSFS "costs/compact_block", "3300000"));
}

/* Decisions are counted, and have no effect. */
static void check_that_it_is_observed(void)
{
	struct ledger before = ledger_now();
	long approved = stat_of("compact", "approved"), cost = stat_of("compact", "cost_ns");
	time_t begin = now();

	CHECK(write_text(SYSFS "mode", "observe"));
	do {
		lose();
	} while (stat_of("compact", "approved") == approved && now() < begin + PATIENCE);
	usleep(200000);
	approved = stat_of("compact", "approved") - approved;
	CHECK(stat_of("compact", "cost_ns") - cost == approved * ATTEMPT_NS);
	check_that_it_is_paid(before, approved);
	CHECK(ledger_now().made == before.made);
	CHECK(write_text(SYSFS "mode", "on"));
}

/* Although the ledger has enough. */
static void check_that_the_poor_wake_nobody(void)
{
	struct ledger before = ledger_now(), after;
	long asked = stat_of("compact", "asked");

	hold_more();
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	usleep(200000);
	after = ledger_now();
	/* It may be halved meanwhile. */
	CHECK(before.refused_ns >= ATTEMPT_NS && (after.refused_ns == before.refused_ns ||
						  after.refused_ns == before.refused_ns / 2));
	CHECK(after.faults == before.faults);
	CHECK(stat_of("compact", "asked") == asked);
}

/*
 * kcompactd skips a zone up to 63 times after a failure, and the
 * block that it makes may be gone before a fault comes.
 */
static void check_that_the_rich_get_a_block(void)
{
	struct ledger before = ledger_now();
	long approved = stat_of("compact", "approved");
	time_t begin = now();

	do {
		lose();
		usleep(10000);
	} while (ledger_now().made == before.made && now() < begin + PATIENCE);
	check_that_it_is_paid(before, ledger_now().made - before.made);
	CHECK(stat_of("compact", "approved") > approved);
	begin = now();
	while (run(FIRST "0 0x800000 " RICH, "touch_8") < 2 && now() < begin + PATIENCE)
		usleep(10000);
	CHECK(now() < begin + PATIENCE);
}

static void what_is_refused_pays_for_compaction(void)
{
	struct kept kept[] = {
		{ .path = "/proc/sys/vm/compaction_proactiveness" },
		{ .path = "/proc/sys/vm/watermark_boost_factor" },
		{ .path = SYSFS "costs/compact_block" },
		{ .path = SYSFS "costs/collapse" },
	};

	keep(kept, ARRAY_SIZE(kept));
	signal(SIGPIPE, SIG_IGN);
	/* There are no other requests to kcompactd. */
	CHECK(write_text(kept[0].path, "0"));
	CHECK(write_text(kept[1].path, "0"));
	CHECK(write_text(kept[2].path, "3300000"));
	CHECK(write_text(kept[3].path, "700000"));
	if (CHECK(hold_memory())) {
		check_that_losses_are_counted();
		check_that_it_is_observed();
		check_that_the_poor_wake_nobody();
		check_that_the_rich_get_a_block();
	}
	CHECK(let_go());
	signal(SIGPIPE, SIG_DFL);
	put_back(kept, ARRAY_SIZE(kept));
}

/* The process ID of a kernel thread, or 0. */
static pid_t thread_of(const char *name)
{
	char path[64], text[64];

	for (pid_t pid = 2; pid < 1000; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		read_from(path, text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
		if (!strcmp(text, name))
			return pid;
	}
	return 0;
}

/* CPU time of reaped children, in milliseconds. */
static double children_ran(void)
{
	struct rusage all;

	if (!CHECK(!getrusage(RUSAGE_CHILDREN, &all)))
		return 0;
	return (all.ru_utime.tv_sec + all.ru_stime.tv_sec) * 1e3 +
	       (all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1e3;
}

/* Credit for background work, in milliseconds. */
static double zero_credit(void)
{
	char text[32];

	read_from(ZEROED "credit_ns", text, sizeof(text));
	return atol(text) / 1e6;
}

/*
 * A program with a hostile profile: the loss that it can claim is bounded, and so is the
 * work of kcompactd for it, by the CPU time of the program.
 */
static void a_hostile_profile_buys_little_compaction(void)
{
	struct kept kept[] = {
		{ .path = "/proc/sys/vm/compaction_proactiveness" },
		{ .path = "/proc/sys/vm/watermark_boost_factor" },
		{ .path = SYSFS "costs/compact_block" },
		{ .path = SYSFS "costs/collapse" },
	};
	int nodes = access("/sys/devices/system/node/node1", F_OK) ? 1 : 2;
	double credit, ran;
	long attempts, faults;

	keep(kept, ARRAY_SIZE(kept));
	signal(SIGPIPE, SIG_IGN);
	CHECK(write_text(kept[0].path, "0"));
	CHECK(write_text(kept[1].path, "0"));
	CHECK(write_text(kept[2].path, "9000000000000"));
	CHECK(write_text(kept[3].path, "0"));
	if (CHECK(hold_memory())) {
		faults = ledgers("faults ");
		for (int i = 0; i < 20 && ledgers("faults ") < faults + 40; i++) {
			hold_more();
			CHECK(!run(HOSTILE, "lose_often"));
		}
		CHECK(ledgers("faults ") >= faults + 40);
		if (!CHECK(ledgers("refused_ns ") <= nodes * MOST_OF_A_POT))
			ksft_print_msg("%ld ns were refused\n", ledgers("refused_ns "));
		/* Clear the credit of other programs. */
		CHECK(write_text(SYSFS "mode", "off"));
		CHECK(!ledgers("refused_ns ") && !ledgers("credit_ns "));
		CHECK(write_text(SYSFS "mode", "on"));
		CHECK(write_text(kept[2].path, "5000000"));
		hold_more();
		credit = ledgers("credit_ns ") / 1e6;
		attempts = ledgers("blocks_made ") + ledgers("blocks_failed ");
		ran = -children_ran();
		CHECK(!run(HOSTILE, "lose_often"));
		ran += children_ran();
		usleep(200000);
		attempts = ledgers("blocks_made ") + ledgers("blocks_failed ") - attempts;
		ksft_print_msg("ran %.1f ms, credit %.1f ms, %ld attempts of 5 ms and more\n",
			       ran, credit, attempts);
		/* Each costs its estimate or more. The last one of a node may be a debt. */
		CHECK(5 * (attempts - nodes) <= credit + ran / COMPACT_SHARE);
	}
	CHECK(let_go());
	signal(SIGPIPE, SIG_DFL);
	put_back(kept, ARRAY_SIZE(kept));
}

/* Few pages at a time, so that no interrupt comes meanwhile. */
static bool reclaim_file(void)
{
	static char data[MIB];
	int fd = open("/data/econ", O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool done = false;
	char *memory;

	if (fd < 0)
		return false;
	if (write(fd, data, MIB) == MIB && !fsync(fd)) {
		memory = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
		done = memory != MAP_FAILED;
		for (size_t at = 0; done && at < MIB; at += PAGE)
			(void)get(memory[at]);
		for (size_t at = 0; done && at < MIB; at += 32 * PAGE)
			done = !madvise(memory + at, 32 * PAGE, MADV_PAGEOUT);
		munmap(memory, MIB);
	}
	close(fd);
	unlink("/data/econ");
	return done;
}

static bool is_measured(const char *cost)
{
	long half;

	return samples_of(cost, &half) > 0 && half > 100;
}

/* Measured costs */

/*
 * Where a host runs each CPU by a thread of its own, and has other work, an interrupt
 * may come each time.
 */
static void price_is_measured(const char *cost)
{
	char path[128];

	snprintf(path, sizeof(path), SYSFS "costs/%s", cost);
	if (is_measured(cost))
		CHECK(number(path) > 1);
	else if (getenv("TOLLFREE_CODE_IS_FIXED"))
		lacks = "an interrupt came each time";
	else
		CHECK(is_measured(cost));
}

static void all_prices_are_measured(void)
{
	struct kept kept[] = {
		{ .path = THP "shrink_underused" },
		{ .path = THP "khugepaged/max_ptes_none" },
	};
	bool has_files = true;
	time_t begin = now();

	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(THP "shrink_underused", "1"));
	CHECK(write_text(THP "khugepaged/max_ptes_none", "400"));
	CHECK(write_text(SYSFS "costs/clear_page", "1"));
	CHECK(write_text(SYSFS "costs/split", "1"));
	CHECK(write_text(SYSFS "costs/reclaim_page", "1"));
	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	while (!(is_measured("clear_page") && is_measured("split") &&
		 is_measured("reclaim_page")) && now() < begin + PATIENCE) {
		/* No benefit, for any measured cost of a fault. */
		CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
		run(FIRST "0 0x800000 " POOR, "shrink_as_stock");
		has_files &= reclaim_file();
	}
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	price_is_measured("clear_page");
	price_is_measured("split");
	if (has_files)
		price_is_measured("reclaim_page");
	else
		lacks = "/data takes no file";
	put_back(kept, ARRAY_SIZE(kept));
}

static bool is_done;

static void *switch_modes(void *unused)
{
	static const char *const names[] = { "off", "observe", "on" };

	for (int i = 0; !get(is_done); i++)
		write_text(SYSFS "mode", names[i % 3]);
	return unused;
}

static void modes_are_switched_under_load(void)
{
	pthread_t thread;

	set(is_done, false);
	CHECK(!pthread_create(&thread, NULL, switch_modes, NULL));
	for (int i = 0; i < 50; i++) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
		CHECK(run(FIRST "0 0x800000 " POOR, "touch_as_child") <= 8);
	}
	set(is_done, true);
	pthread_join(thread, NULL);
	CHECK(write_text(SYSFS "mode", "on"));
}

/* Another process replaces its profile repeatedly while it maps and faults. */
static void profiles_are_replaced_under_load(void)
{
	char path[64], rich[256], poor[256];
	int status;
	pid_t pid = fork();

	if (!pid) {
		for (int i = 0; i < 400; i++) {
			char *memory = map(8 * MIB);

			touch(memory, 8 * MIB);
			munmap(memory, 8 * MIB);
		}
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/mm_profile", pid);
	profile_of(FIRST "0 0x800000 " RICH, rich);
	profile_of("bss 0 0x800000 " POOR, poor);
	while (!waitpid(pid, &status, WNOHANG)) {
		write_to(path, rich, strlen(rich));
		write_to(path, poor, strlen(poor));
	}
	CHECK(!status);
}

/* Blocks that are zeroed ahead contain only zeros when a process takes them. */

static long zeroed(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), ZEROED "%s", what);
	return number(path);
}

static long wait_for_blocks(long blocks, int seconds)
{
	for (int i = 0; i < 100 * seconds && zeroed("blocks") < blocks; i++)
		usleep(10000);
	return zeroed("blocks");
}

static void want_many(void)
{
	CHECK(!run("mmap 0 27 3 0 0x8000000 " FAIR, "touch_each_of_128"));
}

/* Want more than the limit, until the limit is reached. */
static bool stock_up(long blocks)
{
	for (int i = 0; i < 12; i++) {
		if (wait_for_blocks(blocks, i ? 5 : 1) >= blocks)
			return true;
		want_many();
	}
	return CHECK(zeroed("blocks") >= blocks);
}

static bool limit_to(const char *blocks)
{
	return CHECK(write_text(ZEROED "limit", blocks));
}

/* No block is lost. */
static void all_are_accounted_for(void)
{
	CHECK(write_text(ZEROED "limit", "0"));
	CHECK(!zeroed("blocks"));
	CHECK(zeroed("made") + zeroed("put_back") == zeroed("taken") + zeroed("given_back"));
}

/* Make free memory non-zero. */
static void fill_and_free(size_t size)
{
	char *memory = map(size);

	CHECK(memory);
	madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 0xa5, size);
	munmap(memory, size);
}

/* All blocks of the program are kept ones. Other tasks may have taken some before. */
static bool takes_all(const char *rows, const char *part)
{
	for (int i = 0; i < 12; i++) {
		long taken;

		if (!stock_up(4))
			return false;
		taken = zeroed("taken");
		if (run(rows, part) == 8 && zeroed("taken") == taken + 4)
			return true;
	}
	return false;
}

static void blocks_are_zeroed_ahead(void)
{
	long missed = zeroed("missed"), faults, taken;

	/* Clearing costs more than the benefit. */
	CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_of_8") == 0);
	CHECK(zeroed("missed") == missed + 4);
	fill_and_free(128 * MIB);
	limit_to("8");
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	faults = faults_of("huge_zeroed");
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_of_8"));
	CHECK(faults_of("huge_zeroed") >= faults + 4);
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	CHECK(takes_all(FIRST "0 0x800000 " RICH, "touch_each_of_8"));
	/* There were no decisions about others. */
	CHECK(stock_up(4));
	taken = zeroed("taken");
	CHECK(run(NULL, "touch_each_of_8") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_advised") == 8);
	CHECK(zeroed("taken") == taken);
	all_are_accounted_for();
}

/*
 * A process that hardly runs uses up blocks faster than it could clear them. Zeroing for
 * it takes no more time than it has run.
 */
static void zeroing_is_paid_with_the_callers_time(void)
{
	double credit, ran;
	long blocks;

	CHECK(write_text(SYSFS "costs/clear_huge", "20000000"));
	/* The credit of other programs is used up. */
	CHECK(write_text(SYSFS "mode", "off") && write_text(SYSFS "mode", "on"));
	limit_to("8");
	credit = zero_credit();
	blocks = zeroed("made") + zeroed("abandoned");
	ran = -children_ran();
	CHECK(!run("heap 0 0x8000000 " FAIR, "use_up_zeroed"));
	ran += children_ran();
	blocks = zeroed("made") + zeroed("abandoned") - blocks;
	ksft_print_msg("ran %.1f ms, credit %.1f ms, %ld blocks of 20 ms each\n", ran, credit,
		       blocks);
	/* A block in work is not paid yet. */
	CHECK(20 * (blocks - 1) <= credit + ran);
	all_are_accounted_for();
}

static void a_limit_holds(void)
{
	limit_to("3");
	CHECK(stock_up(3));
	usleep(100000);
	CHECK(zeroed("blocks") == 3);
	limit_to("2");
	CHECK(zeroed("blocks") == 2);
	limit_to("0");
	CHECK(!zeroed("blocks"));
	CHECK(!write_text(ZEROED "limit", "-1") && errno == EINVAL);
	CHECK(!write_text(ZEROED "limit", "many") && errno == EINVAL);
	CHECK(!write_text(ZEROED "limit", "4000000000") && errno == EINVAL);
	CHECK(!zeroed("limit"));
	all_are_accounted_for();
}

static long memory_of(const char *name)
{
	char text[4096], *at;

	read_from("/proc/meminfo", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) >> 10 : -1;
}

/* An abandoned block is not paid either. */
static void a_limit_of_0_leaves_nothing(void)
{
	long abandoned = zeroed("abandoned"), given_up, before;

	want_many();
	before = memory_of("MemFree:");
	for (int i = 0; i < 2000 && zeroed("abandoned") < abandoned + 200; i++) {
		limit_to("8");
		usleep(i * 61 % 3000);
		limit_to("0");
		given_up = zeroed("abandoned");
		if (!CHECK(!zeroed("blocks")))
			return;
		usleep(1000);
		/* It was not abandoned only afterwards. */
		CHECK(zeroed("abandoned") == given_up);
		if (i % 100 == 99)
			want_many();
	}
	all_are_accounted_for();
	if (zeroed("abandoned") < abandoned + 200)
		lacks = "too few were in work";
	else
		CHECK(memory_of("MemFree:") > before - 200);
}

static void what_is_kept_is_available(void)
{
	long before;

	want_many();
	before = memory_of("MemAvailable:");
	limit_to("32");
	/* Without a process that frees blocks, which per-CPU lists keep for a while. */
	CHECK(wait_for_blocks(32, 60) == 32);
	CHECK(memory_of("MemAvailable:") > before - 32);
	all_are_accounted_for();
}

/* Allocate single pages until no block is kept. */
static int use_memory(void)
{
	/* There is some swap. */
	size_t most = (memory_of("MemAvailable:") + 256) * MIB;

	for (size_t used = 0; used < most && zeroed("blocks"); used += MIB) {
		char *memory = map(MIB);

		if (!memory)
			return 1;
		madvise(memory, MIB, MADV_NOHUGEPAGE);
		touch(memory, MIB);
	}
	return zeroed("blocks") != 0;
}

static long count_of(const char *name)
{
	char text[16384], *at;

	read_from("/proc/vmstat", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

static void who_needs_memory_has_it(void)
{
	long kills = count_of("\noom_kill ");
	int status;
	pid_t pid;

	limit_to("32");
	CHECK(stock_up(32));
	pid = fork();
	if (!pid)
		_exit(use_memory());
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(count_of("\noom_kill ") == kills);
	all_are_accounted_for();
}

/* Number of blocks, and number of blocks freed for one huge page. */
static bool soak_up_kept(long *kept, long *most)
{
	long before;

	write_text(LEDGER, "off");
	stay_on(0);
	if (!break_up() || !begin_to_soak())
		return false;
	before = *kept = zeroed("blocks");
	while (before && soaked.used < MOST_SOAKED && soak_up_block()) {
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

	mkdir(GROUP, 0755);
	CHECK(!mount("none", GROUP, "cgroup2", 0, NULL) || errno == EBUSY);
	write_text(GROUP "/cgroup.subtree_control", "+memory");
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
	umount(GROUP);
	rmdir(GROUP);
}

static void policies_are_obeyed(void)
{
	long taken;

	if (access("/sys/devices/system/node/node1", F_OK)) {
		lacks = "one node";
		return;
	}
	limit_to("8");
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_here"));
	CHECK(stock_up(4));
	taken = zeroed("taken");
	/* Only half of the local ones. */
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_each_in_turn") == 8);
	CHECK(zeroed("taken") <= taken + 4);
	/* Blocks wanted on a node are zeroed on that node. */
	limit_to("0");
	limit_to("8");
	CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_away") == 0);
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_away"));
	all_are_accounted_for();
}

/* A field of the ledger of one node. */
static long ledger_of(int node, const char *number)
{
	char text[4096], name[32], *at;

	read_from(SYSFS "stats/ledger", text, sizeof(text));
	snprintf(name, sizeof(name), "node %d ", node);
	at = strstr(text, name);
	at = at ? strstr(at, number) : NULL;
	return at ? atol(at + strlen(number)) : -1;
}

/* Whether a program gets fewer blocks than it could use; other tasks may free some. */
static bool loses_blocks(const char *part)
{
	for (int i = 0; i < 20 && hold_more(); i++)
		if (run(FIRST "0 0x800000 " RICH, part) < 8)
			return true;
	return false;
}

/* The node that memory will come from decides, wherever the program runs. */
static void bound_memory_is_judged_on_its_node(void)
{
	struct kept kept[] = {
		{ .path = SYSFS "costs/compact_block" },
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
	};
	pid_t khugepaged = thread_of("khugepaged");
	cpu_set_t all, first;
	long here, there;

	if (access("/sys/devices/system/node/node1", F_OK)) {
		lacks = "one node";
		return;
	}
	keep(kept, ARRAY_SIZE(kept));
	CHECK(write_text(kept[0].path, "9000000000000"));
	CHECK(write_text(kept[1].path, "10"));
	CHECK(write_text(kept[2].path, "100000"));
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	signal(SIGPIPE, SIG_IGN);
	CHECK(khugepaged && !sched_getaffinity(khugepaged, sizeof(all), &all) &&
	      !sched_setaffinity(khugepaged, sizeof(first), &first));

	/* The first node has no block, the second one has. */
	if (CHECK(hold_node(0))) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_on_second_node") == 8);
		hold_more();
		CHECK(run(FIRST "0 0x800000 " RICH, "wait_on_second_node") == 8);
		CHECK(loses_blocks("touch_here"));
	}
	CHECK(let_go());
	/* The reverse: losses count on that node. */
	if (CHECK(hold_node(1))) {
		here = ledger_of(0, "faults ");
		there = ledger_of(1, "faults ");
		CHECK(loses_blocks("touch_on_second_node"));
		CHECK(ledger_of(0, "faults ") == here);
		CHECK(ledger_of(1, "faults ") > there);
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_here") == 8);
	}
	CHECK(let_go());
	signal(SIGPIPE, SIG_DFL);
	CHECK(!sched_setaffinity(khugepaged, sizeof(all), &all));
	put_back(kept, ARRAY_SIZE(kept));
}

static void modes_empty(void)
{
	limit_to("8");
	CHECK(stock_up(4));
	CHECK(write_text(SYSFS "mode", "off"));
	CHECK(!zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	CHECK(stock_up(4));
	CHECK(write_text(SYSFS "mode", "observe"));
	CHECK(!zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
}

static void nothing_is_kept_for_an_observer(void)
{
	long made = zeroed("made"), taken = zeroed("taken"), hits = zeroed("would_hit");
	long asked = stat_of("zero", "asked");

	CHECK(write_text(SYSFS "mode", "observe"));
	limit_to("8");
	for (int i = 0; i < 60 && zeroed("would_hit") < hits + 4; i++) {
		run(FIRST "0 0x800000 " RICH, "touch_each_of_8");
		sleep(1);
	}
	CHECK(zeroed("would_hit") >= hits + 4);
	CHECK(zeroed("would_make") >= 4);
	CHECK(zeroed("would_save_ns") >= 4 * number(SYSFS "costs/clear_huge"));
	CHECK(stat_of("zero", "asked") > asked);
	CHECK(zeroed("made") == made && zeroed("taken") == taken && !zeroed("blocks"));
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
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

static void *switch_limits(void *unused)
{
	static const char *const limits[] = { "8", "0", "8", "1" };

	for (int i = 0; !get(is_done); i++) {
		write_text(ZEROED "limit", limits[i % 4]);
		write_text(SYSFS "mode", i % 16 ? "on" : i % 32 ? "off" : "observe");
		if (i % 8 == 0)
			write_text("/proc/sys/vm/drop_caches", "2");
		usleep(i * 61 % 5000);
	}
	return unused;
}

static void blocks_come_and_go_under_load(void)
{
	pthread_t thread;

	fill_and_free(128 * MIB);
	set(is_done, false);
	CHECK(!pthread_create(&thread, NULL, switch_limits, NULL));
	for (int i = 0; i < 50; i++)
		CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_of_8") <= 8);
	set(is_done, true);
	pthread_join(thread, NULL);
	CHECK(write_text(SYSFS "mode", "on"));
	all_are_accounted_for();
}

#define TEST(name) { #name, name }

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(without_a_profile_all_is_stock),
	TEST(what_pays_is_huge),
	TEST(unprofiled_mapping_uses_stock_policy),
	TEST(a_part_speaks_for_its_region),
	TEST(confidence_and_touched_pages_count),
	TEST(what_is_read_is_asked_about_too),
	TEST(mappings_are_told_apart_by_their_order),
	TEST(rows_move_and_grow_with_a_mapping),
	TEST(mremap_of_a_part_keeps_the_rest),
	TEST(heap_and_bss_have_rows),
	TEST(children_inherit),
	TEST(madvise_is_the_users_own_decision),
	TEST(other_programs_have_none),
	TEST(more_rights_drop_it),
	TEST(a_stalled_write_does_not_reach_more_rights),
	TEST(a_descriptor_ends_with_its_program),
	TEST(modes),
	TEST(a_process_has_a_ledger_and_a_mode),
	TEST(prctl_sets_the_mode),
	TEST(it_is_read_as_it_was_written),
	TEST(nonsense_is_refused),
	TEST(a_profile_can_be_removed),
	TEST(a_large_profile_is_taken),
	TEST(absurd_values_do_no_harm),
	TEST(others_may_not),
	TEST(prices_may_be_anything),
	TEST(statistics_saturate),
	TEST(prices_are_measured),
	TEST(what_is_read_again_is_counted),
	TEST(faults_are_counted_by_kind),
	TEST(no_fault_waits_for_a_block),
	TEST(smaller_blocks_are_priced_too),
	TEST(khugepaged_copies_what_pays),
	TEST(promotion_is_booked_once),
	TEST(swap_in_is_not_priced_as_a_clear),
	TEST(what_is_mostly_empty_is_split_if_that_pays),
	TEST(what_is_refused_pays_for_compaction),
	TEST(a_hostile_profile_buys_little_compaction),
	TEST(all_prices_are_measured),
	TEST(modes_are_switched_under_load),
	TEST(profiles_are_replaced_under_load),
	TEST(blocks_are_zeroed_ahead),
	TEST(zeroing_is_paid_with_the_callers_time),
	TEST(a_limit_holds),
	TEST(a_limit_of_0_leaves_nothing),
	TEST(what_is_kept_is_available),
	TEST(who_needs_memory_has_it),
	TEST(who_needs_a_block_has_it),
	TEST(drop_caches_drops_them),
	TEST(what_a_group_may_not_have_is_put_back),
	TEST(policies_are_obeyed),
	TEST(bound_memory_is_judged_on_its_node),
	TEST(modes_empty),
	TEST(nothing_is_kept_for_an_observer),
	TEST(memory_with_blocks_goes_offline),
	TEST(a_page_of_a_block_may_go_bad),
	TEST(blocks_come_and_go_under_load),
};

static int run_part(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(parts[i].name, name))
			return parts[i].run();
	return 220;
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc == 3 && !strcmp(argv[1], "-"))
		return run_part(argv[2]);
	ksft_print_header();
	if (length < 0 || access(SYSFS "mode", W_OK))
		ksft_exit_skip("no econ: %s\n", strerror(errno));
	mkdir("/tmp", 01777);
	/* Costs are those that the tests write, and no block is free by chance. */
	if (!write_text(SYSFS "costs/frozen", "1") || !write_text(SYSFS "mode", "on") ||
	    !write_text(THP "enabled", "always") || !write_text(ZEROED "limit", "0"))
		ksft_exit_fail_msg("it cannot be switched on: %s\n", strerror(errno));
	keep(prices, ARRAY_SIZE(prices));
	ksft_set_plan(ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!is_asked_for(tests[i].name, argc, argv)) {
			ksft_test_result_skip("%s\n", tests[i].name);
			continue;
		}
		failed = false;
		lacks = NULL;
		tests[i].run();
		CHECK(write_text(SYSFS "costs/frozen", "1"));
		put_back(prices, ARRAY_SIZE(prices));
		if (lacks && !failed)
			ksft_test_result_skip("%s: %s\n", tests[i].name, lacks);
		else
			ksft_test_result(!failed, "%s\n", tests[i].name);
	}
	write_text(SYSFS "mode", "off");
	write_text(SYSFS "costs/frozen", "0");
	write_text(THP "enabled", "madvise");
	ksft_finished();
}
