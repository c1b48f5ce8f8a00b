// SPDX-License-Identifier: MIT OR Apache-2.0
// operator new, a growing vector, and an exception for an impossible block.
#include <cstdio>
#include <new>
#include <vector>

int main()
{
	char *block = new char[8 << 20];
	std::vector<int> grows;
	for (int i = 0; i < 3'000'000; i++)
		grows.push_back(i);
	try {
		volatile size_t much = size_t(1) << 60;
		delete[] new char[much];
	} catch (const std::bad_alloc &) {
		std::puts("refused");
	}
	block[5] = 7;
	std::printf("%d %d\n", block[5], grows[2'999'999]);
	delete[] block;
}
