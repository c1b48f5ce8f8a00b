// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Simulated annealing of a netlist: elements on a grid, each with nets to others; two random elements are swapped if that
 * makes their nets shorter, or by chance.
 *
 *     anneal BYTES SWAPS SEED [TABLE-BYTES]
 *
 * BYTES of elements are written once, in order. Then each swap reads two at random and all their neighbours. With
 * TABLE-BYTES it stands for a later version of the program: it maps a table before the elements, and uses a page in
 * each 2 MiB of it.
 */
#include "util.h"

enum { NETS = 5, SIDE = 1 << 12 };

struct element {
	uint32_t x, y;
	uint32_t net[NETS];
	uint32_t moved;
};

static struct element *elements;
static uint32_t count;
static uint64_t state;

static void place_all(void)
{
	for (uint32_t i = 0; i < count; i++) {
		struct element *element = &elements[i];

		element->x = i % SIDE;
		element->y = i / SIDE;
		for (int net = 0; net < NETS; net++)
			element->net[net] = next_random(&state) % count;
	}
}

static uint32_t distance(uint32_t one, uint32_t other)
{
	return one > other ? one - other : other - one;
}

/* The length of an element's nets if it were at a place. */
static uint64_t length_at(const struct element *element, uint32_t x, uint32_t y)
{
	uint64_t length = 0;

	for (int net = 0; net < NETS; net++) {
		const struct element *other = &elements[element->net[net]];

		length += distance(x, other->x) + distance(y, other->y);
	}
	return length;
}

static void swap(struct element *one, struct element *other)
{
	uint32_t x = one->x, y = one->y;

	one->x = other->x;
	one->y = other->y;
	other->x = x;
	other->y = y;
	one->moved++;
	other->moved++;
}

static void make_table(size_t length)
{
	char *table = anonymous(length);

	for (size_t at = 0; at < length; at += REGION)
		table[at] = 1;
}

int main(int argc, char **argv)
{
	size_t swaps, done = 0;

	if (argc != 4 && argc != 5)
		usage("anneal BYTES SWAPS SEED [TABLE-BYTES]");
	if (argc == 5)
		make_table(number(argv[4]));
	count = number(argv[1]) / sizeof(*elements);
	swaps = number(argv[2]);
	state = number(argv[3]);
	elements = (struct element *)anonymous(count * sizeof(*elements));
	place_all();
	for (size_t i = 0; i < swaps; i++) {
		struct element *one = &elements[next_random(&state) % count];
		struct element *other = &elements[next_random(&state) % count];
		uint64_t before = length_at(one, one->x, one->y) + length_at(other, other->x, other->y);
		uint64_t after = length_at(one, other->x, other->y) + length_at(other, one->x, one->y);

		/* It gets colder: what is worse is done less and less. */
		if (after < before || next_random(&state) % (i + 16) < 8) {
			swap(one, other);
			done++;
		}
	}
	printf("%zu of %zu swaps\n", done, swaps);
	return 0;
}
