#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the slow-down of programs in the simulator: CPU time of `tollfree record --source sim`
divided by that of the program alone, for real programs and a pointer chase. Prints a table, and
fails unless the median is at most 10 and none above 20.

    benches/sim/run.py [--tollfree PATH] [--repeat N]
"""

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def cpu_seconds(command, directory):
    """User and system time of a command that must succeed."""
    # grep stops at the first match if its output is /dev/null.
    with open(os.devnull, "rb") as nothing, open(os.path.join(directory, "out"), "wb") as sink:
        process = subprocess.Popen(
            command, stdin=nothing, stdout=sink, stderr=subprocess.PIPE, cwd=directory
        )
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed ({status}): {errors.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


def make_inputs(directory):
    """Inputs that take each program some seconds, always the same."""
    text = os.path.join(directory, "text")
    with open(text, "wb") as out:
        number = 1
        while out.tell() < 8 << 20:
            number = number * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            out.write(b"%x the quick brown fox %d\n" % (number >> 40, number >> 60))
    # grep is quick: it reads the text forty times.
    with open(os.path.join(directory, "long"), "wb") as out:
        for _ in range(40):
            with open(text, "rb") as part:
                shutil.copyfileobj(part, out)
    database = sqlite3.connect(os.path.join(directory, "db"))
    database.execute("create table t(a integer primary key, b text)")
    rows = ((i, "%050d" % (i * 2654435761 % 2**32)) for i in range(400_000))
    database.executemany("insert into t values(?, ?)", rows)
    database.execute("create index i on t(b)")
    database.commit()
    with open(os.path.join(directory, "words.py"), "w") as out:
        out.write(
            "d = {i * 7919 % 1000003: str(i) for i in range(1000000)}\n"
            "print(sum(len(d[k]) for _ in range(3) for k in sorted(d)))\n"
        )
    source = os.path.join(ROOT, "crates/tollfree/tests/data/sim/walk.c")
    subprocess.run(["cc", "-O2", "-o", os.path.join(directory, "walk"), source], check=True)


QUERY = """pragma cache_size=-200000;
select count(*), sum(length(x.b)) from t x join t y on y.b = x.b where x.a % 3 = 0;
select count(*), sum(length(x.b)) from t x join t y on y.b = x.b where x.a % 3 = 1;
select count(*), sum(length(x.b)) from t x join t y on y.b = x.b where x.a % 3 = 2;
"""

PROGRAMS = {
    "xz": ["xz", "-6", "-k", "-c", "text"],
    "sqlite3": ["sqlite3", "db", QUERY],
    "grep": ["grep", "-c", "-E", "f[0-9]+0 the .*[357]$", "long"],
    "python3": [sys.executable, "words.py"],
    "chase": ["walk", "chase", "512", "20000000"],
    "gather": ["walk", "gather", "512", "100000000"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tollfree", default=os.path.join(ROOT, "target/release/tollfree"))
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    slow_downs = []
    with tempfile.TemporaryDirectory() as directory:
        make_inputs(directory)
        record = [arguments.tollfree, "record", "--source", "sim", "--force", "-o", "p", "--"]
        print(f"{'program':10} {'alone':>9} {'simulated':>10} {'slow-down':>10}")
        for name, command in PROGRAMS.items():
            program = shutil.which(command[0], path=os.environ["PATH"] + ":" + directory)
            if not program:
                print(f"{name:10} is not installed")
                continue
            command = [program, *command[1:]]
            pairs = [
                (cpu_seconds(command, directory), cpu_seconds(record + command, directory))
                for _ in range(arguments.repeat)
            ]
            alone = min(pair[0] for pair in pairs)
            simulated = min(pair[1] for pair in pairs)
            slow_downs.append(simulated / alone)
            print(f"{name:10} {alone:8.2f}s {simulated:9.2f}s {simulated / alone:9.1f}x", flush=True)
    median = statistics.median(slow_downs)
    print(f"median {median:.1f}x (goal: 10), worst {max(slow_downs):.1f}x (goal: 20)")
    return 0 if median <= 10 and max(slow_downs) <= 20 else 1


if __name__ == "__main__":
    sys.exit(main())
