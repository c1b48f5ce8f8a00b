/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One mapping or block: argv[1] is its kind, argv[2] its KiB, argv[3] the number of times it is
 * created; it is kept if argv[4] is given. Prints the number of mappings at the end.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "huge.h"

int main(int argc, char **argv)
{
	size_t length = (size_t)atol(argv[2]) << 10;
	long times = atol(argv[3]), i;
	char *p;

	for (i = 0; i < times; i++) {
		if (argv[1][0] == 'm') {
			p = mmap(NULL, length, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (p == MAP_FAILED)
				return 1;
			p[0] = 1;
			if (argc < 5)
				munmap(p, length);
		} else {
			p = malloc(length);
			p[0] = 1;
			if (argc < 5)
				free(p);
		}
	}
	printf("%ld\n", mappings());
	return 0;
}
