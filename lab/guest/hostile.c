// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A neighbour that touches a page of each 2 MiB of its heap, returns it, sleeps, and repeats that without end.
 *
 *     hostile [NANOSECONDS]
 *
 * With NANOSECONDS its own profile claims this saving for each 2 MiB of its heap, as any user may write.
 */
#include "util.h"

#include <fcntl.h>

#define PROFILE "/proc/self/mm_profile"

enum { LENGTH = 8 << 20, PAUSE_US = 2000 };

static void claim(const char *nanoseconds)
{
	char text[256];
	int length = snprintf(text, sizeof(text),
			      "mm_profile 1\nprogram hostile\nrun 1000000000000\nheap 0 0x4000000 %s 512 100\nend 1\n", nanoseconds);
	int fd = open(PROFILE, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, length) != length)
		fail(PROFILE);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		usage("hostile [NANOSECONDS]");
	if (argc == 2)
		claim(argv[1]);
	for (;;) {
		char *heap = sbrk(LENGTH);

		if (heap == (char *)-1)
			fail("sbrk");
		for (size_t at = 0; at < LENGTH; at += REGION)
			heap[at] = 1;
		if (sbrk(-(intptr_t)LENGTH) == (char *)-1)
			fail("sbrk");
		usleep(PAUSE_US);
	}
}
