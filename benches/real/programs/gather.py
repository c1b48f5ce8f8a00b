# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random gather from a large numpy array: gather.py [MEBIBYTES] [ROUNDS]."""
import sys

import numpy

size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
table = numpy.arange(size << 17, dtype=numpy.int64)
rng = numpy.random.default_rng(1)
total = 0
for _ in range(rounds):
    picked = rng.integers(0, table.size, 1 << 21)
    total += int(table[picked].sum())
print(total)
