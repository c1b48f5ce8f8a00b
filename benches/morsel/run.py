#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the cost of mapping a resident file, by the memory that holds it (a stock kernel is enough):

    sudo benches/morsel/run.py [--size 4G] [--rounds 9] [--pool] [first] [each] [sum]

first  map it and read one byte
each   map it and read one byte of every page
sum    map it and read all of it

The file is in the page cache, read in order, mapped with MAP_POPULATE (the base of the comparison) and without; in tmpfs
with huge=always; in tmpfs with 4 KiB pages, as in the page cache of older kernels and other file systems; in hugetlbfs
if the pool has the pages (--pool reserves them, and returns them). The runs alternate in random order, after one round
that warms up. Prints the number of faults, and speed-ups over page cache with MAP_POPULATE: pseudo-medians with 90 % bootstrap intervals.
It needs root for mounts of its own, memory of four times the size, and an idle machine.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE = 2 << 20

WHAT = {
    "first": "map it and read one byte (a program that starts)",
    "each": "map it and read one byte of every page (a program that has started)",
    "sum": "map it and read all of it (a program that works)",
}

sys.path.insert(0, str(ROOT / "examples" / "skewed-region"))
import times  # noqa: E402


def call(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def size(text):
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1].upper()] if text[-1].upper() in units else int(text)


def make_model(path, length):
    """Random bytes."""
    with open(path, "wb") as file:
        for _ in range(length // HUGE):
            file.write(os.urandom(HUGE))
        file.flush()
        os.fsync(file.fileno())


def warm(path):
    """Brings a file into the page cache from the disk, as a program that reads it does."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        buffer = bytearray(8 << 20)
        while file.readinto(buffer):
            pass


def hold(directory, name, options, model):
    """A mount with the model in it; the path there, or None where it cannot be had."""
    point = directory / name
    point.mkdir()
    kind = "hugetlbfs" if name == "hugetlbfs" else "tmpfs"
    subprocess.run(["mount", "-t", kind, "-o", options, "none", point], check=True)
    put = subprocess.run([TOLLFREE, "morsel", "put", model, "--to", point], stdout=subprocess.PIPE, text=True)
    if put.returncode:
        return None
    stat = call(TOLLFREE, "morsel", "stat", model.name, "--in", point)
    print(f"{name}: {next(line for line in stat.splitlines() if line.startswith('memory')).split(None, 1)[1]}")
    return point / model.name


def measure(touch, variants, what, rounds):
    """(nanoseconds, faults, nanoseconds of munmap) of each round, by variant."""
    taken = {name: [] for name in variants}
    rng = random.Random(1)
    for turn in range(rounds + 1):
        for name in rng.sample(sorted(variants), len(variants)):
            path, way = variants[name]
            numbers = [int(number) for number in call(touch, path, way, what).split()]
            if turn:
                taken[name].append(numbers)
    return taken


def short(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(what, taken, base):
    print(f"\n{what}: {WHAT[what]}")
    print(f"  {'':24} {'faults':>10} {'time':>12}   speed-up (90 % interval)      {'munmap':>10}")
    whole = {name: [row[0] for row in rows] for name, rows in taken.items()}
    for name, rows in taken.items():
        speedup = times.ratio(whole[base], whole[name], random.Random(1))
        low, median, high = (short(speedup[name]) for name in ("low", "median", "high"))
        interval = f"{median} ({low} to {high})" if name != base else "-"
        faults = statistics.median(row[1] for row in rows)
        took, gone = (statistics.median(row[column] for row in rows) / 1e6 for column in (0, 2))
        print(f"  {name:24} {faults:>10.0f} {took:>9.3f} ms   {interval:<30} {gone:>7.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*WHAT, []])
    parser.add_argument("--size", type=size, default=4 << 30)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pool", action="store_true", help="reserve pages of the hugetlb pool meanwhile")
    parser.add_argument("--own-mounts", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("benches/morsel/run.py: needs root, for mounts of its own")
    if not options.own_mounts:
        os.execvp("unshare", ["unshare", "--mount", sys.executable, __file__, "--own-mounts", *sys.argv[1:]])
    options.size = options.size // HUGE * HUGE
    before = POOL.read_text() if POOL.exists() else None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollfree" / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="morsel-", dir=cache))
    try:
        run(directory, options)
    finally:
        for point in directory.iterdir():
            if os.path.ismount(point):
                subprocess.run(["umount", point])
        shutil.rmtree(directory)
        if options.pool and before:
            POOL.write_text(before)


def run(directory, options):
    touch, model = directory / "touch", directory / "model"
    call("cc", "-O2", "-o", touch, HERE / "touch.c")
    make_model(model, options.size)
    if options.pool:
        # Reserve huge pages first: fragmented memory has few of them.
        POOL.write_text(str(int(POOL.read_text()) + options.size // HUGE))
    variants = {"page cache, populate": (model, "populate"), "page cache": (model, "plain")}
    for name, mount in (("hugetlbfs", "pagesize=2M"), ("tmpfs, huge", "huge=always,size=90%"), ("tmpfs, 4 KiB", "huge=never,size=90%")):
        path = hold(directory, name, mount, model)
        if path is None:
            print(f"{name}: left out")
        else:
            variants[name] = (path, "plain")
    if "tmpfs, huge" in variants:
        variants["tmpfs, huge, populate"] = (variants["tmpfs, huge"][0], "populate")
    warm(model)
    print(f"{options.size >> 20} MiB, {options.rounds} rounds, Linux {os.uname().release.split('-')[0]}")
    for what in options.what or WHAT:
        table(what, measure(touch, variants, what, options.rounds), "page cache, populate")


if __name__ == "__main__":
    main()
