/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One large block of the kind that argv[1] names. Prints whether any of its addresses is advised
 * huge during its lifetime and after it: in what the allocator keeps of it, or in another mapping
 * at its address.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH ((size_t)24 << 20)

/* Whether a mapping with an address of the block has the flag hg. */
static int advised(uintptr_t block)
{
	unsigned long start, end;
	int inside = 0, found = 0;
	char line[4096];
	FILE *smaps = fopen("/proc/self/smaps", "r");

	while (fgets(line, sizeof line, smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start < block + LENGTH && block < end;
		if (inside && !strncmp(line, "VmFlags:", 8) && strstr(line, " hg"))
			found = 1;
	}
	fclose(smaps);
	return found;
}

/* Another mapping, made by a call that the library does not intercept. */
static void map_instead(uintptr_t block)
{
	uintptr_t start = (block + 4095) & ~(uintptr_t)4095;

	syscall(SYS_mmap, start, LENGTH - 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	uintptr_t block;
	void *pin = NULL, *p, *unbuffered = malloc(1);

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strncmp(kind, "heap", 4)) {
		mallopt(M_MMAP_THRESHOLD, 1 << 30);
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
	}
	if (!strcmp(kind, "mmap"))
		p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		p = malloc(LENGTH);
	pin = malloc(100000);
	block = (uintptr_t)p;
	printf("%d ", advised(block));
	if (!strcmp(kind, "mmap"))
		munmap(p, LENGTH);
	else if (!strcmp(kind, "heap-moved"))
		p = realloc(p, 100 << 20), ((char *)p)[0] = 1;
	else
		free(p);
	if (strncmp(kind, "heap", 4))
		map_instead(block);
	printf("%d\n", advised(block));
	free(pin);
	free(unbuffered);
	return 0;
}
