// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fills a new file, and makes it persistent.
 *
 *     store PATH BYTES SECTION write|touch
 *
 * `write` writes it by calls of 1 MiB; `touch` extends it, and stores a byte to each page through a mapping. Then comes
 * fsync(). All of it is the section SECTION.
 */
#include "section.h"

#define USAGE "store PATH BYTES SECTION write|touch"

enum { PIECE = 1 << 20 };

static void write_all(int fd, size_t length, const char *piece)
{
	for (size_t at = 0; at < length; at += PIECE)
		if (write(fd, piece, PIECE) != PIECE)
			fail("write");
}

static void touch_all(int fd, size_t length)
{
	char *memory;

	if (ftruncate(fd, length))
		fail("ftruncate");
	memory = shared_file(fd, length, PROT_READ | PROT_WRITE);
	for (size_t at = 0; at < length; at += PAGE)
		memory[at] = 1;
	if (munmap(memory, length))
		fail("munmap");
}

int main(int argc, char **argv)
{
	static char piece[PIECE];
	size_t length;
	int fd;

	if (argc != 5 || (strcmp(argv[4], "write") && strcmp(argv[4], "touch")))
		usage(USAGE);
	length = number(argv[2]);
	memset(piece, 1, sizeof(piece));
	fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		fail(argv[1]);
	section_begin(argv[3]);
	if (*argv[4] == 'w')
		write_all(fd, length, piece);
	else
		touch_all(fd, length);
	if (fsync(fd))
		fail("fsync");
	section_note("pages", length / PAGE);
	section_end();
	return 0;
}
