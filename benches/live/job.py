# SPDX-License-Identifier: MIT OR Apache-2.0
"""A job without an end: job.py gather|dictionary|sqlite LOG. LOG gets the process id when it begins, and a line for each round."""
import os
import random
import sys

SEED = 1


def gather():
    """Random elements of a numpy array of 256 MiB."""
    import numpy

    table = numpy.arange(256 << 17, dtype=numpy.int64)
    rng = numpy.random.default_rng(SEED)
    return lambda: int(table[rng.integers(0, table.size, 1 << 17)].sum())


def dictionary():
    """Look-ups in a dict of 1 million integers."""
    entries = 1_000_000
    table = {i * 2_654_435_761 & 0xFFFFFFFF: i for i in range(entries)}
    keys = list(table)
    choose = random.Random(SEED).randrange
    return lambda: sum(table[keys[choose(entries)]] for _ in range(5000))


def sqlite():
    """Point queries on a table of 500,000 rows in memory."""
    import sqlite3

    rows = 500_000
    base = sqlite3.connect(":memory:")
    base.execute("create table t (k integer primary key, v text)")
    base.executemany("insert into t values (?, ?)", ((i, f"{i:0200d}") for i in range(rows)))
    choose = random.Random(SEED).randrange
    query = "select length(v) from t where k = ?"
    return lambda: sum(base.execute(query, (choose(rows),)).fetchone()[0] for _ in range(1000))


def main():
    log = open(sys.argv[2], "wb", buffering=0)
    job = globals()[sys.argv[1]]()
    log.write(b"%d\n" % os.getpid())
    while True:
        log.write(b"%d\n" % job())


if __name__ == "__main__":
    main()
