/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the test programs: huge-page-backed memory of a range, by smaps. */
#ifndef HUGE_H
#define HUGE_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * KiB of huge pages in the mappings inside [start, start + length), with a tolerance of one page at
 * both ends.
 */
static inline long huge_kib(const void *start, size_t length)
{
	uintptr_t from = (uintptr_t)start - 4096, to = (uintptr_t)start + length + 4096;
	unsigned long low, high;
	long kib, sum = 0;
	int inside = 0;
	char line[512];
	FILE *smaps = fopen("/proc/self/smaps", "r");

	while (smaps && fgets(line, sizeof line, smaps)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			inside = low >= from && high <= to;
		else if (inside && sscanf(line, "AnonHugePages: %ld", &kib) == 1)
			sum += kib;
	}
	if (smaps)
		fclose(smaps);
	return sum;
}

static inline long mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	long lines = 0;
	int c;

	while (maps && (c = fgetc(maps)) != EOF)
		lines += c == '\n';
	if (maps)
		fclose(maps);
	return lines;
}
#endif
