/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Grows a mapping that cannot grow in place. Prints whether mremap moved or refused it, whether all
 * its content is present and writable, and by how many KiB the mapped size exceeds the requested
 * one. An argument gives the target of the mapping: "fixed" elsewhere, "overlap" half over itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define LENGTH (16 * MIB)

static long mapped_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (fgets(line, sizeof line, status))
		if (sscanf(line, "VmSize: %ld", &kib) == 1)
			break;
	fclose(status);
	return kib;
}

static int whole(volatile uint64_t *p)
{
	size_t i;

	for (i = 0; i < LENGTH / 8; i += 64) {
		if (p[i] != i * 7 + 1)
			return 0;
		p[i] = i * 7 + 1;
	}
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int flags = MREMAP_MAYMOVE;
	size_t length = 2 * LENGTH, i;
	void *to = NULL, *q;
	long before;

	mmap(p + LENGTH / 8, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	for (i = 0; i < LENGTH / 8; i += 64)
		p[i] = i * 7 + 1;
	if (argc > 1) {
		flags |= MREMAP_FIXED;
		to = strcmp(argv[1], "fixed") ? (char *)p + LENGTH / 2 : (char *)0x610000000000;
	}
	before = mapped_kib();
	errno = 0;
	q = mremap(p, LENGTH, length, flags, to);
	if (q == MAP_FAILED) {
		printf("refused %d whole %d ", errno != 0, whole(p));
		length = LENGTH;
	} else {
		printf("moved errno %d whole %d ", errno, whole(q));
		((volatile char *)q)[length - 1] = 1;
	}
	printf("more %ld\n", mapped_kib() - before - (long)((length - LENGTH) / 1024));
	return 0;
}
