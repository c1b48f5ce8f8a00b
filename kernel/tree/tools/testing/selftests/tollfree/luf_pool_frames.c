// SPDX-License-Identifier: GPL-2.0-only
/* Tests of pages that are poisoned or held while they are in a pool. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luf_pool.h"

#define HARD_OFFLINE	"/sys/devices/system/memory/hard_offline_page"

/* Return: PFN of a page in a pool; 0 if there is none. */
static uint64_t frame_in_pool(void)
{
	enum { KPF_LRU = 5, KPF_BUDDY = 10 };

	for (int tries = 0; tries < 40; tries++) {
		long before = deferred();
		uint64_t frame;

		must(write_text(LUF "drain", "1"), LUF "drain");
		touch(0, CHUNK);
		frame = frame_of(at);
		madvise((void *)at, CHUNK * PAGE, MADV_PAGEOUT);
		if (frame && deferred() - before == CHUNK && waiting() >= CHUNK &&
		    !frame_of(at) && !has_flag(frame, KPF_LRU) && !has_flag(frame, KPF_BUDDY))
			return frame;
	}
	return 0;
}

static bool poison(uint64_t frame)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)frame * PAGE);
	return write_text(HARD_OFFLINE, text);
}

static void a_poisoned_page_of_a_pool_is_handled(void)
{
	enum { KPF_HWPOISON = 19 };
	long before, after, again;
	uint64_t frame;
	bool handled;

	if (access(HARD_OFFLINE, F_OK)) {
		lacks = "a kernel without CONFIG_MEMORY_FAILURE";
		return;
	}
	frame = frame_in_pool();
	/* Otherwise no page came to a pool. */
	if (!CHECK(frame))
		return;
	before = sum_of("/proc/meminfo", "HardwareCorrupted");
	handled = poison(frame);
	if (!handled)
		ksft_print_msg("hard_offline_page: %s\n", strerror(errno));
	after = sum_of("/proc/meminfo", "HardwareCorrupted");
	poison(frame);
	again = sum_of("/proc/meminfo", "HardwareCorrupted");
	ksft_print_msg("%ld KiB are poisoned, %ld after the first time, %ld after the second\n",
		       before, after, again);
	/* Its content exists elsewhere, and the page is never reused. */
	CHECK(touch(0, CHUNK) && frame_of(at) && frame_of(at) != frame);
	must(write_text(LUF "drain", "1"), LUF "drain");
	CHECK(defer(0, PAGES) && has_flag(frame, KPF_HWPOISON));
	CHECK(handled && after - before == 4 && again == after);
}

static struct {
	bool stop;
	long reads;
	long wrong;
} hammer;

static void *read_often(void *cpu)
{
	uint32_t word;

	stay_on((intptr_t)cpu);
	for (uint32_t i = (intptr_t)cpu; !get(hammer.stop); i = (i * 5 + 1) % PAGES) {
		if (pread(file, &word, sizeof(word), i * PAGE) != sizeof(word) || word != i)
			__atomic_add_fetch(&hammer.wrong, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&hammer.reads, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static long lost(void)
{
	return all_deferred() - released();
}

static void nothing_is_lost_where_pages_are_held(void)
{
	long before = count("deferred_compaction"), kept = count("flushes_kept");
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[2];
	double end = now() + 1;

	if (access("/proc/sys/vm/compact_memory", F_OK)) {
		lacks = "a kernel without CONFIG_COMPACTION";
		return;
	}
	for (intptr_t i = 0; i < 2; i++)
		must(!pthread_create(&threads[i], NULL, read_often,
				     (void *)((i + 2) % cpus)), "thread");
	for (int i = 0; !i || (i < 50 && now() < end); i++) {
		CHECK(touch(0, PAGES));
		CHECK(write_text("/proc/sys/vm/compact_memory", "1"));
	}
	set(hammer.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	must(write_text(LUF "drain", "1"), LUF "drain");
	ksft_print_msg("%ld reads, %ld wrong; %ld pages lost\n", hammer.reads, hammer.wrong,
		       lost());
	ksft_print_msg("%ld pages moved lazily, %ld flushes for what was kept\n",
		       count("deferred_compaction") - before, count("flushes_kept") - kept);
	CHECK(hammer.reads && !hammer.wrong && !lost());
}

/*
 * A process on the other CPU that has some pages of the file in a pipe, for up to a
 * millisecond each time. While it runs, this process has no translation there.
 */
static void hold_by_turns(void)
{
	enum { HELD = 256 };
	static char buffer[HELD * PAGE];
	int ends[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(1);
	must(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, sizeof(buffer)) > 0, "pipe");
	for (unsigned int turn = 0;; turn++) {
		off_t from = turn % (PAGES / HELD) * sizeof(buffer);

		must(splice(file, &from, ends[1], NULL, sizeof(buffer), 0) > 0, "splice");
		usleep(turn * 37 % 1000);
		must(read(ends[0], buffer, sizeof(buffer)) > 0, "read");
	}
}

/*
 * A page that is held cannot be moved. It is unmapped, mapped again, and moved at another
 * attempt, which may find no translation on another CPU: the flush for the first one must
 * not be forgotten. A kernel with LUF_DEBUG reports it if it is.
 */
static void a_second_attempt_remembers_the_first(void)
{
	long before = count("deferred_compaction"), kept = count("flushes_kept");
	double end = now() + 3;
	pid_t child;

	if (access("/proc/sys/vm/compact_memory", F_OK)) {
		lacks = "a kernel without CONFIG_COMPACTION";
		return;
	}
	child = fork();
	must(child >= 0, "fork");
	if (!child)
		hold_by_turns();
	/* Longer only on a host that is too slow for a single one. */
	while (now() < end || (count("flushes_kept") == kept && now() < end + 60)) {
		/* Read it again, to other places: compaction leaves the present ones. */
		must(!madvise((void *)at, PAGES * PAGE, MADV_DONTNEED), "madvise");
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		CHECK(touch(0, PAGES));
		CHECK(write_text("/proc/sys/vm/compact_memory", "1"));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	must(write_text(LUF "drain", "1"), LUF "drain");
	ksft_print_msg("%ld pages moved lazily, %ld flushes for what was kept\n",
		       count("deferred_compaction") - before, count("flushes_kept") - kept);
	CHECK(count("flushes_kept") > kept);
}

const struct test luf_pool_frames_tests[] = {
	TEST(a_poisoned_page_of_a_pool_is_handled),
	TEST(nothing_is_lost_where_pages_are_held),
	TEST(a_second_attempt_remembers_the_first),
	{}
};
