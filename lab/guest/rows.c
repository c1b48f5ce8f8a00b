// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * First touches of a heap by a program with a profile of many rows.
 *
 *     rows ROWS BYTES ROUNDS
 *
 * The first row covers the used heap, and makes no large page pay; the others cover memory behind it. Section
 * "rows-ROWS". Each page is written once a round, in order, and returned (MADV_DONTNEED).
 */
#include "section.h"

#define PROFILE "/proc/self/mm_profile"

static char profile[1 << 20];

static void add(size_t *length, unsigned long begin, unsigned long end)
{
	*length += snprintf(profile + *length, sizeof(profile) - *length, "heap 0x%lx 0x%lx 0 8 1\n", begin, end);
	if (*length >= sizeof(profile)) {
		fprintf(stderr, "rows: more than fit into a profile\n");
		exit(2);
	}
}

static void give(size_t rows, size_t used)
{
	size_t length = sprintf(profile, "mm_profile 1\nprogram rows\nrun 1000000000000\n");
	unsigned long at = used;
	int fd = open(PROFILE, O_WRONLY | O_CLOEXEC);

	add(&length, 0, at);
	for (size_t row = 1; row < rows; row++, at += PAGE)
		add(&length, at, at + PAGE);
	length += snprintf(profile + length, sizeof(profile) - length, "end %zu\n", rows);
	if (fd < 0 || length >= sizeof(profile) || write(fd, profile, length) != (ssize_t)length)
		fail(PROFILE);
	close(fd);
}

int main(int argc, char **argv)
{
	size_t rows, length, rounds;
	char name[64];

	if (argc != 4)
		usage("rows ROWS BYTES ROUNDS");
	rows = number(argv[1]);
	length = number(argv[2]);
	rounds = number(argv[3]);
	snprintf(name, sizeof(name), "rows-%zu", rows);
	/* Behind what is used nothing is ever touched. */
	give(rows, 2 * length);
	section_begin(name);
	for (size_t round = 0; round < rounds; round++) {
		char *heap = sbrk(length);

		if (heap == (char *)-1)
			fail("sbrk");
		for (size_t at = 0; at < length; at += PAGE)
			heap[at] = 1;
		if (sbrk(-(intptr_t)length) == (char *)-1)
			fail("sbrk");
	}
	section_end();
	return 0;
}
