// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fills a large heap while a file is read: the heap competes with the page cache for memory.
 *
 *     fill BYTES FILE [BEFORE]
 *
 * For each 16 pages of the heap, which are written once and in order, twice as much of the file is read; after its end,
 * reading restarts at its beginning. BEFORE pieces of 128 KiB are read before the first page is written.
 */
#include "util.h"

#include <fcntl.h>

enum { PIECE = 128 << 10, PAGES = 16 };

static void read_piece(int fd)
{
	static char data[PIECE];
	ssize_t got = read(fd, data, sizeof(data));

	if (got < 0 || (got == 0 && lseek(fd, 0, SEEK_SET)))
		fail("read");
}

int main(int argc, char **argv)
{
	size_t length;
	char *heap;
	int fd;

	if (argc != 3 && argc != 4)
		usage("fill BYTES FILE [BEFORE]");
	length = number(argv[1]);
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(argv[2]);
	if (argc == 4)
		for (int i = atoi(argv[3]); i > 0; i--)
			read_piece(fd);
	heap = anonymous(length);
	for (size_t at = 0; at < length; at += PAGE) {
		if (at % (PAGES * PAGE) == 0)
			read_piece(fd);
		heap[at] = 1;
	}
	return 0;
}
