#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the lab's scenarios of econ and compares the results with its goals and with CBMM's published figures.

    benches/econ/run.py [--short] [--runs N] [--from DIRECTORY] [--markdown FILE] [SCENARIO...]

Each scenario is one call of `toll-lab run`; earlier measurements of the same kernels are reused. With --from nothing is
measured: DIRECTORY has SCENARIO.json as written by `toll-lab run --output`, and missing scenarios are left out.
--markdown writes the report to FILE, and the figure of the kinds of faults beside it. Figures are counts in an emulated
machine, no times of real hardware.
Status: 0 all goals met, 1 a goal not met, 2 nothing could be measured.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LAB = ROOT / "target" / "release" / "toll-lab"
OURS = "econ"
STOCK = ("never", "always", "madvise")


class Results:
    """The results of one scenario."""

    def __init__(self, document):
        self.document = document
        self.entries = {(it["variant"], it["policy"], it["section"]): it for it in document["results"]}

    def entry(self, policy, section="main", variant=None):
        """The entry of a policy, for the named kernel or for the only one that has it."""
        for (its_variant, its_policy, its_section), entry in self.entries.items():
            if (its_policy, its_section) == (policy, section) and variant in (None, its_variant):
                return entry
        raise KeyError(f"{policy}, {section}")

    def get(self, counter, policy, section="main", variant=None):
        return self.entry(policy, section, variant)["counters"].get(counter, {"median": 0})["median"]

    def runs(self, counter, policy, section="main", variant=None):
        return [run.get(counter, 0) for run in self.entry(policy, section, variant)["runs"]]

    def sections(self):
        return list(dict.fromkeys(section for _, _, section in self.entries))

    def conditions(self):
        environment = self.document["environment"]
        machine = environment["machine"]
        kernels = ", ".join(f"{it['variant']} {it['release']}" for it in environment["kernels"])
        runs = min(entry["samples"] for entry in self.document["results"])
        return (
            f"{self.document['form']} form, {runs} run{'s' * (runs > 1)}, {environment['date']}: {kernels}; "
            f"{machine['cpus']} CPU{'s' * (machine['cpus'] > 1)}, {machine['memory_mib']} MiB; QEMU "
            f"{environment['qemu']}; preset {self.document['preset']}; first touch: {environment['first_touch']}."
        )


def figure(value):
    return f"{value:,.0f}"


def geomean(values):
    return math.exp(statistics.mean(map(math.log, values)))


class Goal:
    """A line of the first table."""

    def __init__(self, measure, published, goal, got, is_met):
        self.measure, self.published, self.goal, self.got, self.is_met = measure, published, goal, got, is_met

    def row(self):
        return f"| {self.measure} | {self.published} | {self.goal} | {self.got} | {'met' if self.is_met else '**not met**'} |"


# --- each scenario: its goals, and its tables ---


def upper(values):
    """The upper end of the 95 % interval of a mean; of one run, that run's."""
    if len(values) < 2:
        return values[0]
    return statistics.mean(values) + 1.96 * statistics.stdev(values) / math.sqrt(len(values))


def tail_goals(results):
    ours, never = results.get("fault_instr_tail", OURS), upper(results.runs("fault_instr_tail", "never"))
    yield Goal(
        "k-th longest fault, instructions",
        "2-3 orders below Linux",
        f"<= {figure(never)} (never)",
        figure(ours),
        ours <= never,
    )
    defrag = results.get("fault_instr_tail", "always-defrag")
    yield Goal("always-defrag's by ours", "100-1,000", ">= 100", f"{defrag / ours:,.1f}", defrag / ours >= 100)


def tail_tables(results):
    yield "k is 10^-4 of the faults of `never`; a clearing is a fault that made a huge page."
    yield ""
    yield "| policy | faults | k-th longest | longest | all faults | clearings | pages reclaimed | pages moved |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    names = ["page_faults", "fault_instr_tail", "fault_instr_max", "fault_instr_total", "vmstat_thp_fault_alloc"]
    names += ["pages_reclaimed", "pages_migrated"]
    for policy in (*STOCK, "always-defrag", OURS):
        cells = " | ".join(figure(results.get(name, policy)) for name in names)
        yield f"| {policy} | {cells} |"
    yield ""


def against_defrag(results, workload):
    section = f"{workload['state']}-{workload['name']}"
    return results.get("modelled_ns", OURS, section) / results.get("modelled_ns", "always-defrag", section)


def throughput_goals(results):
    workloads = results.document["workloads"]
    mean = geomean([it["relative_cost"]["median"] for it in workloads])
    yield Goal("work by the best stock policy, geometric mean", "0.644 tuned, 0.693", "<= 1.00", f"{mean:.3f}", mean <= 1)
    worst = max(workloads, key=lambda it: it["relative_cost"]["high"])
    high = worst["relative_cost"]["high"]
    name = f"{high:.3f} ({worst['name']}, {worst['state']})"
    yield Goal("the worst of them, upper bound", "1.36 (mcf)", "<= 1.02", name, high <= 1.02)
    pieces = [against_defrag(results, it) for it in workloads if it["state"] == "pieces"]
    if pieces:
        mean = geomean(pieces)
        yield Goal("in pieces, by always-defrag, geometric mean", "0.65", "<= 0.64", f"{mean:.3f}", mean <= 0.64)


def throughput_tables(results):
    yield "Instructions and modelled walks of a workload, by those under the best stock policy for it, and under always-defrag;"
    yield "how long a run is, in million instructions; and huge pages made at faults."
    yield ""
    yield "| workload | memory | best stock | by the best | by always-defrag | run | huge: always | econ |"
    yield "|---|---|---|--:|--:|--:|--:|--:|"
    for it in results.document["workloads"]:
        section = f"{it['state']}-{it['name']}"
        cost = it["relative_cost"]
        interval = "" if cost["low"] == cost["high"] else f" [{cost['low']:.3f}, {cost['high']:.3f}]"
        length = sum(results.get(f"instructions_{side}", OURS, section) for side in ("user", "kernel"))
        huge = [results.get("vmstat_thp_fault_alloc", policy, section) for policy in ("always", OURS)]
        cells = [f"{cost['median']:.3f}{interval}", f"{against_defrag(results, it):.3f}", figure(length / 1e6)]
        yield f"| {it['name']} | {it['state']} | {it['best_stock']} | " + " | ".join(cells + [figure(n) for n in huge]) + " |"
    yield ""
    yield from fault_rows(results)


def fault_rows(results):
    """The same boots: tails of faults, and whether what econ cleared was worth it."""
    yield "Page faults of the same runs, in instructions: the k-th longest, and the longest. Net saving: work under `never` less that"
    yield "under econ, modelled ms, in which the clearing of its huge pages is counted."
    yield ""
    yield "| workload | memory | k-th: never | always-defrag | econ | longest: never | always-defrag | econ | cleared by econ | net saving |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    policies = ("never", "always-defrag", OURS)
    for it in results.document["workloads"]:
        section = f"{it['state']}-{it['name']}"
        cells = [results.get(name, policy, section) for name in ("fault_instr_tail", "fault_instr_max") for policy in policies]
        cells.append(results.get("vmstat_thp_fault_alloc", OURS, section))
        saved = (results.get("modelled_ns", "never", section) - results.get("modelled_ns", OURS, section)) / 1e6
        yield f"| {it['name']} | {it['state']} | " + " | ".join(map(figure, cells)) + f" | {saved:,.1f} |"
    yield ""


OTHERS = {
    "right": ("of another seed and length, the same size", "none"),
    "size": ("of half the size", "none"),
    "wrong": ("of another program, under this one's name", "none"),
    "version": ("of the version before, which had no table before the elements", "none-version"),
}


def other_cost(results, section):
    base = OTHERS[section][1]
    return results.get("modelled_ns", OURS, section) / results.get("modelled_ns", OURS, base)


def other_goals(results):
    for section, (words, _) in OTHERS.items():
        cost = other_cost(results, section)
        yield Goal(f"profile {words}: work by that without a profile", "-", "<= 1.02", f"{cost:.3f}", cost <= 1.02)


def other_tables(results):
    yield "| profile | work by that without one | huge pages | without a profile |"
    yield "|---|--:|--:|--:|"
    for section, (words, base) in OTHERS.items():
        huge = [results.get("vmstat_thp_fault_alloc", OURS, it) for it in (section, base)]
        yield f"| {words} | {other_cost(results, section):.3f} | {figure(huge[0])} | {figure(huge[1])} |"
    yield ""


def hot_goals(results):
    walks = {policy: results.get("walk_steps", policy) for policy in ("never", "always", OURS)}
    gain = (walks["never"] - walks[OURS]) / (walks["never"] - walks["always"])
    share = results.get("vmstat_thp_fault_alloc", OURS) / max(results.get("vmstat_thp_fault_alloc", "always"), 1)
    published = "75 % with 4 % (PCC, hardware)"
    yield Goal("walks saved, by those that huge pages everywhere save", published, ">= 90 %", f"{gain:.1%}", gain >= 0.9)
    yield Goal("memory that is huge for that", published, "<= 10 %", f"{share:.1%}", share <= 0.1)


def hot_tables(results):
    yield "| policy | walks | table entries read | huge pages | work |"
    yield "|---|--:|--:|--:|--:|"
    for policy in ("never", "always", OURS):
        names = ("walks", "walk_steps", "vmstat_thp_fault_alloc", "modelled_ns")
        yield f"| {policy} | " + " | ".join(figure(results.get(name, policy)) for name in names) + " |"
    yield ""


FAULT_PATHS = [
    ("off", "off", "4 KiB pages, econ off"),
    ("on", "off", "4 KiB pages, econ on"),
    ("huge-off", "huge-off", "huge pages, econ off"),
    ("huge-on", "huge-off", "huge pages, econ on"),
]


def path_goals(results):
    for policy, base, words in FAULT_PATHS:
        each = results.get("fault_instr_total", policy, variant="tollfree") / results.get("page_faults", policy, variant="tollfree")
        stock = results.get("fault_instr_total", base, variant="vanilla") / results.get("page_faults", base, variant="vanilla")
        change = each / stock - 1
        yield Goal(f"a fault without a profile, {words}: instructions beside stock", "-", "<= +1 %", f"{change:+.2%}", change <= 0.01)


def path_tables(results):
    yield "| kernel and policy | faults | instructions of all | of one |"
    yield "|---|--:|--:|--:|"
    for (variant, policy, _), entry in results.entries.items():
        faults, total = (entry["counters"][name]["median"] for name in ("page_faults", "fault_instr_total"))
        yield f"| {variant}, {policy} | {figure(faults)} | {figure(total)} | {figure(total / faults)} |"
    yield ""


ROWS_FEW, ROWS_MANY = "rows-1", "rows-31000"


def fault_of(results, section):
    """Instructions of one page fault."""
    return results.get("fault_instr_total", OURS, section) / results.get("page_faults", OURS, section)


def rows_goals(results):
    few, many = fault_of(results, ROWS_FEW), fault_of(results, ROWS_MANY)
    got = f"{many / few - 1:+.2%}"
    yield Goal("a fault under a profile of 31,000 rows: instructions beside one row", "-", "<= +5 %", got, many <= 1.05 * few)


def rows_tables(results):
    yield "| profile | faults | instructions of all | of one |"
    yield "|---|--:|--:|--:|"
    for section in (ROWS_FEW, ROWS_MANY):
        faults, total = (results.get(name, OURS, section) for name in ("page_faults", "fault_instr_total"))
        yield f"| {section} | {figure(faults)} | {figure(total)} | {figure(total / faults)} |"
    yield ""


VICTIM = "sparse"
STATES = ("whole", "pieces")
VICTIM_COUNTS = ("instructions_user", "instructions_kernel", "page_faults")


def victim_of(results, state, neighbour):
    """What the virtual PMU counted of the program beside the neighbour, of the last run: both sections together."""
    sections = (f"{state}-{neighbour}", f"{state}-{neighbour}-again")
    entries = [results.entry(OURS, section)["processes"][VICTIM] for section in sections]
    return {name: sum(entry[name] for entry in entries) for name in VICTIM_COUNTS}


def hostile_goals(results):
    for state in STATES:
        plain, hostile = (victim_of(results, state, it) for it in ("plain", "hostile"))
        changes = {name: hostile[name] / plain[name] - 1 for name in VICTIM_COUNTS}
        worst = max(changes, key=lambda name: abs(changes[name]))
        got = f"{changes[worst]:+.2%} ({worst})"
        is_met = all(abs(hostile[name] - plain[name]) <= 0.02 * plain[name] for name in VICTIM_COUNTS)
        yield Goal(f"what a neighbour's claims change for a program, memory {state}", "-", "<= 2 %", got, is_met)


def hostile_tables(results):
    yield "| memory | neighbour | instructions, user | kernel | page faults |"
    yield "|---|---|--:|--:|--:|"
    for state in STATES:
        for neighbour in ("plain", "hostile"):
            counts = victim_of(results, state, neighbour)
            yield f"| {state} | {neighbour} | " + " | ".join(figure(counts[name]) for name in VICTIM_COUNTS) + " |"
    yield ""


def kinds_of(results, policy):
    """Kinds with their buckets: nanoseconds of the guest's clock, and how many faults."""
    kinds = {}
    for name, it in results.entry(policy)["counters"].items():
        if name.startswith("latency_") and it["median"]:
            kind, _, low = name.removeprefix("latency_").rpartition("_")
            kinds.setdefault(kind, []).append((int(low), it["median"]))
    return {kind: sorted(buckets) for kind, buckets in sorted(kinds.items())}


def kind_goals(results):
    kinds = kinds_of(results, OURS)
    bad = [kind for kind in kinds if kind in ("huge_compacted", "huge_reclaimed", "fell_back_compacted", "fell_back_reclaimed")]
    got = "none" if not bad else ", ".join(bad)
    yield Goal("kinds of faults that compacted or reclaimed for a block", "most of the tail", "none", got, not bad)


def kind_tables(results):
    yield "![](econ-fault-kinds.svg)"
    yield ""
    yield "A fault of a kind takes at least so long, in nanoseconds of the guest's clock, which counts instructions:"
    yield ""
    yield "| policy | kind | faults | median | longest |"
    yield "|---|---|--:|--:|--:|"
    for policy in ("never", "always-defrag", OURS):
        for kind, buckets in kinds_of(results, policy).items():
            total = sum(count for _, count in buckets)
            half = next(low for at, (low, _) in enumerate(buckets) if sum(n for _, n in buckets[: at + 1]) * 2 >= total)
            yield f"| {policy} | {kind} | {figure(total)} | {figure(half)} | {figure(buckets[-1][0])} |"
    yield ""


COLOURS = ["#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#2a9d8f", "#6c757d", "#e07a5f", "#3d405b", "#000000"]
PANEL, LEFT, TOP, HEIGHT, DECADES_X, DECADES_Y = 420, 60, 40, 240, (2, 8), 6


def picture(results):
    """The share of all faults of a policy that are of a kind and take longer: the talk's picture, a panel a policy."""
    policies = ("never", "always-defrag", OURS)
    kinds = sorted({kind for policy in policies for kind in kinds_of(results, policy)})
    colour = {kind: COLOURS[at % len(COLOURS)] for at, kind in enumerate(kinds)}
    width = LEFT + PANEL * len(policies)
    height = TOP + HEIGHT + 50 + 18 * ((len(kinds) + 4) // 5)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for at, policy in enumerate(policies):
        parts += panel(LEFT + at * PANEL, policy, kinds_of(results, policy), colour)
    for at, kind in enumerate(kinds):
        x, y = LEFT + at % 5 * 220, TOP + HEIGHT + 52 + at // 5 * 18
        parts.append(f'<rect x="{x}" y="{y - 9}" width="12" height="4" fill="{colour[kind]}"/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{kind}</text>')
    return "\n".join([*parts, "</svg>", ""])


def panel(left, policy, kinds, colour):
    first, last = DECADES_X
    inner = PANEL - 50

    def x(ns):
        return left + (min(max(math.log10(max(ns, 1)), first), last) - first) / (last - first) * inner

    def y(share):
        return TOP + min(-math.log10(max(share, 10**-DECADES_Y)), DECADES_Y) / DECADES_Y * HEIGHT

    yield f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{policy}</text>'
    for decade in range(first, last + 1):
        yield f'<line x1="{x(10**decade):.1f}" y1="{TOP}" x2="{x(10**decade):.1f}" y2="{TOP + HEIGHT}" stroke="#dddddd"/>'
        yield f'<text x="{x(10**decade):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">10^{decade}</text>'
    for decade in range(DECADES_Y + 1):
        at = y(10**-decade)
        yield f'<line x1="{left}" y1="{at:.1f}" x2="{left + inner}" y2="{at:.1f}" stroke="#dddddd"/>'
        yield f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">1e-{decade}</text>'
    yield f'<text x="{left + inner / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">longer than, ns of the guest\'s clock</text>'
    total = sum(count for buckets in kinds.values() for _, count in buckets)
    for kind, buckets in kinds.items():
        left_over = sum(count for _, count in buckets)
        points = []
        for low, count in buckets:
            points.append(f"{x(low):.1f},{y(left_over / total):.1f}")
            left_over -= count
        points.append(f"{x(buckets[-1][0] * 1.125):.1f},{y(0):.1f}")
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour[kind]}" stroke-width="1.5"/>'


SCENARIOS = {
    "fault-tail": (tail_goals, tail_tables),
    "econ-throughput": (throughput_goals, throughput_tables),
    "other-profiles": (other_goals, other_tables),
    "hot-regions": (hot_goals, hot_tables),
    "fault-path": (path_goals, path_tables),
    "many-rows": (rows_goals, rows_tables),
    "hostile-profile": (hostile_goals, hostile_tables),
    "fault-kinds": (kind_goals, kind_tables),
}


def call(scenario, short, runs):
    own = HERE / f"{scenario}.toml"
    command = [LAB, "run", own if own.exists() else scenario, "--json", "--resume"]
    command += ["--short"] * short + (["--runs", str(runs)] if runs else [])
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def kept(directory, scenario):
    path = directory / f"{scenario}.json"
    return json.loads(path.read_text()) if path.exists() else None


def report(found, missing):
    """The text, and whether all goals are met."""
    goals = {name: list(SCENARIOS[name][0](results)) for name, results in found.items()}
    lines = [
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->",
        "# econ, beside the stock kernel and CBMM",
        "",
        "Made by `benches/econ/run.py --markdown docs/results/econ.md`. Counts in an emulated machine; work is instructions and",
        "modelled walks as the preset weighs them, and no figure is a time of real hardware. Costs are those of hardware",
        "(`econ_default_costs` in `mm/econ/model.c`), frozen, the same for all. The profiled input is never the measured",
        "one. CBMM's figures are those that its authors published in 2022.",
        "",
        "| measure | CBMM 2022 | goal | here | |",
        "|---|---|---|--:|---|",
    ]
    lines += [goal.row() for of_one in goals.values() for goal in of_one]
    lines.append("")
    for name, results in found.items():
        lines += [f"## {name}", "", results.conditions(), "", *SCENARIOS[name][1](results)]
    if missing:
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    return "\n".join(lines), all(goal.is_met for of_one in goals.values() for goal in of_one)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each kernel and policy")
    parser.add_argument("--from", type=Path, metavar="DIRECTORY", dest="directory", help="take SCENARIO.json from there")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the report here as well")
    parser.add_argument("scenario", nargs="*", help="of these: " + ", ".join(SCENARIOS))
    args = parser.parse_args()
    names = args.scenario or list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"{unknown[0]}: no scenario of this benchmark")
    if args.directory is None and not LAB.exists():
        print(f"{LAB}: is not built: cargo build --release -p toll-lab", file=sys.stderr)
        return 2
    documents = {name: kept(args.directory, name) if args.directory else call(name, args.short, args.runs) for name in names}
    found = {name: Results(document) for name, document in documents.items() if document}
    missing = [name for name in names if name not in found]
    if not found:
        print(f"nothing was measured: {', '.join(missing)}", file=sys.stderr)
        return 2
    text, is_met = report(found, missing)
    print(text)
    if args.markdown:
        args.markdown.write_text(text)
        if "fault-kinds" in found:
            (args.markdown.parent / "econ-fault-kinds.svg").write_text(picture(found["fault-kinds"]))
    return 0 if is_met and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
