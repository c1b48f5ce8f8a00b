#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs `tollfree tune` over the real programs of cells.toml and prints and checks the results.

    benches/real/run.py [--within 4m] [--fresh] [--list] [--markdown FILE] [CELL...]

A cell that is done is kept in the cache and not run again, until its definition changes or --fresh is given.
Status: 0 all goals met, 1 a goal not met, 2 nothing could be measured.
"""

import argparse
import datetime
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import inputs  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollfree"
RESULTS = CACHE / "bench" / "real"
INPUTS = CACHE / "bench" / "inputs"


def python():
    """The interpreter with numpy, made by benches/all.sh; else this one."""
    made = CACHE / "bench" / "venv" / "bin" / "python"
    return str(made if made.exists() else sys.executable)


def places():
    return {"in": str(INPUTS), "programs": str(HERE / "programs"), "python": python()}


def fill(text):
    for name, value in places().items():
        text = text.replace("{" + name + "}", value)
    return text


def load_cells():
    with open(HERE / "cells.toml", "rb") as file:
        cells = tomllib.load(file)["cell"]
    names = [cell["name"] for cell in cells]
    assert len(set(names)) == len(names), "two cells of one name"
    return cells


def is_there(need):
    """A command, or with python:MODULE a module of the interpreter; root: the right to change settings."""
    if need == "root":
        return os.geteuid() == 0
    if need.startswith("python:"):
        load = [python(), "-c", "import " + need.removeprefix("python:")]
        return subprocess.run(load, stderr=subprocess.DEVNULL).returncode == 0
    return bool(shutil.which(need))


def missing(cell):
    return [need for need in map(fill, cell.get("needs", [])) if not is_there(need)]


def first_line(path, key=""):
    """The first line of a file that begins with the key, without it and the colon; "" if there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix(key).lstrip(" \t:").rstrip() for line in lines if line.startswith(key)), "")


def machine():
    """What the figures depend on: CPU, memory, kernel, THP mode."""
    kib = first_line("/proc/meminfo", "MemTotal").split() or ["0"]
    return {"cpu": first_line("/proc/cpuinfo", "model name") or os.uname().machine, "cpus": len(os.sched_getaffinity(0)),
            "memory_gib": round(int(kib[0]) / 2**20, 1), "kernel": os.uname().release,
            "thp": chosen_mode(first_line("/sys/kernel/mm/transparent_hugepage/enabled"))}


def chosen_mode(text):
    """`madvise` of `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0] or "not there"


def stdin_file(cell):
    """The file that a cell reads on its stdin."""
    if "stdin" not in cell:
        return Path(os.devnull)
    path = RESULTS / (cell["name"] + ".stdin")
    path.write_text(cell["stdin"])
    return path


def limit(cell, options):
    """The time limit of a cell's tune: its own, where a single run takes long."""
    return cell.get("within", options.within)


def fingerprint(cell, within):
    return hashlib.sha256(json.dumps([cell, within], sort_keys=True).encode()).hexdigest()[:16]


def measure(cell, within, tollfree):
    """What `tollfree tune --json` says of one cell, with what a reader needs to repeat it."""
    for name in cell.get("inputs", []):
        inputs.make(name, INPUTS)
    directory = RESULTS / (cell["name"] + ".out")
    command = [tollfree, "tune", "--json", "--within", within, "--force", "--output", str(directory),
               *map(fill, cell.get("options", [])), "--", *map(fill, cell["command"])]
    began = datetime.datetime.now()
    with open(stdin_file(cell)) as stdin:
        run = subprocess.run(command, env={**os.environ, **cell.get("env", {})}, stdin=stdin,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    took = (datetime.datetime.now() - began).total_seconds()
    try:
        said = json.loads(run.stdout)
    except ValueError:
        said = None
    return {"cell": cell["name"], "fingerprint": fingerprint(cell, within), "command": command, "seconds": took,
            "status": run.returncode, "said": said, "error": None if said else run.stderr[-2000:],
            "within": within, "machine": machine()}


def result_of(cell, options):
    """The kept result of a cell, or a new one; written as a whole or not at all."""
    path = RESULTS / (cell["name"] + ".json")
    if path.exists() and not options.fresh:
        kept = json.loads(path.read_text())
        if kept["fingerprint"] == fingerprint(cell, limit(cell, options)) and kept["said"]:
            return kept
    if options.kept:
        return None
    within = limit(cell, options)
    print(f"{cell['name']}: tuning (at most {within})", file=sys.stderr, flush=True)
    result = measure(cell, within, options.tollfree)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1))
    part.rename(path)
    return result


def failure(cell, result):
    """Why a cell's answer is none: tollfree failed, or the program did in each run; None if neither did."""
    if not result["said"]:
        return f"failed with status {result['status']}: {''.join(result['error'].strip().splitlines()[-1:])}"
    status, expected = result["said"].get("status"), cell.get("status", 0)
    if status not in (None, expected):
        return f"failed: the program ends with status {status} in each run, not {expected}"
    return None


def provenance(results):
    """A line for each machine and limit that the results come from."""
    lines = {}
    for result in results:
        here, within = result.get("machine"), result.get("within")
        text = "an unknown machine" if not here else (
            f"{here['cpu']}, {here['cpus']} CPUs, {here['memory_gib']} GiB, Linux {here['kernel']}, "
            f"THP {here['thp']}, tune --within {within}")
        lines.setdefault(text, []).append(result["cell"])
    if len(lines) == 1:
        return [f"Measured on: {text}." for text in lines]
    return [f"Measured on: {text}: {', '.join(cells)}." for text, cells in lines.items()]


def interval(value):
    if not value:
        return "-"
    return f"{value['median']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def holds(prediction, measured):
    return prediction["low"] <= measured["median"] <= prediction["high"]


def row(result):
    said = result["said"]
    predicted, measured = said.get("predicted_speedup"), said.get("speedup")
    return [result["cell"], interval(measured), interval(said.get("speedup_all")), interval(predicted),
            ("yes" if holds(predicted, measured) else "NO") if predicted and measured else "-",
            said.get("verdict") or "-", said.get("advice") or "-", f"{result['seconds']:.0f}"]


HEAD = ["cell", "speedup (plan)", "speedup (all huge)", "predicted, 80 %", "holds", "verdict", "advice", "s"]
CHANGES = ["cell", "change", "speedup", "faults, as it is", "faults"]


def table(head, rows):
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |" for line in [head, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def changes(results):
    """A row for each measured change that is neither the plan nor everything huge."""
    known = {"none", "never", "plan", "plan-only", "all"}
    rows = []
    for result in results:
        variants = (result["said"].get("comparison") or {}).get("variants", [])
        before = next((v["median"] for v in variants if v["name"] == "none" and v.get("median")), None)
        rows += [[result["cell"], v["name"], interval(v["speedup"]),
                  f"{before['minor_faults']:,.0f}", f"{v['median']['minor_faults']:,.0f}"]
                 for v in variants if before and v["name"] not in known and v.get("speedup") and v.get("median")]
    return rows


def effect(said):
    """The larger of what the plan and everything huge did, as a distance from 1."""
    return max((abs(said[key]["median"] - 1) for key in ("speedup", "speedup_all") if said.get(key)), default=0.0)


def ran_out(said):
    return bool(said.get("time_limit_reached"))


def confidently_wrong(predicted, measured):
    return (predicted["low"] > 1 and measured["high"] < 1) or (predicted["high"] < 1 and measured["low"] > 1)


def goals(cells, results):
    """(goal, met, how far) for each of the project's goals."""
    said = {result["cell"]: result["said"] for result in results}
    full = {name: s for name, s in said.items() if s.get("speedup") and s.get("predicted_speedup")}
    both = {name: s for name, s in said.items() if s.get("speedup") and s.get("speedup_all")}
    gaining = [name for name, s in said.items() if s.get("speedup_all") and s["speedup_all"]["median"] >= 1.10]
    worse = [name for name, s in both.items() if s["speedup"]["high"] < s["speedup_all"]["low"]]
    inside = [name for name, s in full.items() if holds(s["predicted_speedup"], s["speedup"])]
    widths = [s["predicted_speedup"]["high"] - s["predicted_speedup"]["low"] for s in full.values()]
    wrong = [name for name, s in full.items() if confidently_wrong(s["predicted_speedup"], s["speedup"])]
    unclear = [name for name, s in said.items()
               if s.get("verdict") == "cannot-tell" and effect(s) >= 0.02 and not ran_out(s)]
    idle = [cell["name"] for cell in cells if cell.get("expect") == "do-nothing" and cell["name"] in said]
    told = [name for name in idle if said[name].get("advice") == "do-nothing"]
    share = len(inside) / len(full) if full else 0.0
    width = statistics.median(widths) if widths else float("inf")
    return [
        ("at least 20 cells", len(said) >= 20, f"{len(said)}"),
        ("several gain at least 10 % with all huge", len(gaining) >= 3, f"{len(gaining)}: {', '.join(gaining)}"),
        ("the plan is not worse than all within noise", bool(both) and not worse,
         f"{len(both) - len(worse)} of {len(both)}" + (f"; worse: {', '.join(worse)}" if worse else "")),
        ("the 80 % interval holds the measured in at least 75 %", share >= 0.75, f"{len(inside)} of {len(full)} ({share:.0%})"),
        ("median width of the interval at most 0.15", width <= 0.15, f"{width:.3f}"),
        ("no confident wrong sign", bool(full) and not wrong, ", ".join(wrong) or "none"),
        ("cannot tell only under 2 % or out of time", not unclear, ", ".join(unclear) or "none otherwise"),
        ("what gains nothing is told to do nothing", bool(idle) and told == idle, f"{len(told)} of {len(idle)}"),
    ]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", default="4m", help="time limit of each tune (default 4m)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    parser.add_argument("--kept", action="store_true", help="only show what is kept")
    parser.add_argument("--list", action="store_true", help="name the cells and what is missing for them")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--tollfree", default=os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree"))
    parser.add_argument("cells", nargs="*", metavar="CELL")
    return parser.parse_args()


def chosen(options):
    cells = load_cells()
    unknown = set(options.cells) - {cell["name"] for cell in cells}
    if unknown:
        sys.exit(f"no such cell: {', '.join(sorted(unknown))} (see --list)")
    return [cell for cell in cells if not options.cells or cell["name"] in options.cells]


def main():
    options = parse()
    cells = chosen(options)
    if options.list:
        for cell in cells:
            print(cell["name"], *(f"(not here: {need})" for need in missing(cell)))
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    INPUTS.mkdir(parents=True, exist_ok=True)
    here = [cell for cell in cells if not missing(cell)]
    results = [result for cell in here if (result := result_of(cell, options))]
    by_name = {cell["name"]: cell for cell in cells}
    failed = {r["cell"]: why for r in results if (why := failure(by_name[r["cell"]], r))}
    good = [result for result in results if result["cell"] not in failed]
    if not good:
        print("nothing was measured", file=sys.stderr)
    text = table(HEAD, [row(result) for result in good])
    more = changes(good)
    measured = "Other changes, in the same comparisons:\n\n" + table(CHANGES, more) if more else ""
    notes = [f"{cell['name']}: not here: {', '.join(missing(cell))}" for cell in cells if missing(cell)]
    notes += [f"{name}: {why}" for name, why in failed.items()]
    met = goals(cells, good)
    lines = [f"{'met    ' if ok else 'NOT MET'}  {goal}: {how}" for goal, ok, how in met]
    report = "\n\n".join(filter(None, [text, measured, "\n".join(provenance(good)), "\n".join(notes), "\n".join(lines)]))
    print(report)
    if options.markdown:
        options.markdown.write_text(f"Made by `benches/real/run.py --within {options.within}`.\n\n{report}\n")
    if not good:
        return 2
    return 0 if all(ok for _, ok, _ in met) and len(good) == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
