#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the cost of the commands that watch the whole machine, beside many processes:

    benches/stat/run.py [--processes N] [--for SECONDS] [NAME...]

Starts processes that sleep. Then each command of COMMANDS reads everything once a second, and its CPU time is printed
as a share of a CPU, the start of the program included.
Goals: stat below 1 %; top, its display on a terminal, and exporter below 2 %.
Status: 0 met, 1 not met, 3 it could not be measured.
"""

import argparse
import os
import pty
import select
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
INTERVAL = "1"


def cpu_seconds(pid):
    """User and system time of a process in s, with that of threads that ended."""
    # The CPU clock of a process, as clock_getcpuclockid(3) makes it.
    return time.clock_gettime(~pid << 3 | 2)


def sleepers(number):
    """A process with `number` children that sleep until their stdin closes."""
    # A background command has /dev/null as its stdin, unless another descriptor is given.
    script = f"exec 3<&0; i=0; while [ $i -lt {number} ]; do cat <&3 >/dev/null & i=$((i + 1)); done; echo ready; wait"
    parent = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    parent.stdout.readline()
    return parent


def by_lines(arguments, seconds):
    """CPU time, elapsed time and number of reports of a command that prints a line for each."""
    command = subprocess.Popen([TOLLFREE, "--json", *arguments, "-I", INTERVAL], stdout=subprocess.PIPE)
    return until(command, seconds, lambda: bool(command.stdout.readline()))


def on_terminal(arguments, seconds):
    """The same of a command that draws on a terminal."""
    ours, theirs = pty.openpty()
    command = subprocess.Popen([TOLLFREE, *arguments, "-I", INTERVAL], stdin=theirs, stdout=theirs)
    os.close(theirs)

    def page():
        select.select([ours], [], [], 10)
        # A page ends with this sequence.
        return os.read(ours, 1 << 16).count(b"\x1b[J")

    try:
        return until(command, seconds, page)
    finally:
        os.close(ours)


def by_scrapes(arguments, seconds):
    """The same of an exporter that is scraped once a second."""
    command = subprocess.Popen([TOLLFREE, *arguments, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    url = command.stdout.readline().split()[-1]

    def scrape():
        time.sleep(1)
        with urllib.request.urlopen(url) as answer:
            return b"tollfree_machine_page_faults_total" in answer.read()

    return until(command, seconds, scrape)


def until(command, seconds, report):
    """Takes reports of a command for this time, and ends it."""
    try:
        begun = time.monotonic()
        reports = 0
        while time.monotonic() - begun < seconds:
            reports += report()
        return cpu_seconds(command.pid), time.monotonic() - begun, reports
    finally:
        command.kill()
        command.wait()


# Name, how it is measured, arguments, goal.
COMMANDS = [
    ("stat", by_lines, ["stat", "-a"], 0.01),
    ("top", by_lines, ["top"], 0.02),
    ("top on a terminal", on_terminal, ["top"], 0.02),
    ("exporter", by_scrapes, ["exporter"], 0.02),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2000, help="processes beside it (default 2,000)")
    parser.add_argument("--for", dest="seconds", type=float, default=60, help="seconds for each command (default 60)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these commands")
    options = parser.parse_args()
    parent = sleepers(options.processes)
    status = 0
    try:
        visible = sum(name.isdigit() for name in os.listdir("/proc"))
        if visible < options.processes:
            print(f"only {visible} processes are running")
            return 3
        for name, measure, arguments, goal in COMMANDS:
            if options.names and name not in options.names:
                continue
            spent, elapsed, reports = measure(arguments, options.seconds)
            share = spent / elapsed
            status |= share >= goal
            verdict = "met    " if share < goal else "NOT MET"
            each = spent * 1e3 / max(reports, 1)
            print(f"{verdict}  {name}, once a second, {visible} processes: {share:.3%} of a CPU, "
                  f"{each:.2f} ms a report, {reports} reports (goal: below {goal:.0%})", flush=True)
    finally:
        parent.stdin.close()
        parent.wait()
    return status


if __name__ == "__main__":
    sys.exit(main())
