// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Lookups in tables of cross sections, as Monte Carlo codes of neutron transport make them: a binary search for an
 * energy in one large grid, then one row of each of a few nuclides.
 *
 *     lookup THREADS GRID-BYTES LOOKUPS|endless [FILE]
 *
 * The tables are private memory that is written once by the main thread before the section "main"; with a file, the
 * tables are that file, mapped read-only, and have its size. With "endless" it is the load beside another program,
 * which has the section, and runs until it is killed.
 */
#include "section.h"

#include <sys/stat.h>

enum { NUCLIDES = 12, ROW = 6 };

static const double *grid;
static size_t points, lookups;

static size_t search(double energy)
{
	size_t low = 0, high = points - 1;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		/* In place of a sorted table: a file holds any bytes. */
		if ((double)middle / points <= energy)
			low = middle;
		else
			high = middle;
		__asm__ volatile("" : : "r"(grid[middle]));
	}
	return low;
}

static void *look_up(void *argument)
{
	uint64_t state = 1 + (uintptr_t)argument;
	double sum = 0;

	for (size_t i = 0; i < lookups; i++) {
		size_t at = search((next_random(&state) >> 11) * 0x1p-53);

		for (int nuclide = 0; nuclide < NUCLIDES; nuclide++) {
			size_t row = (at * 2654435761u + nuclide * 40503u) % (points - ROW);

			for (int column = 0; column < ROW; column++)
				sum += grid[row + column];
		}
	}
	__asm__ volatile("" : : "x"(sum));
	return NULL;
}

static void fill(size_t length)
{
	double *made = (double *)reserve(length);

	for (size_t i = 0; i < length / sizeof(double); i++)
		made[i] = i;
	grid = made;
	points = length / sizeof(double);
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat))
		fail(path);
	grid = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (grid == MAP_FAILED)
		fail(path);
	points = stat.st_size / sizeof(double);
}

static const char how[] = "lookup THREADS GRID-BYTES LOOKUPS|endless [FILE]";

int main(int argc, char **argv)
{
	size_t threads;
	int is_endless;

	if (argc != 4 && argc != 5)
		usage(how);
	threads = number(argv[1]);
	is_endless = !strcmp(argv[3], "endless");
	lookups = is_endless ? SIZE_MAX : number(argv[3]);
	if (threads > MAX_THREADS)
		usage(how);
	if (argc == 5)
		map_file(argv[4]);
	else
		fill(number(argv[2]));
	if (is_endless) {
		in_threads(threads, look_up);
		return 1;
	}
	section_begin("main");
	in_threads(threads, look_up);
	section_note("lookups", (double)threads * lookups);
	section_end();
	return 0;
}
