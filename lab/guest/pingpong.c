// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes on one CPU take turns; each reads its pages in its turn. With PCIDs the address spaces keep their
 * translations and nothing misses; without them every access to a page misses in each turn.
 *
 *     pingpong SECTION PAGES TURNS
 */
#include "section.h"

static char *start;
static size_t count;

static void sweep(void)
{
	for (size_t page = 0; page < count; page++)
		(void)((volatile char *)start)[page * PAGE];
}

/* A turn of the other process, then one of our own. */
static void take_turns(int to, int from, size_t turns)
{
	char byte = 0;

	while (turns--) {
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			fail("the other process");
		sweep();
	}
}

/* A turn for each byte that comes. */
static _Noreturn void answer(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1) {
		sweep();
		if (write(to, &byte, 1) != 1)
			fail("write");
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	size_t turns;
	pid_t child;

	if (argc != 4)
		usage("pingpong SECTION PAGES TURNS");
	count = number(argv[2]);
	turns = number(argv[3]);
	pin(0);
	if (pipe(there) || pipe(back))
		fail("pingpong");
	start = reserve(count * PAGE);
	if (madvise(start, count * PAGE, MADV_NOHUGEPAGE))
		fail("MADV_NOHUGEPAGE");
	toll_watch(start, count * PAGE);
	child = new_child();
	/* Pages of its own for each, at the same place. */
	for (size_t page = 0; page < count; page++)
		start[page * PAGE] = 1;
	if (child == 0) {
		close(there[1]);
		answer(there[0], back[1]);
	}
	/* The TLBs are empty when the first section of a guest begins. */
	section_begin("warming");
	take_turns(there[1], back[0], 2);
	section_end();
	section_begin(argv[1]);
	take_turns(there[1], back[0], turns);
	section_end();
	close(there[1]);
	wait_for_children(1);
	return 0;
}
