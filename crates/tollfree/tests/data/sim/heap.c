// SPDX-License-Identifier: MIT OR Apache-2.0
/* Fills MIB of malloc's heap with small blocks and keeps them all: heap MIB */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	size_t blocks = argc > 1 ? (size_t)atoi(argv[1]) << 10 : 0;

	for (size_t i = 0; i < blocks; i++) {
		char *block = malloc(1024 - 16);

		if (!block)
			return 1;
		memset(block, 1, 1024 - 16);
	}
	return 0;
}
