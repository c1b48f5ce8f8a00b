// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Skewed random reads in one large mapping at a fixed address.
 *
 * The mapping is cut into regions of 2 MiB. A few of them, chosen by a seed, are hot: they get most of the reads.
 * The checksum goes to stdout and depends on the options alone; the time of the reads goes to stderr.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BASE 0x18780000000UL
#define REGION (2UL << 20)
#define LINE 64UL
#define LINES (REGION / LINE)

struct options {
	uint64_t regions;     /* size of the mapping, in regions */
	uint64_t hot_regions; /* how many of them are hot */
	double hot_share;     /* share of the reads that go to the hot ones, 0..1 */
	uint64_t reads;
	uint64_t seed;
	int independent; /* the next address does not wait for the last value */
};

static const char usage[] =
	"skewed [OPTIONS]\n"
	"  --size MIB           size of the mapping at 0x18780000000 (1024)\n"
	"  --hot-regions N      hot regions of 2 MiB, 0 for none (8)\n"
	"  --hot-share SHARE    share of the reads that they get, 0..1 (0.98)\n"
	"  --reads N            random reads (20000000)\n"
	"  --seed N             chooses the hot regions and the order of the reads (24623)\n"
	"  --mode chase|independent   whether an address depends on the value read before (chase)\n";

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9UL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebUL;
	return x ^ (x >> 31);
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "skewed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void refuse(const char *what)
{
	fprintf(stderr, "skewed: %s\n%s", what, usage);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	errno = 0;
	uint64_t value = strtoull(text, &end, 0);
	if (errno || *end || end == text || *text == '-')
		refuse("not a number");
	return value;
}

static double share(const char *text)
{
	char *end;
	double value = strtod(text, &end);
	if (*end || end == text || !(value >= 0 && value <= 1))
		refuse("a share is a number from 0 to 1");
	return value;
}

static int is_independent(const char *text)
{
	if (strcmp(text, "independent") && strcmp(text, "chase"))
		refuse("a mode is chase or independent");
	return text[0] == 'i';
}

static struct options parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "size", required_argument, NULL, 's' },      { "hot-regions", required_argument, NULL, 'h' },
		{ "hot-share", required_argument, NULL, 'p' }, { "reads", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 'r' },      { "mode", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { 512, 8, 0.98, 20000000, 24623, 0 };
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's': o.regions = number(optarg) * (1 << 20) / REGION; break;
		case 'h': o.hot_regions = number(optarg); break;
		case 'p': o.hot_share = share(optarg); break;
		case 'n': o.reads = number(optarg); break;
		case 'r': o.seed = number(optarg); break;
		case 'm': o.independent = is_independent(optarg); break;
		default: refuse("unknown option");
		}
	}
	if (optind < argc || !o.regions || o.hot_regions > o.regions)
		refuse("the size must hold the hot regions");
	return o;
}

/* The regions in an order drawn by the seed: the first hot_regions of them are the hot ones. */
static uint32_t *shuffled(const struct options *o)
{
	uint32_t *order = malloc(o->regions * sizeof(*order));
	if (!order)
		fail("malloc");
	for (uint64_t i = 0; i < o->regions; i++)
		order[i] = i;
	for (uint64_t i = o->regions - 1; i > 0; i--) {
		uint64_t j = mix(o->seed + i) % (i + 1);
		uint32_t kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
	return order;
}

static uint64_t *map(const struct options *o)
{
	size_t size = o->regions * REGION;
	void *at = mmap((void *)BASE, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	if (at != (void *)BASE) {
		fprintf(stderr, "skewed: %#lx is taken\n", BASE);
		exit(1);
	}
	return at;
}

static void fill(uint64_t *memory, const struct options *o)
{
	for (uint64_t line = 0; line < o->regions * LINES; line++)
		memory[line * (LINE / sizeof(*memory))] = mix(line);
}

/* x chooses: its low 20 bits hot or not, the others the region and the line. */
static uint64_t pick(uint64_t x, uint64_t hot_limit, const struct options *o, const uint32_t *order)
{
	uint64_t among = (x & 0xfffff) < hot_limit ? o->hot_regions : o->regions;
	uint64_t region = order[((x >> 20 & 0xfffff) * among) >> 20];

	return region * LINES + (x >> 40) % LINES;
}

static uint64_t read_chasing(const uint64_t *memory, uint64_t hot_limit, const struct options *o,
			     const uint32_t *order)
{
	uint64_t sum = 0, x = mix(o->seed);

	for (uint64_t i = 0; i < o->reads; i++) {
		uint64_t value = memory[pick(x, hot_limit, o, order) * (LINE / sizeof(*memory))];
		sum += value;
		x = mix(o->seed + i + value);
	}
	return sum;
}

static uint64_t read_independently(const uint64_t *memory, uint64_t hot_limit, const struct options *o,
				   const uint32_t *order)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < o->reads; i++)
		sum += memory[pick(mix(o->seed + i), hot_limit, o, order) * (LINE / sizeof(*memory))];
	return sum;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	uint32_t *order = shuffled(&o);
	uint64_t *memory = map(&o);
	struct timespec from, to;

	uint64_t hot_limit = o.hot_regions ? (uint64_t)(o.hot_share * (1 << 20)) : 0;

	fill(memory, &o);
	clock_gettime(CLOCK_MONOTONIC, &from);
	uint64_t sum = (o.independent ? read_independently : read_chasing)(memory, hot_limit, &o, order);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("checksum %016lx\n", sum);
	fprintf(stderr, "reads took %.3f s\n", (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9);
	free(order);
	return fflush(stdout) ? 1 : 0;
}
