// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Copies a file to morselfs, and seals the copy. It allocates the memory first, in blocks of 2 MiB.
 *
 *     put FILE MORSEL
 */
#include "util.h"

#include <fcntl.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	static char buffer[1 << 20];
	struct stat stat;
	ssize_t got;
	int from, to;

	if (argc != 3)
		usage("put FILE MORSEL");
	from = open(argv[1], O_RDONLY | O_CLOEXEC);
	to = open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	if (from < 0 || to < 0 || fstat(from, &stat))
		fail(argv[from < 0 ? 1 : 2]);
	if ((errno = posix_fallocate(to, 0, stat.st_size)))
		fail(argv[2]);
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, got) != got)
			fail(argv[2]);
	if (got < 0)
		fail(argv[1]);
	if (fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		fail("seal");
	return 0;
}
