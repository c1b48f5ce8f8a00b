// SPDX-License-Identifier: GPL-2.0-only
/*
 * econ: what a profile promises. A program that is run again as itself has
 * huge pages where its profile says that they pay, and nowhere else.
 *
 * Needs root, and a node with some free huge pages. Arguments name the tests that
 * are run, all unless given.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

#define MIB		0x100000UL
#define REGION		(2 * MIB)
#define SYSFS		"/sys/kernel/mm/econ/"
#define THP		"/sys/kernel/mm/transparent_hugepage/"
#define PROFILE		"/proc/self/mm_profile"
#define LEDGER		"/proc/self/mm_ledger"
/* Of a mapping of 8 MiB that may be read and written, the first one. */
#define FIRST		"mmap 0 23 3 "
#define RICH		"50000000 512 100\n"
#define POOR		"0 8 100\n"

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

/* This process has a profile of so many rows from here on. */
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

/* One of the five numbers of a model, of the machine. */
static long stat_of(const char *model, const char *number)
{
	char path[128], text[256], *at;

	snprintf(path, sizeof(path), SYSFS "stats/%s", model);
	read_from(path, text, sizeof(text));
	at = strstr(text, number);
	return at ? atol(at + strlen(number)) : -1;
}

/* How much of a mapping is huge, in MiB. */
static long huge_in(const void *memory)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, kib;
	bool is_it = false;
	long found = -1;
	char line[256];

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			is_it = (unsigned long)memory >= begin && (unsigned long)memory < end;
		else if (is_it && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			found = kib >> 10;
	}
	if (smaps)
		fclose(smaps);
	return found;
}

static char *map(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* By a plain store: emulators may read before they exchange. */
static void touch(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
}

/*
 * What the program does when it is run again. Its exit status is what it found:
 * MiB that are huge, or 200 and more where something else went wrong.
 */

static int touch_8(void)
{
	char *memory = map(8 * MIB);

	if (!memory)
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

static int touch_second(void)
{
	return map(8 * MIB) ? touch_8() : 200;
}

/* Its place is taken by another mapping, of which nothing is known. */
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

/* What the user has asked for is not asked about. */
static int touch_advised(void)
{
	char *memory = map(8 * MIB);

	if (!memory || madvise(memory, 8 * MIB, MADV_HUGEPAGE))
		return 200;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* Nothing is huge by its first touch. khugepaged may be there before the last one. */
static char *map_small(void)
{
	char *memory = map(8 * MIB);

	write_text(SYSFS "costs/clear_huge", "9000000000000");
	if (memory)
		touch(memory, 8 * MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	return memory;
}

/* Then khugepaged comes. */
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

static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
	{ "touch_8", touch_8 },
	{ "touch_second", touch_second },
	{ "touch_anew", touch_anew },
	{ "touch_moved", touch_moved },
	{ "touch_as_child", touch_as_child },
	{ "touch_heap", touch_heap },
	{ "touch_bss", touch_bss },
	{ "touch_advised", touch_advised },
	{ "wait_for_promotion", wait_for_promotion },
	{ "wait_in_vain", wait_in_vain },
};

static char self[PATH_MAX];

/* Runs this program again by a path, with a profile if there are rows. */
static int run_path(const char *path, const char *rows, const char *part, uid_t uid)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
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

/* The tests */

static void without_a_profile_all_is_stock(void)
{
	long asked = stat_of("huge", "asked");

	CHECK(run(NULL, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") == asked);
}

static void what_pays_is_huge(void)
{
	long asked = stat_of("huge", "asked"), gone = stat_of("huge", "gone");

	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("huge", "asked") >= asked + 4);
	CHECK(stat_of("huge", "gone") == gone + 4);
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0x200000 0x400000 " RICH FIRST "0x400000 0x800000 " POOR, "touch_8") == 2);
	/* Nothing is known of it. */
	CHECK(run("mmap 7 23 3 0 0x800000 " RICH, "touch_8") == 0);
	CHECK(run("mmap 0 23 1 0 0x800000 " RICH, "touch_8") == 0);
	CHECK(run("mmap 0 22 3 0 0x400000 " RICH, "touch_8") == 0);
}

static void confidence_and_touched_pages_count(void)
{
	CHECK(run(FIRST "0 0x800000 50000000 1 0\n", "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 50000000 1 50\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 51 100\n", "touch_8") == 0);
}

static void mappings_are_told_apart_by_their_order(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR "mmap 1 23 3 0 0x800000 " RICH, "touch_second") == 8);
	CHECK(run(FIRST "0 0x800000 " RICH "mmap 1 23 3 0 0x800000 " POOR, "touch_second") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_anew") == 0);
}

static void rows_move_and_grow_with_a_mapping(void)
{
	CHECK(run(FIRST "0 0x1000000 " RICH, "touch_moved") == 16);
	CHECK(run(FIRST "0 0x400000 " RICH, "touch_moved") == 4);
}

static void heap_and_bss_have_rows(void)
{
	/* They need not begin on a boundary of 2 MiB. */
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

/* A copy of this program by another name, in a mount where it may be set-user-ID. */
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

/* Of this very process, which was never executed with a profile. */
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

/* What was read back can be written again. */
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
	/* Nothing of it was taken, and nothing was lost. */
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

/* As many rows as fit. */
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
	CHECK(run(NULL, "touch_8") == 0);
	CHECK(give(""));
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

	/* It exits while somebody has the file open. */
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

static void prices_may_be_anything(void)
{
	static const char *const prices[] = {
		"fault", "huge_fault", "clear_page", "clear_huge", "compact_block", "collapse",
		"split", "reclaim_page",
	};
	char before[ARRAY_SIZE(prices)][32], path[128];

	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		snprintf(path, sizeof(path), SYSFS "costs/%s", prices[i]);
		read_from(path, before[i], sizeof(before[i]));
		CHECK(atol(before[i]) > 0);
		CHECK(write_text(path, "0"));
		CHECK(!write_text(path, "-1") && errno == EINVAL);
		CHECK(!write_text(path, "18446744073709551616") && errno == ERANGE);
		CHECK(!write_text(path, "cheap") && errno == EINVAL);
	}
	/* Nothing costs anything, and saves nothing unless walks do. */
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_8") == 0);
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		snprintf(path, sizeof(path), SYSFS "costs/%s", prices[i]);
		CHECK(write_text(path, "9223372036854775808"));
	}
	CHECK(run(FIRST "0 0x800000 50000000 0 100\n", "touch_8") == 0);
	for (size_t i = 0; i < ARRAY_SIZE(prices); i++) {
		snprintf(path, sizeof(path), SYSFS "costs/%s", prices[i]);
		CHECK(write_text(path, before[i]));
	}
}

/* How often a price was seen, and what half of its samples do not exceed. */
static long samples_of(const char *price, long *half)
{
	char text[1024], *at, name[32];
	long tenths, seen = -1;

	read_from(SYSFS "costs/samples", text, sizeof(text));
	snprintf(name, sizeof(name), "%s ", price);
	at = strstr(text, name);
	if (at)
		sscanf(at + strlen(name), "%ld %ld %ld", half, &tenths, &seen);
	return seen;
}

static void prices_are_measured(void)
{
	long half, before, huge, fault;
	char price[32];

	CHECK(write_text(SYSFS "costs/samples", "0"));
	CHECK(!samples_of("clear_huge", &half) && !samples_of("fault", &half));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(!samples_of("clear_huge", &half));
	CHECK(write_text(SYSFS "costs/clear_huge", "1"));
	CHECK(write_text(SYSFS "costs/frozen", "0"));
	for (int i = 0; i < 10 && samples_of("clear_huge", &half) < 1; i++)
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(run(FIRST "0 0x800000 0 0 100\n", "touch_8") == 0);
	huge = samples_of("clear_huge", &half);
	fault = samples_of("fault", &before);
	/* One of 64 faults of those that were not huge. */
	CHECK(fault > 8 && fault < 2048 && before > 100);
	CHECK(write_text(SYSFS "costs/frozen", "1"));
	read_from(SYSFS "costs/clear_huge", price, sizeof(price));
	if (huge)
		CHECK(half > 1000 && atol(price) > 1000);
	else
		lacks = "an interrupt came during each clearing";
	CHECK(!write_text(SYSFS "costs/samples", "1") && errno == EINVAL);
	CHECK(!write_text(SYSFS "costs/frozen", "cold") && errno == EINVAL);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(SYSFS "costs/fault", "1300"));
	CHECK(write_text(SYSFS "costs/huge_fault", "4000"));
}

/* All faults of a kind. */
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
	long asked = stat_of("direct", "asked"), gone = stat_of("direct", "gone");

	CHECK(write_text(THP "defrag", "always"));
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_8") == 8);
	CHECK(stat_of("direct", "asked") >= asked + 4);
	CHECK(stat_of("direct", "gone") == gone);
	CHECK(write_text(THP "defrag", "madvise"));
}

static void smaller_blocks_are_priced_too(void)
{
	long asked = stat_of("large", "asked"), gone = stat_of("large", "gone");

	if (access(THP "hugepages-64kB/enabled", W_OK)) {
		lacks = "no blocks between 4 KiB and 2 MiB";
		return;
	}
	CHECK(write_text(THP "hugepages-64kB/enabled", "always"));
	CHECK(write_text(SYSFS "costs/clear_huge", "9000000000000"));
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "touch_8") == 0);
	/* One for each 64 KiB, and the stack's. */
	CHECK(stat_of("large", "gone") >= gone + 128);
	gone = stat_of("large", "gone");
	asked = stat_of("large", "asked");
	CHECK(run(FIRST "0 0x800000 0 8 100\n", "touch_8") == 0);
	CHECK(stat_of("large", "asked") >= asked + 128);
	CHECK(stat_of("large", "gone") == gone);
	CHECK(write_text(SYSFS "costs/clear_huge", "200000"));
	CHECK(write_text(THP "hugepages-64kB/enabled", "never"));
}

static void khugepaged_copies_what_pays(void)
{
	char sleep[32], pages[32];
	long asked, gone;

	read_from(THP "khugepaged/scan_sleep_millisecs", sleep, sizeof(sleep));
	read_from(THP "khugepaged/pages_to_scan", pages, sizeof(pages));
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", "10"));
	CHECK(write_text(THP "khugepaged/pages_to_scan", "100000"));
	gone = stat_of("huge", "gone");
	CHECK(run(FIRST "0 0x800000 " RICH, "wait_for_promotion") == 8);
	CHECK(stat_of("huge", "gone") == gone);
	/* Its faults are past: they save nothing. */
	asked = stat_of("promote", "asked");
	CHECK(run(FIRST "0 0x800000 0 512 100\n", "wait_in_vain") == 0);
	CHECK(stat_of("promote", "asked") > asked);
	CHECK(write_text(THP "khugepaged/scan_sleep_millisecs", sleep));
	CHECK(write_text(THP "khugepaged/pages_to_scan", pages));
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

/* While it maps and faults, another one gives it profile after profile. */
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

#define TEST(name) { #name, name }

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(without_a_profile_all_is_stock),
	TEST(what_pays_is_huge),
	TEST(confidence_and_touched_pages_count),
	TEST(mappings_are_told_apart_by_their_order),
	TEST(rows_move_and_grow_with_a_mapping),
	TEST(heap_and_bss_have_rows),
	TEST(children_inherit),
	TEST(madvise_is_the_users_own_decision),
	TEST(other_programs_have_none),
	TEST(more_rights_drop_it),
	TEST(modes),
	TEST(a_process_has_a_ledger_and_a_mode),
	TEST(it_is_read_as_it_was_written),
	TEST(nonsense_is_refused),
	TEST(a_large_profile_is_taken),
	TEST(others_may_not),
	TEST(prices_may_be_anything),
	TEST(prices_are_measured),
	TEST(faults_are_counted_by_kind),
	TEST(no_fault_waits_for_a_block),
	TEST(smaller_blocks_are_priced_too),
	TEST(khugepaged_copies_what_pays),
	TEST(modes_are_switched_under_load),
	TEST(profiles_are_replaced_under_load),
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
	/* Prices are what the tests write. */
	if (!write_text(SYSFS "costs/frozen", "1") || !write_text(SYSFS "mode", "on") ||
	    !write_text(THP "enabled", "always"))
		ksft_exit_fail_msg("it cannot be switched on: %s\n", strerror(errno));
	ksft_set_plan(ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!is_asked_for(tests[i].name, argc, argv)) {
			ksft_test_result_skip("%s\n", tests[i].name);
			continue;
		}
		failed = false;
		lacks = NULL;
		tests[i].run();
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
