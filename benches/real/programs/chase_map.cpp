// SPDX-License-Identifier: MIT OR Apache-2.0
// Dependent look-ups in a std::map.
// chase_map [ENTRIES] [LOOKUPS]
#include "chase.h"

#include <map>

int main(int argc, char **argv)
{
	return chase<std::map<std::uint64_t, std::uint64_t>>(argc, argv);
}
