// SPDX-License-Identifier: MIT OR Apache-2.0
// A program dominated by small allocations: counts generated words in a map, stores
// the positions of each, inverts the map, and frees everything. Takes a few seconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
	uint64_t state = 1, sum = 0;

	for (int round = 0; round < rounds; round++) {
		std::map<std::string, std::vector<int>> places;
		std::multimap<size_t, std::string> by_count;
		for (int i = 0; i < 300'000; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			std::string word = "word number " + std::to_string((state >> 40) % 60'000);
			places[word].push_back(i);
		}
		for (const auto &[word, list] : places)
			by_count.emplace(list.size(), word + "!");
		for (const auto &[count, word] : by_count)
			sum = sum * 31 + count + word.size();
	}
	std::printf("%llu\n", (unsigned long long)sum);
}
