#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the lab's scenarios on vanilla and tollfree and compares the results with the goals of lazy unmap flush.

    benches/luf/run.py [--short] [--runs N] [--markdown FILE] [SCENARIO[:short]...]

Each scenario is one call of `toll-lab run`, both kernels in turn; earlier measurements of the same kernels are reused.
Figures are counts in an emulated machine, no times of real hardware: medians, or the mean of three and more runs where
CPUs run side by side. A goal is met, or not met, if all of the 90 % interval lies on that side.
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

# Models that exceed memory: a measure, and its required decrease (or allowed increase) as a share of vanilla's.
INFERENCE = [
    ("eligible", -0.99),
    ("all_irqs", 0.0),
    ("dtlb_load_misses_averted", 0.95),
    ("dtlb_store_misses_averted", 0.95),
    ("itlb_misses_averted", 0.95),
    ("instructions_kernel", 0.0),
    ("modelled_ns", -0.04),
    ("pages_reclaimed", 0.01),
    ("refaults", 0.01),
    ("major_faults", 0.01),
    ("drain_pages", None),
]
# Scenario and its goals; a goal may have a prefix of the names of the sections to which it applies (default: all).
SCENARIOS = {
    "inference-over-memory": INFERENCE,
    "inference-streams": INFERENCE,
    "inference-multitenant": [("eligible", -0.99), ("all_irqs", 0.0), ("pages_reclaimed", 0.01)],
    "inference-tiered": [("eligible", -0.99), ("all_irqs", 0.0)],
    # A kernel that finds more memory free compacts more: therefore for each page as well.
    "inference-compaction": [
        ("compaction", -0.90),
        ("compaction_of_page", -0.90),
        ("compaction_other", 0.0),
        ("all_irqs", 0.0),
    ],
    "loops-one": [("instructions_kernel", 0.01)],
    "loops-many": [("mean_instructions_kernel", 0.01)],
    "loops-pending": [("own_instructions_kernel", 0.03)],
    "alloc-latency": [
        ("alloc_instr_p9999", 0.05, "paced-"),
        # Not of large atomic ones: most fail, and one that succeeds takes more instructions than that.
        ("alloc_instr_total", 0.0, ("storm-kernel-", "storm-huge-", "storm-atomic-0")),
        ("alloc_failures", 0.0, "storm-atomic-"),
    ],
    # Those that find nothing flushed and reclaim for themselves; those that may not sleep; CPUs that reclaim together;
    # those that reclaim on their own node.
    "direct-reclaim": [("alloc_instr_total", 0.0)],
    "nowait-storm": [("alloc_failures", 0.0)],
    "reclaim-lines": [("lines_of_page", 0.0)],
    "node-reclaim": [("numa_miss", 0.0), ("all_irqs", 0.0)],
}
MET, NOT_MET, NOT_SHOWN = "met", "**not met**", "not shown"
# What -99 % of one flush for 31 pages needs.
MEDIAN_DRAIN = 3100
# Only on the patched kernel: what each size of a pool saves.
POOLS = "inference-pools"
# And what allocations pay, by how many pages a flush waits for.
BATCHES = "alloc-batches"
# Of runs that differ, as those with several sizes of memory do, all count.
SUMS = ("alloc_instr_total", "alloc_failures")

WORDS = {
    "variant": "kernel",
    "policy": "policy",
    "eligible": "interrupts for pages that could wait",
    "all_irqs": "all shootdown interrupts",
    "compaction": "interrupts for pages of compaction that could wait",
    "compaction_of_page": "the same for a million pages that compaction moved",
    "compaction_other": "other interrupts for compaction",
    "dtlb_load_misses_averted": "flush-induced dTLB load misses averted",
    "dtlb_store_misses_averted": "flush-induced dTLB store misses averted",
    "itlb_misses_averted": "flush-induced iTLB misses averted",
    "instructions_kernel": "kernel instructions",
    "mean_instructions_kernel": "kernel instructions, means of all sizes of memory",
    "modelled_ns": "modelled time",
    "pages_reclaimed": "pages reclaimed",
    "refaults": "refaults",
    "major_faults": "major faults",
    "drain_pages": "pages of a drain, median",
    "own_instructions_kernel": "kernel instructions of the loops' own",
    "alloc_instr_p9999": "instructions of an allocation, p99.99 (vanilla: the largest of its runs; tollfree: the median)",
    "alloc_instr_total": "instructions of all allocations",
    "alloc_failures": "allocations that failed",
    "numa_miss": "pages that another node gave",
    "lines_of_page": "cache lines that moved between CPUs for a thousand unmapped pages",
}


def bound(results, name):
    """What vanilla's measure is taken for: its median, but of a tail the upper end of what its runs gave."""
    return results[name]["high"] if name == "alloc_instr_p9999" else measure(results, name)


def median_drain(results):
    """The median number of pages that a drain released, within an eighth; 0 without a drain."""
    prefix = "luf_drains_"
    sizes = sorted((int(name.removeprefix(prefix)), it["median"]) for name, it in results.items() if name.startswith(prefix))
    left = sum(count for _, count in sizes) / 2
    for size, count in sizes:
        left -= count
        if left <= 0:
            return size
    return 0


def measure(results, name):
    """A median of one kernel's counters, or their sum."""

    def get(counter):
        return results.get(counter, {}).get("sum" if counter in SUMS else "median", 0)

    if name == "eligible":
        # A pool's drains are what is left of the eligible interrupts.
        return get("shootdown_irqs_eligible") + get("shootdown_irqs_drain")
    if name == "drain_pages":
        return median_drain(results)
    if name.endswith("_averted"):
        return get(name.removesuffix("_averted") + "_flush_induced")
    if name == "lines_of_page":
        return get("lines_moved") / max(get("unmapped_ro") + get("unmapped_rw"), 1) * 1000
    if name == "compaction_of_page":
        return get("shootdown_irqs_compaction_eligible") / max(get("pages_migrated"), 1) * 1e6
    counter = {
        "all_irqs": "shootdown_irqs",
        "compaction": "shootdown_irqs_compaction_eligible",
        "compaction_other": "shootdown_irqs_compaction",
        "refaults": "vmstat_workingset_refault_file",
        "major_faults": "vmstat_pgmajfault",
        "numa_miss": "vmstat_numa_miss",
    }.get(name, name)
    return get(counter)


def call(scenario, variants, short, runs):
    own = HERE / f"{scenario}.toml"
    command = [LAB, "run", own if own.exists() else scenario, "--json", "--resume"]
    for variant in variants:
        command += ["--variant", variant]
    if short:
        command.append("--short")
    if runs:
        command += ["--runs", str(runs)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return None
    document = json.loads(done.stdout)
    for result in document["results"]:
        # Of the last run; what runs beside the loops is not theirs.
        if own := result["processes"].get("scale"):
            result["counters"]["own_instructions_kernel"] = {"median": own["instructions_kernel"]}
    return document


def counters_by_policy(document, variant, section):
    return [it["counters"] for it in document["results"] if (it["variant"], it["section"]) == (variant, section)]


def counters_of(document, variant, section):
    """The counters of all policies: the median and the sum of their medians, and the highest of all runs."""
    found = counters_by_policy(document, variant, section)
    merged = {}
    for name in set().union(*found):
        each = [it.get(name, {"median": 0}) for it in found]
        medians = [it["median"] for it in each]
        high = max(it.get("high", it["median"]) for it in each)
        merged[name] = {"median": statistics.median(medians), "sum": sum(medians), "high": high}
    return merged


def sections(document):
    return list(dict.fromkeys(result["section"] for result in document["results"]))


def percent(change):
    return f"{change * 100:+.1f} %"


def t_90(freedom):
    """Student's t for 90 %, two-sided: expanded from the normal quantile (Abramowitz and Stegun, 26.7.5), right to 0.04
    from 2 degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(0.95)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def interval(before, after):
    """The relative change of means, and half of its 90 % interval (Welch)."""
    means, errors, freedom = [], [], 0
    for values in (before, after):
        means.append(statistics.mean(values))
        errors.append(statistics.variance(values) / len(values) / means[-1] ** 2)
        freedom += errors[-1] ** 2 / (len(values) - 1)
    change = means[1] / means[0] - 1
    # Welch's degrees of freedom.
    half = math.sqrt(sum(errors)) * t_90(sum(errors) ** 2 / freedom) * (1 + change) if freedom else 0
    return means, change, half


def judged(change, half, goal):
    """Met, or not, where all of the interval is."""
    return MET if change + half <= goal else NOT_SHOWN if change - half <= goal else NOT_MET


def row_of_means(document, section, name, goal):
    """For what differs by chance from boot to boot."""
    values = [
        [measure(counters, name.removeprefix("mean_")) for counters in counters_by_policy(document, variant, section)]
        for variant in ("vanilla", "tollfree")
    ]
    means, change, half = interval(*values)
    return section, name, *means, f"{percent(change)} (± {half * 100:.1f})", f"<= {percent(goal)}", judged(change, half, goal)


def runs_of(document, variant, section, name):
    """What each run gave; empty if there were fewer than three, or if they cannot differ."""
    found = [it for it in document["results"] if (it["variant"], it["section"]) == (variant, section)]
    if document["environment"]["machine"]["icount"] or len(found) != 1 or found[0]["samples"] < 3:
        return []
    each = ({counter: {"median": value} for counter, value in run.items()} for run in found[0]["runs"])
    return [measure(run, name) for run in each]


def rows(document, goals):
    """(section, measure, vanilla, tollfree, change, goal, verdict) for each goal and section."""

    def verdict(is_met):
        return MET if is_met else NOT_MET

    for section in sections(document):
        before, after = (counters_of(document, name, section) for name in ("vanilla", "tollfree"))
        for name, goal, *only in goals:
            if only and not section.startswith(only[0]):
                continue
            if name.startswith("mean_"):
                yield row_of_means(document, section, name, goal)
                continue
            old, new = bound(before, name), measure(after, name)
            if name == "drain_pages":
                yield section, name, old, new, "", f">= {MEDIAN_DRAIN:,}", verdict(new >= MEDIAN_DRAIN)
                continue
            if not old:
                if name == "alloc_failures":
                    yield section, name, old, new, "", f"<= {percent(goal)}", verdict(not new)
                continue
            # Averted misses should increase, all other measures decrease.
            sign, relation = (-1, ">=") if name.endswith("_averted") else (1, "<=")
            change, half = new / old - 1, 0
            runs = [runs_of(document, variant, section, name) for variant in ("vanilla", "tollfree")]
            if all(runs) and all(map(any, runs)):
                (old, new), change, half = interval(*runs)
            shown = percent(sign * change) + (f" (± {half * 100:.1f})" if half else "")
            yield section, name, old, new, shown, f"{relation} {percent(goal)}", judged(change, half, sign * goal)


def conditions(document):
    environment = document["environment"]
    machine = environment["machine"]
    kernels = ", ".join(f"{it['variant']} {it['release']}" for it in environment["kernels"])
    nodes = f"{machine['nodes']} nodes" if machine["nodes"] > 1 else "1 node"
    slow = f" and a slow one of {machine['slow_mib']} MiB" if machine.get("slow_mib") else ""
    clock = ", all by one instruction count" if machine["icount"] else ""
    runs = min(result["samples"] for result in document["results"])
    return (
        f"{document['form']} form, {runs} run{'s' * (runs > 1)} of each kernel, {environment['date']}: {kernels}; "
        f"{machine['cpus']} CPU{'s' * (machine['cpus'] > 1)}{clock}, {machine['memory_mib']} MiB, {nodes}{slow}; QEMU {environment['qemu']}; preset {document['preset']}; first touch: "
        f"{environment['first_touch']}."
    )


CAUSES = ("eligible", "mixed", "unmap", "compaction", "compaction_eligible", "drain", "mm", "numa", "kernel")


def causes(document, section):
    """A table of interrupts by cause, and of what was unmapped; nothing where there was none."""
    both = [counters_of(document, name, section) for name in ("vanilla", "tollfree")]
    names = [f"shootdown_irqs_{cause}" for cause in CAUSES] + ["unmapped_ro", "unmapped_rw"]
    names += ["pages_migrated", "vmstat_htlb_buddy_alloc_success", "vmstat_htlb_buddy_alloc_fail"]
    names += sorted({name for it in both for name in it if name.startswith("luf_")})
    counted = {name: [it.get(name, {}).get("median", 0) for it in both] for name in names}
    counted = {name: values for name, values in counted.items() if any(values)}
    if not counted:
        return
    yield f"Interrupts by cause, pages unmapped, and what the kernel itself counted ({section}):"
    yield ""
    yield "| | vanilla | tollfree |"
    yield "|---|--:|--:|"
    for name, values in counted.items():
        yield "| " + " | ".join([name] + [f"{value:,.0f}" for value in values]) + " |"
    yield ""


def allocations(document):
    """A table of allocations: how many instructions they took, and whether it was the background that reclaimed."""
    results = document["results"]
    # Only what differs names a row.
    named = [key for key in ("variant", "policy") if len({it[key] for it in results}) > 1]
    yield "Instructions of an allocation; direct: pages that programs had to reclaim themselves, of all that were."
    yield ""
    yield f"| section | {', '.join(WORDS[key] for key in named)} | allocations | failed | mean | p99 | p99.99 | largest | direct | shootdown interrupts |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for result in results:
        counters = result["counters"]

        def get(name):
            return counters.get(name, {}).get("median", 0)

        if not get("allocs"):
            continue
        each = [get("alloc_instr_total") / get("allocs")]
        each += [get(f"alloc_instr_{name}") for name in ("p99", "p9999", "max")]
        cells = [f"{value:,.0f}" for value in [get("allocs"), get("alloc_failures"), *each]]
        cells.append(f"{get('vmstat_pgsteal_direct') / max(get('pages_reclaimed'), 1) * 100:.0f} %")
        of = ", ".join(result[key] for key in named)
        yield f"| {result['section']} | {of} | " + " | ".join(cells) + f" | {get('shootdown_irqs'):,.0f} |"
    yield ""


def report(name, document):
    met = True
    yield f"## {name}"
    yield ""
    yield conditions(document)
    yield ""
    yield "| section | measure | vanilla | tollfree | change | goal | |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for section, measured, old, new, change, goal, verdict in rows(document, SCENARIOS[name]):
        met = met and verdict == MET
        yield f"| {section} | {WORDS[measured]} | {old:,.0f} | {new:,.0f} | {change} | {goal} | {verdict} |"
    yield ""
    yield from allocations(document) if name in ("alloc-latency", "direct-reclaim", "nowait-storm") else ()
    shown = sections(document)
    # Of many sections the first represents all.
    for section in shown if len(shown) <= 2 else shown[:1]:
        yield from causes(document, section)
    return met


def pools(document):
    yield f"## {POOLS}"
    yield ""
    yield conditions(document)
    yield ""
    yield "| pool | interrupts for pages that could wait | all | pages reclaimed | drains | pages deferred |"
    yield "|---|--:|--:|--:|--:|--:|"
    for result in document["results"]:
        counters = result["counters"]

        def get(name):
            return counters.get(name, {}).get("median", 0)

        drains = sum(it["median"] for name, it in counters.items() if name.startswith("luf_drains_"))
        deferred = get("luf_deferred_kswapd") + get("luf_deferred_direct")
        cells = [measure(counters, "eligible"), get("shootdown_irqs"), get("pages_reclaimed"), drains, deferred]
        yield f"| {result['policy']} | " + " | ".join(f"{value:,.0f}" for value in cells) + " |"
    yield ""


def batches(document):
    yield f"## {BATCHES}"
    yield ""
    yield conditions(document)
    yield ""
    yield from allocations(document)


# Reports of the patched kernel alone.
ALONE = {POOLS: pools, BATCHES: batches}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--runs", type=int, help="runs of each kernel")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the report here as well")
    parser.add_argument("scenario", nargs="*", help="of these: " + ", ".join([*SCENARIOS, *ALONE]))
    args = parser.parse_args()
    asked = [name.partition(":") for name in args.scenario or [*SCENARIOS, *ALONE]]
    forms = {name: args.short or form == "short" for name, _, form in asked}
    names = list(forms)
    unknown = [name for name in names if name not in SCENARIOS and name not in ALONE]
    if unknown:
        parser.error(f"{unknown[0]}: no scenario of this benchmark")
    if not LAB.exists():
        print(f"{LAB}: is not built: cargo build --release -p toll-lab", file=sys.stderr)
        return 2
    lines = [
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->",
        "# Lazy unmap flush, beside the stock kernel",
        "",
        "Made by `benches/luf/run.py --markdown docs/results/luf.md`. Counts in an emulated machine, of runs of both kernels",
        "in turn: medians, or of three runs and more of CPUs that run side by side the mean, with half of the 90 % interval",
        "of its change. `modelled_ns` is what the preset's constants make of them, and no figure is a time of real hardware.",
        "Published before, of all interrupts on real machines: -95 % (the talk of 2024) and -97.2 % (the last posting upstream).",
        "",
    ]
    met, missing = True, []
    for name in names:
        variants = ["tollfree"] if name in ALONE else ["vanilla", "tollfree"]
        document = call(name, variants, forms[name], args.runs)
        if document is None:
            missing.append(name)
            continue
        said = []
        if name in ALONE:
            said = list(ALONE[name](document))
        else:
            generator = report(name, document)
            while True:
                try:
                    said.append(next(generator))
                except StopIteration as stop:
                    met = met and stop.value
                    break
        print("\n".join(said))
        lines += said
    if missing:
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    if args.markdown and len(missing) < len(names):
        args.markdown.write_text("\n".join(lines))
    if len(missing) == len(names):
        return 2
    return 0 if met and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
