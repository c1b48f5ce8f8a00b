// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Maps 32 MiB of shared memory, fills it, reads it in a random order, and prints how much of it is
 * huge in kB, and a sum: shared anonymous|memfd|PATH [ROUNDS [MILLISECONDS]]. With a path, a file of
 * that name is used, and created if it is missing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LENGTH (32ul << 20)
#define PAGE 4096ul

static unsigned long huge(const void *memory)
{
	unsigned long from, to, kb, sum = 0;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[4096];
	int ours = 0;

	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			ours = from < (uintptr_t)memory + LENGTH && (uintptr_t)memory < to;
		if (ours && sscanf(line, "ShmemPmdMapped: %lu", &kb) == 1)
			sum += kb;
	}
	fclose(smaps);
	return sum;
}

static int descriptor(const char *kind)
{
	int fd;

	if (!strcmp(kind, "anonymous"))
		return -1;
	if (!strcmp(kind, "memfd"))
		fd = memfd_create("pool", MFD_CLOEXEC);
	else
		fd = open(kind, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, LENGTH))
		exit(2);
	return fd;
}

int main(int argc, char **argv)
{
	int fd = descriptor(argv[1]);
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t sum = 0, at = 1;
	uint64_t *memory;

	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (memory == MAP_FAILED)
		return 3;
	for (unsigned long byte = 0; byte < LENGTH; byte += PAGE)
		memory[byte / 8] = byte;
	for (unsigned long i = 0; i < rounds; i++) {
		at = at * 6364136223846793005ull + 1442695040888963407ull;
		sum += memory[(at >> 33) % (LENGTH / PAGE) * (PAGE / 8)] + (at >> 63);
	}
	if (argc > 3)
		usleep(1000 * atoi(argv[3]));
	printf("%lu %lu\n", huge(memory), (unsigned long)sum);
	return 0;
}
