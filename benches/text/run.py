#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures what huge pages of program text gain, by the amount of text (no goal; ratios only):

    benches/text/run.py [--rounds 9] [--hops 10000000] [PAGES]...

A program jumps through PAGES pages of its text, in an order that the branch predictor can learn while it fits. It runs
with 4 KiB pages and under a plan with its text, in turn, after one round that warms up. (Its file is copied page by page:
the page cache holds what was written at once in large pages, and maps text so.) Prints the CPU time per jump,
without the start, and speed-ups: pseudo-medians with 90 % bootstrap intervals; and how long the start takes longer.
It needs a C compiler and an idle machine.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")

sys.path.insert(0, str(ROOT / "examples" / "skewed-region"))
import times  # noqa: E402

PLAN = """format = "tollfree-plan"
version = 1
source = "accessed"
cpu = ""
reason = "a benchmark"
sites = []
regions = []

[program]
path = ""
build_id = ""

[saved_ns]
median = 0.0
low = 0.0
high = 0.0

[saved_all_ns]
median = 0.0
low = 0.0
high = 0.0

[predicted_speedup]
median = 1.0
low = 1.0
high = 1.0

[[text]]
path = "{path}"
touched_bytes = {bytes}

[end]
sites = 0
regions = 0
"""


def once(command):
    """(ns per jump, kB of huge text, seconds of the run)."""
    begun = time.monotonic()
    words = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(words[0]), int(words[1]), time.monotonic() - begun


def copy(linked, program):
    """Copies a program so that the page cache has it in pages of 4 KiB."""
    content = linked.read_bytes()
    with open(program, "wb", buffering=0) as file:
        for at in range(0, len(content), 4096):
            file.write(content[at : at + 4096])
        os.fsync(file.fileno())
    program.chmod(0o755)


def measure(variants, rounds):
    taken = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name in list(variants)[:: 1 if turn % 2 else -1]:
            numbers = once(variants[name])
            if turn:
                taken[name].append(numbers)
    return taken


def row(pages, directory, options):
    program = directory / f"hops{pages}"
    # Without a build-id the plan names the file.
    linked = program.with_suffix(".linked")
    build = ["cc", "-O1", "-w", "-Wl,--build-id=none", f"-DPAGES={pages}", "-o", linked, HERE / "hops.c"]
    subprocess.run(build, check=True)
    copy(linked, program)
    plan = directory / "plan.toml"
    plan.write_text(PLAN.format(path=program, bytes=pages * 4096))
    run = [program, str(options.hops)]
    under = [TOLLFREE, "run", "--plan", plan, "--", *run]
    taken = measure({"none": run, "text": under}, options.rounds)
    base, text = ([numbers[0] for numbers in taken[name]] for name in ("none", "text"))
    speedup = times.ratio(base, text, random.Random(1))
    huge = min(numbers[1] for numbers in taken["text"])
    jumps = {name: statistics.median(n[2] - n[0] * options.hops / 1e9 for n in taken[name]) for name in taken}
    print(
        f"{pages:>8} {pages >> 8:>6} MiB {huge >> 10:>6} MiB {statistics.median(base):>9.2f} {statistics.median(text):>9.2f}"
        f"   {speedup['median']:.3f} ({speedup['low']:.3f} to {speedup['high']:.3f})"
        f" {(jumps['text'] - jumps['none']) * 1e3:>8.1f} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=int, default=[512, 1024, 2048, 4096, 16384])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--hops", type=int, default=10_000_000)
    options = parser.parse_args()
    print(f"{options.rounds} rounds, Linux {os.uname().release.split('-')[0]}")
    print(f"{'pages':>8} {'text':>10} {'huge':>10} {'none, ns':>9} {'huge, ns':>9}   speed-up (90 % interval)      start")
    with tempfile.TemporaryDirectory(prefix="text-") as directory:
        for pages in options.pages:
            row(pages, Path(directory), options)


if __name__ == "__main__":
    main()
