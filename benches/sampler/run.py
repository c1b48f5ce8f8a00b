#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the cost of sampling huge-page-backed memory for a large program in 4 KiB pages:

    benches/sampler/run.py [--size MIB] [--reads N] [--rounds N]

Runs a chase over 8 GiB (needs 9 GiB free) in turn with the sampler (`tollfree run --summary`) and without it, under an empty plan,
and prints the ratio of the times with its 90 % interval. Also prints the number of samples: each run needs
one, and --reads has to be raised until the runs are long enough.
Goal: the interval lies within +/- 2 %. Status: 0 met, 1 not met, 3 it could not be measured.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "skewed-region"
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
FLOOR = 0.02

sys.path.insert(0, str(EXAMPLE))
import times  # noqa: E402


def seconds(command):
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun


def measure(rounds, directory, program):
    """Seconds of the runs without and with the sampler, and the samples of each of the latter; the first round is dropped."""
    summary, plan = Path(directory) / "summary.json", Path(directory) / "plan"
    plan.write_text("")
    run = [TOLLFREE, "run", "--plan", str(plan)]
    commands = {"without": run + ["--"] + program, "with": run + ["--summary", str(summary), "--"] + program}
    took, samples = {name: [] for name in commands}, []
    for turn in range(rounds + 1):
        for name in list(commands)[:: 1 if turn % 2 else -1]:
            summary.unlink(missing_ok=True)
            spent = seconds(commands[name])
            print(f"  round {turn}, {name}: {spent:.2f} s", flush=True)
            if turn:
                took[name].append(spent)
            if turn and name == "with":
                samples.append(json.loads(summary.read_text())["huge_samples"])
    return took, samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8192, help="MiB of the program (default 8192)")
    parser.add_argument("--reads", type=int, default=100_000_000, help="reads of a run (default 100 million)")
    parser.add_argument("--rounds", type=int, default=6, help="counted rounds (default 6: about 18 minutes)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "skewed"
        subprocess.run(["cc", "-O2", "-o", program, EXAMPLE / "skewed.c"], check=True)
        arguments = ["--size", str(options.size), "--hot-regions", "0", "--reads", str(options.reads)]
        took, samples = measure(options.rounds, directory, [str(program)] + arguments)
    if min(samples) == 0:
        print(f"samples of the runs: {samples}: raise --reads")
        return 3
    ratio = times.ratio(took["with"], took["without"], random.Random(1))
    met = ratio["low"] >= 1 - FLOOR and ratio["high"] <= 1 + FLOOR
    print(f"{'met    ' if met else 'NOT MET'}  {options.size} MiB in 4 KiB pages, with the sampler / without: "
          f"{ratio['median']:.4f} [{ratio['low']:.4f}, {ratio['high']:.4f}], {samples} samples (goal: within 1 +/- {FLOOR})")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
