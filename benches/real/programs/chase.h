// SPDX-License-Identifier: MIT OR Apache-2.0
// Dependent look-ups in a map: each key comes from the value found before.
#ifndef CHASE_H
#define CHASE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static std::uint64_t scramble(std::uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

// The program, with the arguments [ENTRIES] [LOOKUPS].
template <class Map> static int chase(int argc, char **argv)
{
	std::uint64_t entries = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1000000;
	std::uint64_t lookups = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1000000;
	Map map;
	for (std::uint64_t i = 0; i < entries; i++)
		map[scramble(i)] = i;
	std::uint64_t sum = 0, next = 1;
	for (std::uint64_t i = 0; i < lookups; i++) {
		auto found = map.find(scramble(next % entries));
		sum += found->second;
		next = scramble(next + found->second);
	}
	std::printf("%llu\n", static_cast<unsigned long long>(sum));
	return 0;
}

#endif
