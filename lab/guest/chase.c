// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Follows pointers through nodes in a random order, and changes some: the main loop of annealing and network simplex
 * codes.
 *
 *     chase BYTES STEPS SWAP-EVERY
 *
 * Every SWAP-EVERY-th step two nodes change their loads. The nodes are written once, in order, before the section
 * "main".
 */
#include "section.h"

struct node {
	uint32_t next, load;
	char rest[56];
};

static void link_up(struct node *nodes, uint32_t count)
{
	uint64_t state = 88172645463325252ull;

	for (uint32_t i = 0; i < count; i++)
		nodes[i] = (struct node){ .next = i, .load = i };
	/* A single cycle through all of them (Sattolo 1986). */
	for (uint32_t i = count - 1; i > 0; i--) {
		uint32_t other = next_random(&state) % i, next = nodes[i].next;

		nodes[i].next = nodes[other].next;
		nodes[other].next = next;
	}
}

int main(int argc, char **argv)
{
	size_t steps, every;
	struct node *nodes;
	uint32_t count, at = 0;

	if (argc != 4)
		usage("chase BYTES STEPS SWAP-EVERY");
	count = number(argv[1]) / sizeof(*nodes);
	steps = number(argv[2]);
	every = number(argv[3]);
	nodes = (struct node *)reserve(count * sizeof(*nodes));
	link_up(nodes, count);
	section_begin("main");
	for (size_t step = 1; step <= steps; step++) {
		uint32_t next = nodes[at].next;

		if (step % every == 0) {
			uint32_t load = nodes[at].load;

			nodes[at].load = nodes[next].load;
			nodes[next].load = load;
		}
		at = next;
	}
	section_note("steps", steps);
	section_end();
	return at == UINT32_MAX;
}
