// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random updates, nearly all in a tenth of the memory: 19 of 20 updates go to the hot regions, which use all of their
 * pages, and one to the others, which use a sixteenth of theirs.
 *
 *     hot BYTES UPDATES SEED
 *
 * Each page that is used is written once, in order, before the first update. Every tenth region of 2 MiB is hot.
 */
#include "util.h"

enum { HOT_EACH = 10, COLD_ONE_IN = 20, COLD_PAGES = 32 };

static char *memory;
static size_t regions;

static int is_hot(size_t region)
{
	return region % HOT_EACH == HOT_EACH / 2;
}

static void touch(void)
{
	for (size_t region = 0; region < regions; region++) {
		size_t step = is_hot(region) ? PAGE : REGION / COLD_PAGES;

		for (size_t at = 0; at < REGION; at += step)
			memory[region * REGION + at] = 1;
	}
}

static void update(uint64_t random)
{
	size_t tenth = (random >> 16) % (regions / HOT_EACH), place = random >> 40;

	if (random % COLD_ONE_IN)
		memory[(tenth * HOT_EACH + HOT_EACH / 2) * REGION + place % REGION]++;
	else
		memory[tenth * HOT_EACH * REGION + place % COLD_PAGES * (REGION / COLD_PAGES)]++;
}

int main(int argc, char **argv)
{
	size_t updates;
	uint64_t state;

	if (argc != 4)
		usage("hot BYTES UPDATES SEED");
	regions = number(argv[1]) / REGION;
	updates = number(argv[2]);
	state = number(argv[3]);
	if (regions % HOT_EACH || !regions) {
		fprintf(stderr, "hot: a multiple of 20 MiB\n");
		return 2;
	}
	memory = anonymous(regions * REGION);
	touch();
	for (size_t i = 0; i < updates; i++)
		update(next_random(&state));
	return 0;
}
