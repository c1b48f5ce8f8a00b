#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How often `tollfree compare` finds a difference where there is none:

    benches/null/run.py [--two] [--size MIB] [--within TIME] [SECONDS:COMPARISONS...]

Compares a program without a plan and with an empty plan, which loads the preload library and advises nothing; with --two,
a command with itself (`compare -a CMD -b CMD`).
Programs of 0.1 to 10 s by default. Prints the verdict of each comparison with its 95 % interval, and how many are another one
than "no difference". Goal: at most 5 %. It takes about 35 minutes; leave the machine alone meanwhile.
Status: 0 met, 1 not met, 3 it could not be measured.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "skewed-region"
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
GOAL = 0.05
# A program of 10 s has few comparisons: each takes five minutes.
DEFAULT = ["0.1:12", "0.3:12", "1:8", "3:5", "10:2"]
# Reads to tell how long one takes.
TRIAL = 20_000_000

sys.path.insert(0, str(EXAMPLE))
import times  # noqa: E402


def length(text):
    """(seconds, comparisons) of "0.3:12"."""
    seconds, _, comparisons = text.partition(":")
    try:
        parsed = float(seconds), int(comparisons)
    except ValueError:
        parsed = 0.0, 0
    if min(parsed) <= 0:
        raise argparse.ArgumentTypeError(f"{text}: both have to be above 0, as in 0.3:12")
    return parsed


def with_plan(plan, command):
    return ["--plan", str(plan), "--any-output", "--", *command]


def with_itself(command):
    line = shlex.join(command)
    return ["-a", line, "-b", line, "--any-output"]


def compare(within, what):
    run = subprocess.run([TOLLFREE, "compare", "--json", "--within", within, *what],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(run.stdout)
    except ValueError:
        sys.stderr.write(run.stderr)
        sys.exit(3)


def interval(speedup):
    return "no interval" if speedup is None else f"{speedup['median']:.4f} [{speedup['low']:.4f}, {speedup['high']:.4f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--two", action="store_true", help="compare a command with itself, instead of an empty plan")
    parser.add_argument("--size", type=int, default=64, help="MiB of the program (default 64)")
    parser.add_argument("--within", default="5m", help="time limit of a comparison (default 5m)")
    parser.add_argument("lengths", nargs="*", type=length, metavar="SECONDS:COMPARISONS", help=f"default {' '.join(DEFAULT)}")
    options = parser.parse_args()
    verdicts = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        program, plan = Path(scratch) / "skewed", Path(scratch) / "plan"
        subprocess.run(["cc", "-O2", "-o", program, EXAMPLE / "skewed.c"], check=True)
        plan.write_text("")
        command = [str(program), "--size", str(options.size), "--hot-regions", "0", "--reads"]
        of_a_read = times.once(command + [str(TRIAL)])[0] / TRIAL
        for seconds, comparisons in options.lengths or map(length, DEFAULT):
            reads = max(1, round(seconds / of_a_read))
            for _ in range(comparisons):
                once = command + [str(reads)]
                said = compare(options.within, with_itself(once) if options.two else with_plan(plan, once))
                verdicts[said["verdict"]] += 1
                print(f"{seconds:>5} s  {said['verdict']:<13}  {interval(said['speedup'])}  {said['pairs']} pairs", flush=True)
    total = verdicts.total()
    others = total - verdicts["no-difference"]
    met = others <= GOAL * total
    print(f"{'met    ' if met else 'NOT MET'}  {others} of {total} comparisons have another verdict than no-difference"
          f" ({others / total:.1%}; goal: at most {GOAL:.0%}): {dict(verdicts)}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
