// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Jumps through PAGES pages of program text in a fixed order, HOPS times, and prints the CPU time per
 * jump in ns and the huge text in kB: hops HOPS. Each page has a few instructions, at a place that
 * differs from those of its neighbours, so that they do not share sets of the instruction cache. The
 * order is that of a linear congruential generator: each page once per turn.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef PAGES
#define PAGES 4096
#endif
#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

asm(".text\n"
    ".p2align 21\n"
    "hops:\n"
    ".set page, 0\n"
    ".rept " TEXT(PAGES) "\n"
    ".set next, (page * 1021 + 317) % " TEXT(PAGES) "\n"
    ".org hops + page * 4096 + (page * 192) % 3840, 0x90\n"
    "	add $1, %rdi\n"
    "	cmp %rsi, %rdi\n"
    "	jae 1f\n"
    "	jmp hops + next * 4096 + (next * 192) % 3840\n"
    "1:	mov %rdi, %rax\n"
    "	ret\n"
    ".set page, page + 1\n"
    ".endr\n"
    ".p2align 21\n");

uint64_t hops(uint64_t from, uint64_t to);

static unsigned long huge(void)
{
	unsigned long from, to, kb, sum = 0, at = (uintptr_t)hops;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[4096];
	int ours = 0;

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			ours = from < at + PAGES * 4096ul && at < to;
		if (ours && (sscanf(line, "AnonHugePages: %lu", &kb) == 1 ||
			     sscanf(line, "FilePmdMapped: %lu", &kb) == 1))
			sum += kb;
	}
	return sum;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	double begun;

	hops(0, 4 * PAGES);
	begun = now();
	hops(0, count);
	printf("%.3f %lu\n", (now() - begun) / count, huge());
	return 0;
}
