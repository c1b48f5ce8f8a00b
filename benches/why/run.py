#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures `tollfree why` on a process with 64 GiB and 60,000 mappings:

    benches/why/run.py [--mappings N] [--gib N] [--runs N]

The address space is almost all virtual: one page in each 16th mapping is touched. A second process has
resident memory in 4 KiB pages, as much as half of what is free and at most 8 GiB, so that page tables are
walked too. Prints the elapsed time, the CPU time and the largest resident memory of `why`, as text and as JSON.
Goal: below 5 s and 200 MiB. Status: 0 met, 1 not met, 3 it could not be measured.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
SOURCE = ROOT / "crates" / "tollfree" / "tests" / "data" / "memory.c"
SECONDS = 5
MIB = 200


def start(program, *arguments):
    """A process that holds memory until it is ended; None if it cannot be made."""
    child = subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if child.stdout.readline().strip() in ("", "none"):
        child.wait()
        return None
    return child


def measure(pid, *options):
    """Elapsed and CPU seconds, and the largest resident MiB, of one run."""
    begun = time.monotonic()
    child = subprocess.Popen([TOLLFREE, "why", str(pid), *options], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(3)
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def available():
    """Bytes of available memory."""
    return int(re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())[1]) << 10


def goal(name, pid, options, runs):
    """Prints the worst of some runs; whether it meets the goal."""
    times, spent, sizes = zip(*(measure(pid, *options) for _ in range(runs)))
    met = max(times) < SECONDS and max(sizes) < MIB
    print(f"{'met    ' if met else 'NOT MET'}  {name}: {max(times):.2f} s, {max(sizes):.0f} MiB "
          f"(slowest of {runs}; median {sorted(times)[runs // 2]:.2f} s, {sorted(spent)[runs // 2]:.2f} s of CPU time; goal: below {SECONDS} s and {MIB} MiB)")
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mappings", type=int, default=60_000)
    parser.add_argument("--gib", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "memory")
        subprocess.run(["cc", "-O1", "-o", program, SOURCE], check=True)
        many = start(program, "many", options.mappings, options.gib << 30)
        resident = start(program, "resident", min(available() // 2, 8 << 30))
        if not many or not resident:
            print("the process could not be made")
            return 3
        try:
            what = f"{options.mappings} mappings in {options.gib} GiB, untouched but for {options.mappings // 16} pages"
            size = int(re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{resident.pid}/status").read_text())[1]) / (1 << 20)
            met = [goal(f"{kind}, {name}", child.pid, options_, options.runs)
                   for child, name in [(many, what), (resident, f"{size:.1f} GiB resident in 4 KiB pages")]
                   for kind, options_ in [("text", []), ("JSON", ["--json"])]]
        finally:
            for child in (many, resident):
                child.kill()
                child.wait()
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
