#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the lab's scenarios on vanilla and tollfree and says how far lazy unmap flush keeps to its goals.

    benches/luf/run.py [--short] [--runs N] [--markdown FILE] [SCENARIO[:short]...]

Each scenario is one call of `toll-lab run`, both kernels in turn; what was measured before of the same kernels is not
measured again. Figures are medians of counts in an emulated machine, no times of real hardware.
Status: 0 all goals met, 1 a goal not met, 2 nothing could be measured.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LAB = ROOT / "target" / "release" / "toll-lab"

# Scenario and its goals: a measure, and by how much it must fall (or may rise), as a share of vanilla's.
SCENARIOS = {
    "inference-streams": [
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
        ("fault_instr_p9999", 0.05),
    ],
    "inference-over-memory": [("eligible", -0.99), ("all_irqs", 0.0), ("pages_reclaimed", 0.01)],
    "inference-multitenant": [("eligible", -0.99), ("all_irqs", 0.0), ("pages_reclaimed", 0.01)],
    "inference-tiered": [("eligible", -0.99), ("all_irqs", 0.0)],
    "inference-compaction": [("compaction", -0.90), ("all_irqs", 0.0)],
    "loops": [("instructions_kernel", 0.01)],
}
# Only on the patched kernel: what each size of a pool saves.
POOLS = "inference-pools"

WORDS = {
    "eligible": "interrupts for pages that could wait",
    "all_irqs": "all shootdown interrupts",
    "compaction": "interrupts for compaction",
    "dtlb_load_misses_averted": "flush-induced dTLB load misses averted",
    "dtlb_store_misses_averted": "flush-induced dTLB store misses averted",
    "itlb_misses_averted": "flush-induced iTLB misses averted",
    "instructions_kernel": "kernel instructions",
    "modelled_ns": "modelled time",
    "pages_reclaimed": "pages reclaimed",
    "refaults": "refaults",
    "major_faults": "major faults",
    "fault_instr_p9999": "instructions of a page fault, p99.99",
}


def measure(results, name):
    """A median of one kernel's counters."""

    def get(counter):
        return results.get(counter, {}).get("median", 0)

    if name == "eligible":
        # A pool's drains are what is left of the eligible interrupts.
        return get("shootdown_irqs_eligible") + get("shootdown_irqs_drain")
    if name.endswith("_averted"):
        return get(name.removesuffix("_averted") + "_flush_induced")
    counter = {
        "all_irqs": "shootdown_irqs",
        "compaction": "shootdown_irqs_compaction",
        "refaults": "vmstat_workingset_refault_file",
        "major_faults": "vmstat_pgmajfault",
    }.get(name, name)
    return get(counter)


def call(scenario, variants, short, runs):
    own = HERE / f"{scenario}.toml"
    command = [LAB, "run", own if own.exists() else scenario, "--json"]
    for variant in variants:
        command += ["--variant", variant]
    if short:
        command.append("--short")
    if runs:
        command += ["--runs", str(runs)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def counters_of(document, variant, section):
    for result in document["results"]:
        if result["variant"] == variant and result["section"] == section:
            return result["counters"]
    return None


def sections(document):
    return list(dict.fromkeys(result["section"] for result in document["results"]))


def percent(change):
    return f"{change * 100:+.1f} %"


def rows(document, goals):
    """(section, measure, vanilla, tollfree, change, goal, met) for each goal and section."""
    for section in sections(document):
        before, after = (counters_of(document, name, section) for name in ("vanilla", "tollfree"))
        for name, goal in goals:
            old, new = measure(before, name), measure(after, name)
            if not old:
                continue
            if name.endswith("_averted"):
                change = 1 - new / old
                yield section, name, old, new, percent(change), f">= {percent(goal)}", change >= goal
            else:
                change = new / old - 1
                yield section, name, old, new, percent(change), f"<= {percent(goal)}", change <= goal


def conditions(document):
    environment = document["environment"]
    machine = environment["machine"]
    kernels = ", ".join(f"{it['variant']} {it['release']}" for it in environment["kernels"])
    nodes = f"{machine['nodes']} nodes" if machine["nodes"] > 1 else "1 node"
    slow = f" and a slow one of {machine['slow_mib']} MiB" if machine.get("slow_mib") else ""
    runs = min(result["samples"] for result in document["results"])
    return (
        f"{document['form']} form, {runs} run{'s' * (runs > 1)} of each kernel, {environment['date']}: {kernels}; "
        f"{machine['cpus']} CPUs, {machine['memory_mib']} MiB, {nodes}{slow}; QEMU {environment['qemu']}; preset {document['preset']}; first touch: "
        f"{environment['first_touch']}."
    )


CAUSES = ("eligible", "mixed", "unmap", "compaction", "drain", "mm", "numa", "kernel")


def causes(document, section):
    """A table of interrupts by cause, and of what was unmapped."""
    yield "| | vanilla | tollfree |"
    yield "|---|--:|--:|"
    both = [counters_of(document, name, section) for name in ("vanilla", "tollfree")]
    names = [f"shootdown_irqs_{cause}" for cause in CAUSES] + ["unmapped_ro", "unmapped_rw"]
    names += sorted({name for it in both for name in it if name.startswith("luf_")})
    for name in names:
        values = [it.get(name, {}).get("median", 0) for it in both]
        if any(values):
            yield "| " + " | ".join([name] + [f"{value:,.0f}" for value in values]) + " |"


def report(name, document):
    met = True
    yield f"## {name}"
    yield ""
    yield conditions(document)
    yield ""
    yield "| section | measure | vanilla | tollfree | change | goal | |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for section, measured, old, new, change, goal, is_met in rows(document, SCENARIOS[name]):
        met = met and is_met
        said = "met" if is_met else "**not met**"
        yield f"| {section} | {WORDS[measured]} | {old:,.0f} | {new:,.0f} | {change} | {goal} | {said} |"
    yield ""
    for section in sections(document)[:1]:
        yield f"Interrupts by cause, pages unmapped, and what the kernel itself counted ({section}):"
        yield ""
        yield from causes(document, section)
        yield ""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--runs", type=int, help="runs of each kernel")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the report here as well")
    parser.add_argument("scenario", nargs="*", help="of these: " + ", ".join([*SCENARIOS, POOLS]))
    args = parser.parse_args()
    asked = [name.partition(":") for name in args.scenario or [*SCENARIOS, POOLS]]
    forms = {name: args.short or form == "short" for name, _, form in asked}
    names = list(forms)
    unknown = [name for name in names if name not in SCENARIOS and name != POOLS]
    if unknown:
        parser.error(f"{unknown[0]}: no scenario of this benchmark")
    if not LAB.exists():
        print(f"{LAB}: is not built: cargo build --release -p toll-lab", file=sys.stderr)
        return 2
    lines = [
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->",
        "# Lazy unmap flush, beside the stock kernel",
        "",
        "Made by `benches/luf/run.py --markdown docs/results/luf.md`. Counts in an emulated machine, medians of runs of",
        "both kernels in turn; `modelled_ns` is what the preset's constants make of them, and no figure is a time of real",
        "hardware. Published before, of all interrupts on real machines: -95 % (the talk of 2024) and -97.2 % (the last",
        "posting upstream).",
        "",
    ]
    met, missing = True, []
    for name in names:
        variants = ["tollfree"] if name == POOLS else ["vanilla", "tollfree"]
        document = call(name, variants, forms[name], args.runs)
        if document is None:
            missing.append(name)
            continue
        said = []
        if name == POOLS:
            said = list(pools(document))
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
