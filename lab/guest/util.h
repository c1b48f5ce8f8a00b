// SPDX-License-Identifier: MIT OR Apache-2.0
/* Helpers of the lab's programs. */
#ifndef UTIL_H
#define UTIL_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define REGION (2ul << 20)
#define MIB (1ul << 20)

static inline _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline _Noreturn void usage(const char *text)
{
	fprintf(stderr, "usage: %s\n", text);
	exit(2);
}

/* A positive number; K, M and G stand for powers of 1024. */
static inline size_t number(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	switch (*end) {
	case 'G':
		value <<= 10;
		/* fall through */
	case 'M':
		value <<= 10;
		/* fall through */
	case 'K':
		value <<= 10;
		end++;
	}
	if (end == text || *end || !value) {
		fprintf(stderr, "%s: is no positive number\n", text);
		exit(2);
	}
	return value;
}

/* Anonymous memory at an address of the kernel's choice, not touched. */
static inline char *anonymous(size_t length)
{
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* The begin of a file, shared with it. */
static inline char *shared_file(int fd, size_t length, int protection)
{
	char *memory = mmap(NULL, length, protection, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* Anonymous memory, aligned to 2 MiB, not touched. */
static inline char *reserve(size_t length)
{
	char *raw = anonymous(length + REGION);

	return (char *)(((uintptr_t)raw + REGION - 1) & ~(REGION - 1));
}

/* Pseudo-random numbers (xorshift64*, Vigna 2016); the state is not 0. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

/* Nanoseconds of the guest's clock. */
static inline int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Lets this thread run on one CPU only. */
static inline void pin(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

/* As fork(); a failure ends the program. */
static inline pid_t new_child(void)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	return child;
}

/* Waits for `count` children; each must exit with 0. */
static inline void wait_for_children(int count)
{
	while (count--) {
		int status;

		if (wait(&status) < 0)
			fail("wait");
		if (status) {
			fprintf(stderr, "a child ended with %#x\n", status);
			exit(1);
		}
	}
}

enum { MAX_THREADS = 64 };

/* Runs threads, each with its number, until all have ended. */
static inline void in_threads(size_t count, void *(*run)(void *number))
{
	pthread_t ids[MAX_THREADS];

	for (size_t i = 0; i < count; i++)
		if ((errno = pthread_create(&ids[i], NULL, run, (void *)i)))
			fail("pthread_create");
	for (size_t i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
}

/* Children wait at one of these until all are there, and then until they are let go. */
struct gate {
	int here[2], go[2];
};

static inline struct gate gate_new(void)
{
	struct gate gate;

	if (pipe(gate.here) || pipe(gate.go))
		fail("pipe");
	return gate;
}

/* By a child: ready. */
static inline void gate_wait(const struct gate *gate)
{
	char byte = 0;

	if (write(gate->here[1], &byte, 1) != 1 || read(gate->go[0], &byte, 1) != 1)
		fail("gate");
}

/* By the parent: waits until all are ready. */
static inline void gate_gather(const struct gate *gate, int children)
{
	char byte;

	while (children--)
		if (read(gate->here[0], &byte, 1) != 1)
			fail("gate");
}

static inline void gate_open(const struct gate *gate, int children)
{
	char byte = 0;

	while (children--)
		if (write(gate->go[1], &byte, 1) != 1)
			fail("gate");
}

#endif
