/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints or exits differently under huge pages, or in every run. odd WHAT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Whether the first block of 8 MiB became huge. */
static int is_huge(void)
{
	char line[256];
	size_t n = 8 << 20;
	char *block = malloc(n);
	long kib = 0, sum = 0;
	FILE *smaps;

	for (size_t i = 0; i < n; i += 4096)
		block[i] = 1;
	smaps = fopen("/proc/self/smaps_rollup", "r");
	while (smaps && fgets(line, sizeof(line), smaps))
		if (sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
			sum += kib;
	return sum > 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!strcmp(what, "print-huge"))
		puts(is_huge() ? "huge" : "small");
	else if (!strcmp(what, "exit-huge"))
		return is_huge() ? 3 : 0;
	else if (!strcmp(what, "vary"))
		printf("%ld %ld\n", (long)getpid(), now.tv_nsec);
	else if (!strcmp(what, "crash"))
		abort();
	else if (!strcmp(what, "copy")) {
		char buffer[4096];
		size_t n;

		while ((n = fread(buffer, 1, sizeof(buffer), stdin)) > 0)
			fwrite(buffer, 1, n, stdout);
	} else if (!strcmp(what, "sleep")) {
		/* Prints a line, then sleeps, also in a child. */
		FILE *mark = fopen(argv[2], "w");

		fprintf(mark, "%ld\n", (long)getpid());
		fclose(mark);
		sleep(600);
	}
	return 0;
}
