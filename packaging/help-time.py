# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints how long `PROGRAM --help` takes, in the median of 50 runs, beside the goal."""

import statistics
import subprocess
import sys
import time

RUNS = 50
GOAL = 20


def milliseconds(program: str) -> float:
    begin = time.perf_counter()
    subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    median = statistics.median(milliseconds(sys.argv[1]) for _ in range(RUNS))
    print(f"tollfree --help: {median:.1f} ms in the median of {RUNS} runs (goal: under {GOAL} ms)")


main()
