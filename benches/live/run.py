#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the live measurement of running programs with their comparison by restarts:

    benches/live/run.py [--within TIME] [PROGRAM]...

`tollfree tune --pid` alternates the page sizes of the running program, `tollfree compare` starts it anew for each
variant; both compare CPU time per unit of work, without the start. A program that starts has 4 KiB pages as the kernel
happens to allocate them, so its comparison is that of `as it was`: the windows before the first change. For redis, the
99th percentile of the latency during the alternation is compared with that before. Goals: the interval of `as it was`
holds the median of the comparison, the memory is restored, and the percentile rises by less than 5 %.
Status: 0 all goals met, 1 one not met, 3 nothing could be measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollfree"
PORT = 17379
GOAL = 0.05


def python():
    """The interpreter with numpy, made by benches/all.sh; else this one."""
    made = CACHE / "bench" / "venv" / "bin" / "python"
    return os.environ.get("PYTHON") or str(made if made.exists() else sys.executable)


METRIC = ["--metric", "(?<time>[0-9.]+) us per unit"]


def job(kind, lines):
    """A program with a line for each round of its work. A run of the comparison measures this many lines of it."""
    command = ["./chase", "256"] if kind == "chase" else [python(), str(HERE / "job.py"), kind]
    progress = f"{python()} {HERE / 'lines.py'}"
    return {
        "live": [*command, "log"],
        "options": ["--count-lines", "log"],
        "restart": ["--ready", f"{progress} ready log", "--workload", f"{progress} measure log {lines}",
                    *METRIC, "--", *command, "log"],
        "environment": {"NUMPY_MADVISE_HUGEPAGE": "0", "PYTHONHASHSEED": "0"},
    }


def server(kind, command, options):
    """A server under the load of load.py."""
    load = f"{python()} {HERE / 'load.py'} {kind} {PORT}"
    return {
        "live": command,
        "load": load,
        "options": options,
        "restart": ["--ready", f"{load} fill", "--workload", f"{load} drive 40000",
                    *METRIC, "--", *command],
        "environment": {},
    }


def programs():
    redis = ["redis-server", "--port", str(PORT), "--save", "", "--disable-thp", "no", "--daemonize", "no"]
    count = f"redis-cli -p {PORT} info stats | sed -n 's/^total_commands_processed:\\([0-9]*\\).*/\\1/p'"
    return {
        "chase": job("chase", 150),
        "numpy-gather": job("gather", 150),
        "python-dictionary": job("dictionary", 150),
        "sqlite": job("sqlite", 150),
        "redis": server("redis", redis, ["--metric-command", count]),
        "memcached": server("memcached", ["memcached", "-u", "nobody", "-m", "600", "-t", "1", "-p", str(PORT)], []),
    }


def tollfree(arguments, place):
    done = subprocess.run([TOLLFREE, "--json", *arguments], cwd=place, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def huge(pid):
    """The memory in huge pages of each mapping, and the flags of each."""
    lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    return [line for line in lines if line.startswith(("AnonHugePages:", "VmFlags:"))]


def shell(line, **more):
    return subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True, **more).stdout


def live(name, program, within, place):
    """Alternates the running program. Returns the answer, whether it was restored, and the rise of the latency."""
    running = subprocess.Popen(program["live"], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    load = rise = None
    try:
        time.sleep(5)
        if "load" in program:
            shell(program["load"] + " fill")
            load = subprocess.Popen(["sh", "-c", "exec " + program["load"] + " forever"], stdout=subprocess.DEVNULL)
            time.sleep(2)
        usual = float(shell(program["load"] + " probe 20")) if name == "redis" else None
        before = huge(running.pid)
        tune = ["tune", "--pid", str(running.pid), "--within", within, "--force", "-o", "out", *program["options"]]
        if usual:
            probe = subprocess.Popen(["sh", "-c", f"exec {program['load']} probe 60"], stdout=subprocess.PIPE, text=True)
        answer = tollfree(tune, place)
        if usual:
            rise = float(probe.communicate()[0]) / usual - 1
        return answer, huge(running.pid) == before, rise
    finally:
        for child in filter(None, (load, running)):
            child.kill()
            child.wait()


def restart(program, within, place):
    (place / "none.txt").write_text("")
    # Only the steady state is compared, which warm memory at the start does not change.
    return tollfree(["compare", "--cold", "--plan", "none.txt", "--within", within, *program["restart"]], place)


def ratio(interval):
    return f"{interval['median']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})" if interval else "-"


def one(name, program, within, place):
    """Prints a row; returns whether the goals are met."""
    answer, restored, rise = live(name, program, within, place)
    compared = restart(program, within, place)
    by_restart = compared["speedup_all"]
    alternated = answer["live"]
    found = alternated["speedup_from_before"]
    covers = bool(found and by_restart and found["low"] <= by_restart["median"] <= found["high"])
    good = covers and restored and (rise is None or rise < GOAL)
    print(f"{'met    ' if good else 'NOT MET'}  {name:18} {ratio(answer['speedup_all']):24} {ratio(found):24} {ratio(by_restart):24} "
          f"{'yes' if covers else 'no':7} {'yes' if restored else 'NO':9} {alternated['regions'] * 2:5} MiB  "
          f"{alternated['longest_pause_ns'] / 1e6:6.2f} ms  {alternated['pauses_share']:6.2%}  "
          f"{f'{rise:+.1%}' if rise is not None else '-'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", default="3m", help="limit of each of the two (default 3m)")
    parser.add_argument("program", nargs="*", help="default: all")
    options = parser.parse_args()
    known = programs()
    wanted = options.program or list(known)
    good = measured = 0
    print(f"         {'program':18} {'alternating':24} {'as it was':24} {'by restarts':24} {'covered':7} {'restored':9} "
          f"{'memory':>9}  {'pause':>9}  {'share':>6}  p99")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        subprocess.run(["cc", "-O2", "-o", str(place / "chase"), str(HERE / "chase.c")], check=True)
        place.chmod(0o755)
        for name in wanted:
            program = known[name]
            if not program["live"][0].startswith("./") and not shutil.which(program["live"][0]):
                print(f"skipped  {name:18} {program['live'][0]} is not installed")
                continue
            os.environ.update(program["environment"])
            try:
                good += one(name, program, options.within, place)
                measured += 1
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"NOT MET  {name:18} {error}", flush=True)
    if not measured:
        return 3
    return 0 if good == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
