// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the files and the system call that set profiles and modes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

/* A benefit above the upper bound, and the value that the kernel uses. */
#define ABSURD		"18446744073709551615 512 100\n"
#define MOST_OF_A_ROW	10000000000L

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

static int touch_8_by_prctl(void)
{
	return prctl(PR_ECON, PR_ECON_SET_MODE, PR_ECON_MODE_OFF, 0, 0) ? 202 : touch_8();
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
		for (int i = 0; i < 100; i++) {
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

const struct test econ_control_tests[] = {
	TEST(modes),
	TEST(a_process_has_a_ledger_and_a_mode),
	TEST(prctl_sets_the_mode),
	TEST(it_is_read_as_it_was_written),
	TEST(nonsense_is_refused),
	TEST(a_profile_can_be_removed),
	TEST(a_large_profile_is_taken),
	TEST(absurd_values_do_no_harm),
	TEST(modes_are_switched_under_load),
	TEST(profiles_are_replaced_under_load),
	{}
};

const struct part econ_control_parts[] = {
	PART(touch_8_by_prctl),
	{}
};
