// SPDX-License-Identifier: GPL-2.0-only
/* Tests of several processes that write one open morsel. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

enum { WRITERS = 4 };

/* What the processes of a test share besides the morsel. */
static struct {
	pthread_barrier_t begin;
	int stage;
	uint64_t writes;
} *common;

static void share(unsigned int processes)
{
	pthread_barrierattr_t attr;

	common = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&common->begin, &attr, processes);
}

static void unshare_all(void)
{
	munmap(common, PAGE);
}

static void wait_for_stage(int stage)
{
	for (int i = 0; i < 20000 && get(common->stage) < stage; i++)
		usleep(1000);
	CHECK(get(common->stage) >= stage);
}

static void begin_stage(int stage)
{
	set(common->stage, stage);
}

static void increment_all(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		__atomic_add_fetch((uint64_t *)(memory + at), 1, __ATOMIC_SEQ_CST);
}

/* First touches by several address spaces get the same pages. */
static void several_processes_fill_it(void)
{
	size_t size = 8 * MIB + 7 * PAGE;

	for (int round = 0; round < 5; round++) {
		long pages = count("pages");
		int fd = make(size);
		pid_t pids[WRITERS];
		char *memory;

		share(WRITERS);
		for (int i = 0; i < WRITERS; i++) {
			pids[i] = fork();
			if (pids[i])
				continue;
			memory = map(fd, size, PROT_READ | PROT_WRITE);
			pthread_barrier_wait(&common->begin);
			if (memory == MAP_FAILED)
				_exit(1);
			increment_all(memory, size);
			_exit(0);
		}
		for (int i = 0; i < WRITERS; i++)
			CHECK(ends_well(pids[i]));
		memory = map(fd, size, PROT_READ | PROT_WRITE);
		CHECK(memory != MAP_FAILED);
		for (size_t at = 0; at < size; at += PAGE)
			CHECK(load(memory + at) == WRITERS);
		CHECK(count("pages") - pages == (long)(size / PAGE));
		munmap(memory, size);
		close(fd);
		unshare_all();
	}
}

/* The child's mapping is attached by its own first fault, and not copied. */
static void a_child_writes_too(void)
{
	size_t size = 6 * MIB;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	long faults;
	pid_t pid;

	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	CHECK(smaps_of(memory, "Morsel:") == 6 << 10);
	faults = count("stats/faults");
	pid = fork();
	if (!pid) {
		bool same = has_words(memory, 0, size, PAGE) &&
			    smaps_of(memory, "Morsel:") == 6 << 10 && !smaps_of(memory, "Rss:");

		for (size_t at = 0; at < size; at += PAGE)
			store(memory + at + 8, word_of(at));
		_exit(same ? 0 : 1);
	}
	CHECK(ends_well(pid));
	CHECK(count("stats/faults") == faults + 1);
	for (size_t at = 0; at < size; at += PAGE)
		CHECK(load(memory + at + 8) == word_of(at));
	store(memory, 0);
	CHECK(count("stats/faults") == faults + 1);
	store(memory, word_of(0));
	leave(fd, memory, size);
}

/* A child that does not want the mapping. */
static void a_child_may_go_without(void)
{
	int fd = make(4 * MIB);
	char *memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	store(memory, 1);
	CHECK(!madvise(memory, 4 * MIB, MADV_DONTFORK));
	CHECK(dies_by(child_status(touch_for_reading, memory), SIGSEGV));
	CHECK(!madvise(memory, 4 * MIB, MADV_DOFORK));
	CHECK(!child_status(touch_for_writing, memory));
	CHECK(load(memory) == 1);
	munmap(memory, 4 * MIB);
	close(fd);
}

/* A writable mapping that was inherited, or made by the process itself. */
static void no_seal_while_any_process_writes(void)
{
	size_t size = 4 * MIB;

	for (int is_inherited = 0; is_inherited < 2; is_inherited++) {
		int fd = make_filled(size, PAGE);
		char *memory = map(fd, size, PROT_READ | PROT_WRITE);
		pid_t pid;

		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
		share(2);
		pid = fork();
		if (!pid) {
			if (!is_inherited)
				memory = map(fd, size, PROT_READ | PROT_WRITE);
			store(memory + PAGE, word_of(PAGE));
			begin_stage(1);
			wait_for_stage(2);
			store(memory + 2 * PAGE, word_of(2 * PAGE));
			_exit(failed);
		}
		wait_for_stage(1);
		munmap(memory, size);
		CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
		CHECK(fcntl(fd, F_GET_SEALS) == 0);
		begin_stage(2);
		CHECK(ends_well(pid));
		CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
		CHECK(map(fd, size, PROT_READ | PROT_WRITE) == MAP_FAILED && errno == EPERM);
		CHECK(others_see(fd, size, PAGE));
		close(fd);
		unshare_all();
	}
}

static void write_until_killed(char *memory, size_t size)
{
	for (;;) {
		for (size_t at = 0; at < size; at += PAGE) {
			store(memory + at, word_of(at));
			__atomic_add_fetch(&common->writes, 1, __ATOMIC_SEQ_CST);
		}
		madvise(memory, size, MADV_DONTNEED);
	}
}

/* A writer that is killed amid its first touches, or later, takes nothing away. */
static void a_killed_writer_leaves_it(void)
{
	size_t size = 4 * MIB + 3 * PAGE;

	for (int round = 0; round < 20; round++) {
		int fd = make(size), status;
		char *memory = map(fd, size, PROT_READ | PROT_WRITE);
		pid_t pid;

		CHECK(memory != MAP_FAILED);
		share(2);
		pid = fork();
		if (!pid) {
			if (round % 2)
				memory = map(fd, size, PROT_READ | PROT_WRITE);
			write_until_killed(memory, size);
		}
		for (int i = 0; i < 20000 && get(common->writes) < 100U * round + 1; i++)
			usleep(1000);
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid && dies_by(status, SIGKILL));
		for (size_t at = 0; at < size; at += PAGE) {
			uint64_t word = load(memory + at);

			CHECK(word == word_of(at) || !word);
		}
		write_words(memory, size, PAGE);
		munmap(memory, size);
		CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		CHECK(others_see(fd, size, PAGE));
		close(fd);
		unshare_all();
	}
}

/* In the writer: what one process removes is gone, and what it writes then is new. */
static int see_a_removal(int fd, char *memory, size_t size)
{
	struct sigaction action = { .sa_handler = jump };
	uint64_t word;

	(void)fd;
	sigaction(SIGBUS, &action, NULL);
	write_words(memory, size, PAGE);
	begin_stage(1);
	wait_for_stage(2);
	for (size_t at = 0; at < size; at += PAGE)
		CHECK(load(memory + at) == (at < size / 2 ? 0 : word_of(at)));
	for (size_t at = 0; at < size; at += PAGE)
		store(memory + at, word_of(at) + 1);
	begin_stage(3);
	wait_for_stage(4);
	CHECK(try_to_load(memory, &word) && word == word_of(0) + 1);
	CHECK(!try_to_load(memory + size / 2, &word));
	return failed;
}

static void a_removal_is_felt_by_every_writer(void)
{
	size_t size = 8 * MIB;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	pid_t pid;

	CHECK(memory != MAP_FAILED);
	share(2);
	pid = fork();
	if (!pid)
		_exit(see_a_removal(fd, memory, size));
	wait_for_stage(1);
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size / 2));
	CHECK(!load(memory) && load(memory + size / 2) == word_of(size / 2));
	begin_stage(2);
	wait_for_stage(3);
	CHECK(load(memory) == word_of(0) + 1 && load(memory + size / 2) == word_of(size / 2) + 1);
	CHECK(!ftruncate(fd, size / 2));
	begin_stage(4);
	CHECK(ends_well(pid));
	munmap(memory, size);
	close(fd);
	unshare_all();
}

/* In the child: operations on its mapping, which must not reach that of its parent. */
static int change_all(char *memory, size_t size)
{
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *moved;

	CHECK(has_words(memory, 0, size, PAGE));
	moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
	CHECK(moved == room + PAGE && has_words(moved, 0, size, PAGE));
	moved = mremap(moved, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory);
	CHECK(moved == memory && has_words(moved, 0, size, PAGE));
	store(memory + size - 8, 1);
	CHECK(!munmap(memory + MIB, MIB));
	CHECK(!mprotect(memory + 4 * MIB, MIB, PROT_READ));
	CHECK(has_words(memory + 2 * MIB, 2 * MIB, size - 2 * MIB, PAGE));
	store(memory + size - 16, 2);
	return failed;
}

static void one_writer_changes_its_mapping(void)
{
	size_t size = 8 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 4; i++) {
		long converted = count("stats/converted");
		pid_t pid;

		CHECK(has_words(memory, 0, size, PAGE));
		pid = fork();
		if (!pid)
			_exit(change_all(memory, size));
		CHECK(ends_well(pid) && count("stats/converted") > converted);
		CHECK(has_words(memory, 0, size, PAGE));
		CHECK(load(memory + size - 8) == 1 && load(memory + size - 16) == 2);
		CHECK(smaps_of(memory, "Morsel:") == (long)(size >> 10));
	}
	leave(fd, memory, size);
}

/* Rights may change, also while another process writes. */
static void a_reader_becomes_a_writer(void)
{
	size_t size = 4 * MIB;
	int fd = make_filled(size, PAGE);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	pid_t pid;

	CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
	pid = fork();
	if (!pid) {
		char *mine = map(fd, size, PROT_READ);

		if (mine == MAP_FAILED || !has_words(mine, 0, size, PAGE) ||
		    mprotect(mine, size, PROT_READ | PROT_WRITE))
			_exit(1);
		store(mine + 8, 5);
		_exit(load(memory + 8) == 5 ? 0 : 2);
	}
	CHECK(ends_well(pid) && load(memory + 8) == 5);
	leave(fd, memory, size);
}

const struct test morsel_shared_tests[] = {
	TEST(several_processes_fill_it),
	TEST(a_child_writes_too),
	TEST(a_child_may_go_without),
	TEST(no_seal_while_any_process_writes),
	TEST(a_killed_writer_leaves_it),
	TEST(a_removal_is_felt_by_every_writer),
	TEST(one_writer_changes_its_mapping),
	TEST(a_reader_becomes_a_writer),
	{}
};
