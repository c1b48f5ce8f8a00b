# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs variants of skewed in turn and compares the time of their reads.

    times.py ROUNDS NAME=COMMAND NAME=COMMAND... [-- OPTIONS OF EACH COMMAND]

The first variant is the base of the comparison. The first round warms up and is dropped; the order alternates.
Prints each ratio with a 90 % bootstrap interval (fixed seed), and on the last line all of it as JSON.
"""
import itertools
import json
import math
import random
import re
import shlex
import statistics
import subprocess
import sys

RESAMPLED = 2000


def once(command):
    """(seconds of the reads, output) of one run."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    took = re.search(r"reads took ([0-9.]+) s", run.stderr)
    if run.returncode or not took:
        sys.exit(f"{shlex.join(command)}: status {run.returncode}\n{run.stderr}")
    return float(took.group(1)), run.stdout


def pseudo_median(values):
    """Hodges and Lehmann: the median of the means of all pairs of values."""
    return statistics.median((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))


def log_ratios(base, other):
    """Of each round: what its runs share (a drift of the machine) is not in them."""
    return [math.log(a / b) for a, b in zip(base, other)]


def ratio(base, other, rng):
    """Pseudo-median of the rounds' ratios, with the 5th and 95th percentile of its bootstrap."""
    logs = log_ratios(base, other)
    drawn = sorted(pseudo_median(rng.choices(logs, k=len(logs))) for _ in range(RESAMPLED))
    values = {"median": pseudo_median(logs), "low": drawn[RESAMPLED // 20], "high": drawn[-RESAMPLED // 20]}
    return {name: math.exp(value) for name, value in values.items()}


def measure(rounds, variants):
    """Seconds of each variant, by name; every run must print the same."""
    times = {name: [] for name in variants}
    outputs = set()
    for turn in range(rounds + 1):
        for name in list(variants)[:: 1 if turn % 2 else -1]:
            seconds, output = once(variants[name])
            outputs.add(output)
            if turn:
                times[name].append(seconds)
    if len(outputs) != 1:
        sys.exit(f"the variants print different things: {outputs}")
    return times


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    named = arguments[1 : arguments.index("--")] if "--" in arguments else arguments[1:]
    variants = {name: shlex.split(command) + options for name, command in (text.split("=", 1) for text in named)}
    times = measure(int(arguments[0]), variants)
    base = next(iter(times))
    result = {name: {"seconds": seconds, "speedup": ratio(times[base], seconds, random.Random(1))} for name, seconds in times.items()}
    for name, value in result.items():
        speedup = value["speedup"]
        print(f"{name:>10}  {statistics.median(value['seconds']):7.3f} s"
              + (f"   speedup {speedup['median']:.3f} [{speedup['low']:.3f}, {speedup['high']:.3f}]" if name != base else ""))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
