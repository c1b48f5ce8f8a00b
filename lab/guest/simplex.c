// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The main loop of a network simplex code: it computes the reduced costs of blocks of arcs, which are in order, from the
 * potentials of their nodes, which are not, and then changes the potentials along a path of the tree.
 *
 *     simplex BYTES ITERATIONS SEED
 *
 * A third of BYTES are nodes and the rest are arcs; all are written once, in order.
 */
#include "util.h"

enum { BLOCK = 256, LONGEST_PATH = 64 };

struct node {
	int64_t potential;
	uint32_t parent, depth;
	char rest[48];
};

struct arc {
	uint32_t tail, head;
	int64_t cost;
	uint64_t flow;
	char rest[40];
};

static struct node *nodes;
static struct arc *arcs;
static uint32_t node_count, arc_count;
static uint64_t state;

static void build(void)
{
	for (uint32_t i = 0; i < node_count; i++)
		nodes[i] = (struct node){
			.potential = next_random(&state) % 100000,
			.parent = i ? next_random(&state) % i : 0,
		};
	for (uint32_t i = 0; i < arc_count; i++)
		arcs[i] = (struct arc){
			.tail = next_random(&state) % node_count,
			.head = next_random(&state) % node_count,
			.cost = next_random(&state) % 10000,
		};
}

static int64_t reduced_cost(const struct arc *arc)
{
	return arc->cost - nodes[arc->tail].potential + nodes[arc->head].potential;
}

/* The arc of a block that gains most. */
static struct arc *price(uint32_t first)
{
	struct arc *best = &arcs[first];

	for (uint32_t i = first; i < first + BLOCK && i < arc_count; i++)
		if (reduced_cost(&arcs[i]) < reduced_cost(best))
			best = &arcs[i];
	return best;
}

/* From a node to the root. */
static void update(uint32_t node, int64_t change)
{
	for (int step = 0; node && step < LONGEST_PATH; step++) {
		nodes[node].potential += change;
		node = nodes[node].parent;
	}
}

int main(int argc, char **argv)
{
	size_t length, iterations;
	int64_t total = 0;

	if (argc != 4)
		usage("simplex BYTES ITERATIONS SEED");
	length = number(argv[1]);
	iterations = number(argv[2]);
	state = number(argv[3]);
	node_count = length / 3 / sizeof(*nodes);
	arc_count = (length - length / 3) / sizeof(*arcs);
	nodes = (struct node *)anonymous(node_count * sizeof(*nodes));
	arcs = (struct arc *)anonymous(arc_count * sizeof(*arcs));
	build();
	for (size_t i = 0; i < iterations; i++) {
		struct arc *enters = price(next_random(&state) % arc_count);
		int64_t gain = reduced_cost(enters);

		enters->flow++;
		update(enters->head, -gain / 2);
		total += gain;
	}
	printf("%lld\n", (long long)total);
	return 0;
}
