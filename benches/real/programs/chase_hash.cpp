// SPDX-License-Identifier: MIT OR Apache-2.0
// Dependent look-ups in a std::unordered_map.
// chase_hash [ENTRIES] [LOOKUPS]
#include "chase.h"

#include <unordered_map>

int main(int argc, char **argv)
{
	return chase<std::unordered_map<std::uint64_t, std::uint64_t>>(argc, argv);
}
