// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * touch FILE populate|plain first|each|sum: maps a file read-only and reads its first byte, one byte of each
 * page, or all of it; prints the nanoseconds and page faults of that and of unmapping it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

int main(int argc, char **argv)
{
	volatile uint64_t sink = 0;
	uint64_t sum = 0;
	struct stat is;

	if (argc != 4)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &is) < 0) {
		perror(argv[1]);
		return 1;
	}
	int flags = MAP_SHARED | (strcmp(argv[2], "populate") == 0 ? MAP_POPULATE : 0);
	long before = faults();
	long long begun = now();
	const volatile char *start = mmap(NULL, is.st_size, PROT_READ, flags, fd, 0);
	if (start == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	if (strcmp(argv[3], "first") == 0) {
		sum = start[0];
	} else if (strcmp(argv[3], "each") == 0) {
		for (off_t at = 0; at < is.st_size; at += 4096)
			sum += start[at];
	} else {
		const uint64_t *words = (const uint64_t *)start;
		for (off_t at = 0; at < is.st_size / 8; at++)
			sum += words[at];
	}
	sink = sum;
	(void)sink;
	long long read = now();
	long faulted = faults() - before;
	munmap((void *)start, is.st_size);
	printf("%lld %ld %lld\n", read - begun, faulted, now() - read);
	return 0;
}
