// SPDX-License-Identifier: GPL-2.0-only
/* Tests of faults of programs without a profile: they do not wait for a block either. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

#define DECIDE		SYSFS "decide_all_stalls"

/* Faults that compacted or reclaimed for a block. */
static long faults_that_waited(void)
{
	return faults_of("huge_compacted") + faults_of("huge_reclaimed") +
	       faults_of("fell_back_compacted") + faults_of("fell_back_reclaimed");
}

/* In a child, which has no profile. */
void touch_unprofiled(bool is_advised)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		char *memory = map(8 * MIB);

		if (!memory || (is_advised && madvise(memory, 8 * MIB, MADV_HUGEPAGE)))
			_exit(1);
		touch(memory, 8 * MIB);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

/* All blocks are taken, without waiting for more. */
static void hold_what_is_free(bool is_advised)
{
	CHECK(write_text(THP "defrag", "never"));
	hold_more();
	CHECK(write_text(THP "defrag", is_advised ? "madvise" : "always"));
}

/* Whether a fault waits, sooner or later: other tasks may have freed a block. */
static bool waits(bool is_advised)
{
	long waited = faults_that_waited();
	time_t begin = now();

	do {
		hold_what_is_free(is_advised);
		touch_unprofiled(is_advised);
	} while (faults_that_waited() == waited && now() < begin + PATIENCE);
	return faults_that_waited() > waited;
}

static void check_that_none_waits(bool is_advised)
{
	long waited = faults_that_waited(), asked = stat_of("direct", "asked");
	long approved = stat_of("direct", "approved");

	for (int i = 0; i < 10; i++) {
		hold_what_is_free(is_advised);
		touch_unprofiled(is_advised);
	}
	CHECK(faults_that_waited() == waited);
	CHECK(stat_of("direct", "asked") >= asked + 10);
	CHECK(stat_of("direct", "approved") == approved);
}

static void check_faults(bool is_advised)
{
	long asked;

	check_that_none_waits(is_advised);
	CHECK(write_text(SYSFS "mode", "observe"));
	asked = stat_of("direct", "asked");
	CHECK(waits(is_advised));
	CHECK(stat_of("direct", "asked") > asked);
	CHECK(write_text(SYSFS "mode", "on"));
	CHECK(write_text(DECIDE, "0"));
	asked = stat_of("direct", "asked");
	CHECK(waits(is_advised));
	CHECK(stat_of("direct", "asked") == asked);
	CHECK(write_text(DECIDE, "1"));
}

static void no_program_waits_for_a_block(void)
{
	CHECK(!write_text(DECIDE, "perhaps") && errno == EINVAL);
	CHECK(write_text(SYSFS "fault_latency/enabled", "1"));
	CHECK(write_text(THP "defrag", "never"));
	if (CHECK(hold_memory())) {
		check_faults(true);
		check_faults(false);
	}
	CHECK(write_text(SYSFS "fault_latency/enabled", "0"));
	CHECK(let_go());
	CHECK(write_text(THP "defrag", "madvise"));
}

/* As without econ, whatever the machine does. */
static int touch_advised_in_mode_off(void)
{
	char *memory = map(8 * MIB);
	long asked;

	if (!memory || madvise(memory, 8 * MIB, MADV_HUGEPAGE) ||
	    write_to(LEDGER, "off", 3))
		return 200;
	asked = stat_of("direct", "asked");
	touch(memory, 8 * MIB);
	return stat_of("direct", "asked") - asked;
}

static void a_process_can_be_left_out(void)
{
	CHECK(run(FIRST "0 0x800000 " POOR, "touch_advised_in_mode_off") == 0);
}

const struct test econ_stalls_tests[] = {
	TEST(no_program_waits_for_a_block),
	TEST(a_process_can_be_left_out),
	{}
};

const struct part econ_stalls_parts[] = {
	PART(touch_advised_in_mode_off),
	{}
};
