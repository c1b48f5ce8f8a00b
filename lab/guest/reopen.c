// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Opens files for writing and closes them, one after the other, and notes how long the opens take, in nanoseconds of the
 * guest's clock: mean, 99th percentile, longest.
 *
 *     reopen SECTION COUNT PAUSE-MICROSECONDS FILE...
 *
 * Nothing is written. Another program has to map the files and lack memory for them: an open may have to wait for
 * pages that were unmapped shortly before.
 */
#include "section.h"

static int compare(const void *a, const void *b)
{
	long long left = *(const long long *)a, right = *(const long long *)b;

	return (left > right) - (left < right);
}

static long long open_once(const char *path)
{
	long long begin = clock_ns();
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	long long end = clock_ns();

	if (fd < 0)
		fail(path);
	close(fd);
	return end - begin;
}

int main(int count, char **words)
{
	size_t opens = count > 2 ? strtoul(words[2], NULL, 0) : 0;
	long long *took = calloc(opens + 1, sizeof(*took));
	double total = 0;

	if (count < 5 || !opens || !took)
		usage("reopen SECTION COUNT PAUSE-MICROSECONDS FILE...");
	section_begin(words[1]);
	for (size_t i = 0; i < opens; i++) {
		took[i] = open_once(words[4 + i % (count - 4)]);
		total += took[i];
		usleep(strtoul(words[3], NULL, 0));
	}
	qsort(took, opens, sizeof(*took), compare);
	section_note("open_ns_mean", total / opens);
	section_note("open_ns_p99", took[opens * 99 / 100]);
	section_note("open_ns_max", took[opens - 1]);
	section_end();
	return 0;
}
