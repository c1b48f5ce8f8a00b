# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dependent look-ups in a large dict of ints: dictionary.py [ENTRIES] [LOOKUPS]."""
import sys

entries = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
lookups = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
STEP = 2_654_435_761
table = {i * STEP & 0xFFFFFFFF: i for i in range(entries)}
total, position = 0, 1
for _ in range(lookups):
    found = table[position * STEP & 0xFFFFFFFF]
    total += found
    position = (found * 1_103_515_245 + 12_345) % entries
print(total)
