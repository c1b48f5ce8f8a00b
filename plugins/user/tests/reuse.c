/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of the reuse distance, compared with distances counted in a list. */
#include "../reuse.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE 32768ull
#define LINES 3000

/* Lines by recency, the latest first. */
static uint32_t list[LINES];
static uint32_t listed;

/* Returns the exact number of other lines since the last walk of this one. */
static uint64_t exact(uint32_t line)
{
	uint32_t at = 0;

	while (at < listed && list[at] != line)
		at++;
	if (at == listed)
		listed++;
	memmove(list + 1, list, at * sizeof(list[0]));
	list[0] = line;
	return at;
}

static void sweeps(void)
{
	struct reuse *reuse = reuse_new();

	/* Eight pages of a line: nothing in between. */
	reuse_walk(reuse, 0);
	for (int page = 1; page < 8; page++)
		EXPECT("same line", reuse_walk(reuse, page * 4096), 0);
	EXPECT("first walk of a second line", reuse_walk(reuse, LINE), 1);
	EXPECT("back", reuse_walk(reuse, 0), 1);
	/* 100 lines in turn: 99 others each time. */
	for (int round = 0; round < 3; round++)
		for (int line = 0; line < 100; line++) {
			uint64_t lines = reuse_walk(reuse, line * LINE);

			if (round)
				EXPECT("in turn", lines >= 91 && lines <= 99, 1);
		}
	reuse_free(reuse);
}

/* Mean log2 of random walks: within 0.1 of the exact one, also far beyond all epochs. */
static void at_random(uint32_t lines, int walks)
{
	struct reuse *reuse = reuse_new();
	double sum = 0, exact_sum = 0;

	listed = 0;
	srand(7);
	for (int i = 0; i < walks; i++) {
		uint32_t line = rand() % lines;
		uint64_t found = reuse_walk(reuse, line * LINE);
		uint64_t right = exact(line);

		if (i < (int)lines * 4)
			continue;
		sum += reuse_log2(found) / 256.0;
		exact_sum += 15 + log2(right + 1);
	}
	EXPECT("mean log2 is near", fabs(sum - exact_sum) < 0.1 * walks, 1);
	reuse_free(reuse);
}

static void logarithms(void)
{
	EXPECT("1 line", reuse_log2(0), 15 * 256);
	EXPECT("2 lines", reuse_log2(1), 16 * 256);
	EXPECT("1024 lines", reuse_log2(1023), 25 * 256);
	for (uint64_t lines = 0; lines < 100000; lines += 7) {
		double right = 256 * (15 + log2(lines + 1.0));

		/* Truncated to a sixteenth of an octave. */
		EXPECT("error", fabs(right - reuse_log2(lines)) <= 23, 1);
	}
}

int main(void)
{
	sweeps();
	at_random(10, 20000);
	at_random(LINES, 60000);
	at_random(LINES, 300000);
	/* Past the 131,072 epochs, twice. */
	at_random(50, 5000000);
	logarithms();
	return finish("reuse");
}
