#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the cost of `tollfree stat -a -I 1` beside many processes:

    benches/stat/run.py [--processes N] [--for SECONDS]

Starts processes that sleep, then reads the machine's counters once a second, and prints the CPU time
that this took as a share of a CPU, the start of the program included.
Goal: below 1 %. Status: 0 met, 1 not met, 3 it could not be measured.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
GOAL = 0.01
INTERVAL = "1"


def cpu_seconds(pid):
    """User and system time of a process in s."""
    precise = Path(f"/proc/{pid}/schedstat")
    if precise.exists():
        return int(precise.read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleepers(number):
    """A process with `number` children that sleep until their stdin closes."""
    # A background command has /dev/null as its stdin, unless another descriptor is given.
    script = f"exec 3<&0; i=0; while [ $i -lt {number} ]; do cat <&3 >/dev/null & i=$((i + 1)); done; echo ready; wait"
    parent = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    parent.stdout.readline()
    return parent


def measure(seconds):
    """CPU time and elapsed time of a stat that watches the machine, from its start."""
    stat = subprocess.Popen([TOLLFREE, "--json", "stat", "-a", "-I", INTERVAL], stdout=subprocess.PIPE)
    try:
        begun = time.monotonic()
        reports = 0
        while time.monotonic() - begun < seconds:
            reports += bool(stat.stdout.readline())
        return cpu_seconds(stat.pid), time.monotonic() - begun, reports
    finally:
        stat.kill()
        stat.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2000, help="processes beside it (default 2,000)")
    parser.add_argument("--for", dest="seconds", type=float, default=60, help="seconds to measure (default 60)")
    options = parser.parse_args()
    parent = sleepers(options.processes)
    try:
        visible = sum(name.isdigit() for name in os.listdir("/proc"))
        if visible < options.processes:
            print(f"only {visible} processes are running")
            return 3
        spent, elapsed, reports = measure(options.seconds)
    finally:
        parent.stdin.close()
        parent.wait()
    share = spent / elapsed
    print(f"{'met    ' if share < GOAL else 'NOT MET'}  the machine once a second, {visible} processes: "
          f"{share:.3%} of a CPU, {spent * 1e3 / max(reports, 1):.2f} ms a report, {reports} reports (goal: below {GOAL:.0%})")
    return 0 if share < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
