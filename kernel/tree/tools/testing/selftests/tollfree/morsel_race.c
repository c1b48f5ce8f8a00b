// SPDX-License-Identifier: GPL-2.0-only
/* Tests of concurrent faults, removals and changes of the size. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

static struct {
	char *memory;
	size_t size;
	pthread_barrier_t begin;
	int stage;
	bool is_stale;
} touched;

/* An idle CPU would drop its translations by itself. */
static void wait_for_stage(int stage)
{
	while (__atomic_load_n(&touched.stage, __ATOMIC_ACQUIRE) != stage)
		;
}

static void begin_stage(int stage)
{
	__atomic_store_n(&touched.stage, stage, __ATOMIC_RELEASE);
}

static void *read_before_and_after(void *argument)
{
	(void)argument;
	stay_on(1);
	for (size_t at = 0; at < touched.size; at += PAGE)
		load(touched.memory + at);
	begin_stage(1);
	/* Changes by the other process must be visible here afterwards. */
	wait_for_stage(2);
	for (size_t at = 0; at < touched.size; at += PAGE)
		touched.is_stale |= load(touched.memory + at) != 5;
	return NULL;
}

/* Other memory is mapped at the address: no CPU still reads the morsel there. */
static void is_forgotten(int fd, size_t size, size_t part)
{
	char *memory = map(fd, size, PROT_READ), *other;
	pthread_t thread;

	CHECK(memory != MAP_FAILED);
	touched.is_stale = false;
	touched.size = 64 * PAGE;
	touched.memory = memory + part;
	begin_stage(0);
	pthread_create(&thread, NULL, read_before_and_after, NULL);
	wait_for_stage(1);
	munmap(memory, size);
	other = mmap(touched.memory, touched.size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(other == touched.memory);
	for (size_t at = 0; at < touched.size; at += PAGE)
		store(other + at, 5);
	begin_stage(2);
	pthread_join(thread, NULL);
	CHECK(!touched.is_stale);
	munmap(other, touched.size);
}

/* A CPU may drop a large page as a whole: single pages show more. */
static void what_is_unmapped_is_forgotten(void)
{
	size_t size = GIB + 4 * MIB;
	int fd;

	stay_on(0);
	mkdir("/tmp/pages", 0700);
	CHECK(!mount("none", "/tmp/pages", "morselfs", 0, "huge=never"));
	for (int small = 0; small < 2; small++) {
		mounted = small ? "/tmp/pages" : MOUNT;
		fd = make(size);
		CHECK(!fallocate(fd, 0, 0, MIB) && !fallocate(fd, 0, GIB, MIB));
		CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
		is_forgotten(fd, size, MIB / 2);
		is_forgotten(fd, size, GIB + MIB / 2);
		close(fd);
	}
	mounted = MOUNT;
	CHECK(!umount("/tmp/pages"));
	rmdir("/tmp/pages");
}

static bool is_done;

static void *give_up_again_and_again(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST))
		madvise(touched.memory, touched.size, MADV_DONTNEED);
	return NULL;
}

/*
 * One thread reads at random addresses what others unmap, so that it
 * faults at any time, without errors.
 */
static void giving_up_races_with_reading(void)
{
	enum { THREADS = 2, STEP = 64 * MIB };
	size_t size = GIB + 2 * MIB;
	int fd = make_sealed(size, STEP);
	pthread_t threads[THREADS];

	touched.memory = map(fd, size, PROT_READ);
	touched.size = size;
	CHECK(touched.memory != MAP_FAILED);
	is_done = false;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, give_up_again_and_again, NULL);
	for (int i = 0; i < 100 && !failed; i++)
		for (size_t at = 0; at < 2 * MIB && !failed; at += PAGE)
			for (size_t block = 0; block < size; block += STEP)
				CHECK(load(touched.memory + block + at) ==
				      (at ? 0 : word_of(block)));
	__atomic_store_n(&is_done, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	munmap(touched.memory, size);
	CHECK(others_see(fd, size, STEP));
	close(fd);
}

static void *fault_again_and_again(void *argument)
{
	uint64_t word;

	(void)argument;
	while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST)) {
		madvise(touched.memory, PAGE, MADV_DONTNEED);
		try_to_load(touched.memory, &word);
	}
	return NULL;
}

/* A fault that has found a page does not map it after its removal. */
static void a_page_that_went_is_mapped_by_nobody(void)
{
	struct sigaction action = { .sa_handler = jump }, before;
	int fd = make(PAGE);
	pthread_t thread;

	touched.memory = map(fd, PAGE, PROT_READ);
	CHECK(touched.memory != MAP_FAILED);
	sigaction(SIGBUS, &action, &before);
	is_done = false;
	pthread_create(&thread, NULL, fault_again_and_again, NULL);
	for (int i = 0; i < 100 && !failed; i++) {
		CHECK(pwrite(fd, "x", 1, 0) == 1);
		for (int spins = 0; spins < i * 100; spins++)
			asm volatile("");
		CHECK(!ftruncate(fd, 0) && !ftruncate(fd, PAGE));
		CHECK(!load(touched.memory));
	}
	__atomic_store_n(&is_done, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	sigaction(SIGBUS, &before, NULL);
	munmap(touched.memory, PAGE);
	close(fd);
}

static void *touch_all(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&touched.begin);
	for (size_t at = 0; at < touched.size; at += PAGE)
		__atomic_add_fetch((uint64_t *)(touched.memory + at), 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Concurrent faults for one page get the same page. */
static void many_threads_fill_it(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];

	for (int round = 0; round < 5; round++) {
		long pages = count("pages");
		int fd;

		touched.size = 8 * MIB + 7 * PAGE;
		fd = make(touched.size);
		touched.memory = map(fd, touched.size, PROT_READ | PROT_WRITE);
		CHECK(touched.memory != MAP_FAILED);
		pthread_barrier_init(&touched.begin, NULL, THREADS);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, touch_all, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (size_t at = 0; at < touched.size; at += PAGE)
			CHECK(*(uint64_t *)(touched.memory + at) == THREADS);
		CHECK(count("pages") - pages == (long)(touched.size / PAGE));
		munmap(touched.memory, touched.size);
		close(fd);
	}
}

static void *shrink_and_grow(void *argument)
{
	int fd = *(int *)argument;

	for (int i = 0; i < 100; i++) {
		if (ftruncate(fd, (i % 4) * MIB + 5) || ftruncate(fd, 6 * MIB))
			return "ftruncate";
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 4 * MIB))
			return "fallocate";
	}
	return NULL;
}

/* Pages that are removed while other threads fault read as zeros later. */
static void faults_and_sizes_race(void)
{
	int fd = make(6 * MIB), status = 0;
	void *problem;
	pthread_t thread;
	pid_t pid;

	pid = fork();
	if (!pid) {
		char *memory = map(fd, 6 * MIB, PROT_READ | PROT_WRITE);

		/* Sometimes beyond the end for a moment. */
		signal(SIGBUS, SIG_DFL);
		for (;;)
			for (size_t at = 0; at < MIB; at += PAGE)
				memory[at % 5 ? at : 0] = 1;
	}
	pthread_create(&thread, NULL, shrink_and_grow, &fd);
	pthread_join(thread, &problem);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!problem);
	CHECK(dies_by(status, SIGKILL) || dies_by(status, SIGBUS));
	close(fd);
}

const struct test morsel_race_tests[] = {
	TEST(what_is_unmapped_is_forgotten),
	TEST(giving_up_races_with_reading),
	TEST(a_page_that_went_is_mapped_by_nobody),
	TEST(many_threads_fill_it),
	TEST(faults_and_sizes_race),
	{}
};
