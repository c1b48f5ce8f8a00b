// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A load with a known number of events, and the work that the machine does beside it:
 *
 *     load shootdowns SECONDS RATE    RATE TLB shootdowns a second
 *     load faults SECONDS RATE        RATE page faults a second
 *
 * One thread causes the events and computes in between; on each other CPU a thread computes. Prints the number of steps
 * that all of them computed, the number of events, and the seconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
/* Pages that are touched before they are given back at once. */
#define PAGES 64
#define MOST_CPUS 1024

static atomic_int is_over;
static atomic_ulong steps;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Page faults of all threads until now. */
static long faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		fail("getrusage");
	return usage.ru_minflt + usage.ru_majflt;
}

/* TLB interrupts of all CPUs until now. */
static unsigned long interrupts(void)
{
	static char line[16 * MOST_CPUS];
	FILE *file = fopen("/proc/interrupts", "r");
	char *at = NULL, *end;
	unsigned long sum = 0, number;

	if (!file)
		fail("/proc/interrupts");
	while (!at && fgets(line, sizeof(line), file))
		at = strstr(line, "TLB:");
	fclose(file);
	if (!at)
		return 0;
	/* A number for each CPU, and a description. */
	for (at += 4; number = strtoul(at, &end, 10), end != at; at = end)
		sum += number;
	return sum;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

/* A step of about 100 instructions without memory. */
static void compute(unsigned long *state)
{
	for (int i = 0; i < 25; i++)
		*state = *state * 6364136223846793005UL + 1442695040888963407UL;
	atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
}

static void *work(void *cpu)
{
	unsigned long state = 1;

	pin((int)(long)cpu);
	while (!atomic_load_explicit(&is_over, memory_order_relaxed))
		compute(&state);
	return (void *)state;
}

/*
 * Each change of the right to write to a page that is used flushes the TLBs of the CPUs on which the process runs.
 * Returns the number of flushes.
 */
static unsigned int shoot(char *memory)
{
	*memory = 1;
	if (mprotect(memory, PAGE, PROT_READ) || mprotect(memory, PAGE, PROT_READ | PROT_WRITE))
		fail("mprotect");
	return 2;
}

static void fault(char *memory, unsigned long number)
{
	memory[number % PAGES * PAGE] = 1;
	if (number % PAGES == PAGES - 1 && madvise(memory, PAGES * PAGE, MADV_DONTNEED))
		fail("madvise");
}

int main(int argc, char **argv)
{
	unsigned long events = 0, state = 1, sent;
	double seconds, rate, begun, passed = 0;
	pthread_t threads[MOST_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int is_shooting = argc == 4 && !strcmp(argv[1], "shootdowns");
	char *memory;
	long before;

	if (argc != 4 || (!is_shooting && strcmp(argv[1], "faults")) || cpus < 2 || cpus > MOST_CPUS) {
		fprintf(stderr, "load shootdowns|faults SECONDS RATE, on 2 to %d CPUs\n", MOST_CPUS);
		return 2;
	}
	seconds = atof(argv[2]);
	rate = atof(argv[3]);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE))
		fail("mmap");
	for (long cpu = 1; cpu < cpus; cpu++)
		if (pthread_create(&threads[cpu], NULL, work, (void *)cpu))
			fail("pthread_create");
	pin(0);
	before = faults();
	sent = interrupts();
	begun = now();
	while ((passed = now() - begun) < seconds) {
		if (events >= passed * rate)
			compute(&state);
		else if (is_shooting)
			events += shoot(memory);
		else
			fault(memory, events++);
	}
	atomic_store(&is_over, 1);
	for (int cpu = 1; cpu < cpus; cpu++)
		pthread_join(threads[cpu], NULL);
	printf("%lu %lu %.3f %ld %lu\n", atomic_load(&steps), events, passed, faults() - before, interrupts() - sent);
	return 0;
}
