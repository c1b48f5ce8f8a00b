# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sorts and walks a list of small tuples in random order: objects.py [COUNT]."""
import random
import sys

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_500_000
rng = random.Random(1)
items = [(rng.random(), i) for i in range(count)]
items.sort()
print(sum(index for _, index in items[::3]))
