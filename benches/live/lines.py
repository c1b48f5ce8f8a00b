# SPDX-License-Identifier: MIT OR Apache-2.0
"""The progress of a job that chase.c or job.py describe: lines.py ready|measure LOG [LINES].

ready    succeeds when the job has begun
measure  waits for LINES lines, and prints the job's CPU time per line
"""
import sys
import time

from load import cpu_seconds


def pid(log):
    """The process id of the job; None before it begins, and of one that has ended."""
    with open(log, "rb") as file:
        line = file.readline()
    try:
        cpu_seconds(int(line))
    except (OSError, ValueError):
        return None
    return int(line)


def progress(file, lines):
    """Waits for this number of lines; returns the number that came."""
    got = 0
    while got < lines:
        time.sleep(0.0005)
        got += file.read().count(b"\n")
    return got


def measure(log, lines):
    """The job's CPU time per line."""
    job = pid(log)
    with open(log, "rb") as file:
        file.seek(0, 2)
        progress(file, 1)
        before = cpu_seconds(job)
        got = progress(file, lines)
    return (cpu_seconds(job) - before) / got


def main():
    action, log = sys.argv[1:3]
    if action == "ready":
        return 0 if pid(log) else 1
    print(f"{measure(log, int(sys.argv[3])) * 1e6:.4f} us per unit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
