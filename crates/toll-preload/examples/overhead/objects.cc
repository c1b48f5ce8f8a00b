// SPDX-License-Identifier: MIT OR Apache-2.0
// As blocks.c, through operator new: one more frame to unwind.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <new>

static double now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	const size_t length = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 64;
	double best = 1e9;

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	operator delete(operator new(2 * length));
	for (int round = 0; round < 200; round++) {
		const double start = now();
		for (int i = 0; i < 1000; i++)
			operator delete(operator new(length));
		const double each = (now() - start) / 1000;
		if (each < best)
			best = each;
	}
	std::printf("%.3f\n", best);
}
