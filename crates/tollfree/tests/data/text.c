// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program with 6 MiB of text: calls a function on each of its pages, and prints how much of the
 * text is huge in anonymous memory and in pages of the file, in kB, and a sum. With an argument, it
 * keeps calling for this many milliseconds. With RELOCATED, the linker has to change the text.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGES 1536ul

asm(".text\n"
    ".p2align 21\n"
    "functions:\n"
    ".set page, 0\n"
    ".rept 1536\n"
    ".org functions + page * 4096, 0x90\n"
    "	lea page(%rdi), %rax\n"
    "	ret\n"
    ".set page, page + 1\n"
    ".endr\n"
#ifdef RELOCATED
    ".quad functions\n"
#endif
    ".p2align 21\n");

extern char functions[];

static uint64_t call_all(uint64_t sum)
{
	for (unsigned long page = 0; page < PAGES; page++)
		sum = ((uint64_t(*)(uint64_t))(functions + page * 4096))(sum);
	return sum;
}

static unsigned long huge(const char *field)
{
	unsigned long from, to, kb, sum = 0, at = (uintptr_t)functions;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	size_t length = strlen(field);
	char line[4096];
	int ours = 0;

	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			ours = from < at + PAGES * 4096 && at < to;
		if (ours && !strncmp(line, field, length) &&
		    sscanf(line + length, ": %lu", &kb) == 1)
			sum += kb;
	}
	fclose(smaps);
	return sum;
}

static void *in_thread(void *sum)
{
	*(uint64_t *)sum = call_all(0);
	return NULL;
}

int main(int argc, char **argv)
{
	double until = argc > 1 ? atof(argv[1]) / 1000 * CLOCKS_PER_SEC : 0;
	uint64_t sum = call_all(0), other = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_thread, &other) || pthread_join(thread, NULL))
		return 2;
	while (clock() < until)
		sum = call_all(0);
	printf("%lu %lu %lu\n", huge("AnonHugePages"), huge("FilePmdMapped"),
	       (unsigned long)(sum + other));
	return 0;
}
