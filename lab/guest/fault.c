// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * First touches: threads repeatedly map memory, write to each of its pages once, and unmap it.
 *
 *     fault THREADS BYTES ROUNDS [in-order|random]
 *
 * Section "main". The first touch of each page is a write.
 */
#include "section.h"

static size_t length, rounds;
static int is_random;

static void *touch(void *argument)
{
	uint64_t state = 1 + (uintptr_t)argument;
	size_t pages = length / PAGE;

	for (size_t round = 0; round < rounds; round++) {
		char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		/* An odd step visits each of a power of two of pages once. */
		size_t step = is_random ? (next_random(&state) % pages) | 1 : 1;

		if (memory == MAP_FAILED)
			fail("mmap");
		for (size_t i = 0, page = 0; i < pages; i++, page = (page + step) % pages)
			memory[page * PAGE] = 1;
		if (munmap(memory, length))
			fail("munmap");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t threads;

	if (argc != 4 && argc != 5)
		usage("fault THREADS BYTES ROUNDS [in-order|random]");
	threads = number(argv[1]);
	length = number(argv[2]);
	rounds = number(argv[3]);
	is_random = argc == 5 && !strcmp(argv[4], "random");
	if (threads > MAX_THREADS || length & (length - 1)) {
		fprintf(stderr, "fault: at most 64 threads, and a power of two of bytes\n");
		return 2;
	}
	section_begin("main");
	in_threads(threads, touch);
	section_note("touched_pages", (double)threads * rounds * (length / PAGE));
	section_end();
	return 0;
}
