#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the lab's scenarios of morsels on vanilla and tollfree and compares the results with the goals of morselfs.

    benches/morsel/lab.py [--short] [--from DIRECTORY] [--markdown FILE] [SCENARIO[:short]...]

Each scenario is one call of `toll-lab run`, both kernels in turn; earlier measurements of the same kernels are reused.
With --from nothing is measured: DIRECTORY has SCENARIO.json as written by `toll-lab run --output`.
--markdown writes the report to FILE, below the text above its mark there. Figures are counts in an
emulated machine, no times of real hardware.
Status: 0 all goals met, 1 a goal not met, 2 nothing could be measured.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "target" / "release" / "toll-lab"
MARK = "<!-- From here on: benches/morsel/lab.py -->"
STOCK, OURS = "vanilla", "tollfree"


class Results:
    """The results of one scenario."""

    def __init__(self, document):
        self.document = document
        self.entries = {(it["variant"], it["section"]): it for it in document["results"]}

    def labels(self, kind):
        """What follows KIND- in names of sections, by size."""
        names = {section for _, section in self.entries if section.startswith(kind + "-")}
        return sorted((name.removeprefix(kind + "-") for name in names), key=lambda label: (size_of(label), label))

    def has(self, variant, section):
        return (variant, section) in self.entries

    def get(self, variant, section, counter):
        counters = self.entries[variant, section]["counters"]
        return counters.get(counter, {"median": 0})["median"]

    def instructions(self, variant, section):
        """Of all CPUs, user and kernel, for each round where there are rounds."""
        both = sum(self.get(variant, section, f"instructions_{side}") for side in ("user", "kernel"))
        return both / (self.get(variant, section, "note_rounds") or 1)

    def of_process(self, variant, section, process, side):
        return self.entries[variant, section]["processes"][process][f"instructions_{side}"]


UNITS = {"k": 10, "m": 20, "g": 30}


def size_of(label):
    """Bytes of `4k`; what is no size comes last."""
    number, unit = label[:-1], label[-1:]
    return int(number) << UNITS[unit] if number.isdigit() and unit in UNITS else 1 << 62


def human(label):
    return f"{label[:-1]} {label[-1].upper()}iB"


def figure(value):
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.2f}"


def percent(change):
    return f"{change * 100:+.1f} %"


class Goal:
    """A line of the first table: a measure of the stock way and of ours, and whether that is enough."""

    def __init__(self, measure, seed, goal, stock, ours, change, is_met, missed_by=""):
        self.measure, self.seed, self.goal, self.is_met = measure, seed, goal, is_met
        self.stock, self.ours, self.change, self.missed_by = stock, ours, change, missed_by

    def row(self):
        said = "met" if self.is_met else f"**not met**{self.missed_by and ': ' + self.missed_by}"
        stock = "-" if self.stock is None else figure(self.stock)
        return f"| {self.measure} | {self.seed} | {self.goal} | {stock} | {figure(self.ours)} | {self.change} | {said} |"


def fall(measure, seed, stock, ours, least):
    """Ours is to be less by this share at least."""
    change = ours / stock - 1
    return Goal(measure, seed, f"-{least * 100:.0f} %", stock, ours, percent(change), change <= -least, percent(change))


def not_above(measure, stock, ours, seed="-"):
    change = ours / stock - 1
    return Goal(measure, seed, "not above", stock, ours, percent(change), ours <= stock, f"by {percent(change)}")


def below(measure, goal, ours, stock=None, seed="-", strictly=False):
    is_met = ours < goal if strictly else ours <= goal
    said = f"{'<' if strictly else '<='} {figure(goal)}"
    return Goal(measure, seed, said, stock, ours, "", is_met, f"{figure(ours - goal)} more")


# --- each scenario: its goals, and its tables ---

MAP_KINDS = {
    "ext4": "ext4, 4 KiB folios",
    "memfd": "memfd",
    "folios": "xfs, folios of 2 MiB",
    "huge": "tmpfs, huge=always",
    "hugetlb": "hugetlbfs, 2 MiB, shared tables",
    "open": "open morsel",
    "sealed": "sealed morsel",
}


def map_way(kind):
    return OURS if kind in ("open", "sealed") else STOCK


def map_cost(results, kind, label):
    section, way = f"{kind}-{label}", map_way(kind)
    return figure(results.instructions(way, section)) if results.has(way, section) else "-"


def map_goals(results):
    largest = sizes_of(results, "ext4")[-1]
    name = human(largest)

    def cost(kind):
        return results.instructions(map_way(kind), f"{kind}-{largest}")

    for kind in ("sealed", "open"):
        factor = cost("ext4") / cost(kind)
        yield Goal(
            f"mmap and first read, {name}, {kind}, by MAP_POPULATE of ext4",
            "x1,000",
            "x10,000",
            cost("ext4"),
            cost(kind),
            f"x{factor:,.0f}",
            factor >= 10_000,
            f"x{factor:,.0f}",
        )
    sparse = sorted((it.removeprefix("sparse-") for it in results.labels("sealed") if it.startswith("sparse-") and not it.endswith("unmap")), key=size_of)
    few, many = sparse[0], sparse[-1]
    gib = (size_of(many) - size_of(few)) >> 30
    for kind in ("sealed", "open"):
        costs = [results.instructions(OURS, f"{kind}-sparse-{size}") for size in (few, many)]
        yield below(f"the same for each GiB more, {human(few)} to {human(many)}, {kind}", 30, (costs[1] - costs[0]) / gib)
    for kind in ("hugetlb", "huge"):
        yield not_above(f"mmap and first read, {name}, sealed, by {MAP_KINDS[kind]}", cost(kind), cost("sealed"))


def sizes_of(results, kind):
    return [it for it in results.labels(kind) if not it.endswith("unmap")]


def sizes_table(results, sizes):
    """What mapping and unmapping cost, for each kind that has one of these sizes."""
    yield "| | " + " | ".join(human(size) for size in sizes) + " |"
    yield "|---|" + "--:|" * len(sizes)
    for what, suffix in (("map", ""), ("unmap", "-unmap")):
        for kind, name in MAP_KINDS.items():
            labels = [f"{size}{suffix}" for size in sizes]
            if any(results.has(map_way(kind), f"{kind}-{label}") for label in labels):
                yield f"| {what}: {name} | " + " | ".join(map_cost(results, kind, label) for label in labels) + " |"


def map_tables(results):
    yield "Instructions of mmap and the first read of one byte; of munmap. All ways have MAP_POPULATE. Every page is in memory; hugetlbfs's file is mapped once more, so that its tables are shared."
    yield ""
    yield from sizes_table(results, sizes_of(results, "ext4"))
    sparse = [it for it in results.labels("sealed") if it.startswith("sparse-") and not it.endswith("unmap")]
    sparse.sort(key=lambda it: size_of(it.removeprefix("sparse-")))
    if results.has(OURS, "sealed-tail"):
        sparse.append("tail")
    yield ""
    yield "Morsels with only the first page of each GiB populated, and (tail) a whole one of 6.82 GiB, with a part of a GiB and of 2 MiB:"
    yield ""
    yield "| | " + " | ".join(it.removeprefix("sparse-").upper().replace("G", " GiB").replace("TAIL", "tail") for it in sparse) + " |"
    yield "|---|" + "--:|" * len(sparse)
    for what, suffix in (("map", ""), ("unmap", "-unmap")):
        for kind in ("open", "sealed"):
            yield f"| {what}: {kind} | " + " | ".join(map_cost(results, kind, f"{it}{suffix}") for it in sparse) + " |"


def folios_goals(results):
    largest = sizes_of(results, "folios")[-1]
    stock, ours = (results.instructions(map_way(kind), f"{kind}-{largest}") for kind in ("folios", "sealed"))
    yield not_above(f"mmap and first read, {human(largest)}, sealed, by {MAP_KINDS['folios']}", stock, ours)


def folios_tables(results):
    yield "The same, of kernels that have xfs as well:"
    yield ""
    yield from sizes_table(results, sizes_of(results, "folios"))


START_KINDS = {"page-cache": "page cache of ext4", "huge": "tmpfs, huge=always", "morsel": "sealed morsel"}


def start_way(kind):
    return OURS if kind == "morsel" else STOCK


def startup_goals(results):
    for counter, name in ((None, "instructions"), ("vmstat_pgfault", "faults, those of MAP_POPULATE too")):

        def cost(kind):
            section = f"{kind}-start"
            way = start_way(kind)
            return results.instructions(way, section) if counter is None else results.get(way, section, counter)

        yield fall(f"llama.cpp, exec to the end of model load, {name}", "-45 % of time", cost("page-cache"), cost("morsel"), 0.60)


def startup_tables(results):
    yield "From exec to the end of model load (the call of llama_init_from_model), and from there to the end, with the first token (not judged):"
    yield ""
    yield "| | user instructions | kernel instructions | faults | modelled ms |"
    yield "|---|--:|--:|--:|--:|"
    for part, name in (("start", "load"), ("rest", "first token")):
        for kind, said in START_KINDS.items():
            section, way = f"{kind}-{part}", start_way(kind)
            cells = [results.get(way, section, it) for it in ("instructions_user", "instructions_kernel", "vmstat_pgfault")]
            modelled = results.get(way, section, "modelled_ns") / 1e6
            yield f"| {name}: {said} | " + " | ".join(figure(cell) for cell in cells) + f" | {modelled:,.1f} |"


PIPELINES = {
    "memfd-keep": "memfd, kept mapped",
    "memfd-remap": "memfd, mapped anew",
    "memfd-new": "memfd, a new one each",
    "morsel-keep": "morsel, kept mapped",
    "morsel-remap": "morsel, sent",
    "morsel-new": "morsel, a new one each",
}


def trip(results, kind, size):
    """User, waiting, kernel of a round trip; its packets."""
    section, way = f"{kind}-{size}", OURS if kind.startswith("morsel") else STOCK
    packets = results.get(way, section, "note_packets")
    user, kernel = (results.of_process(way, section, "pipeline", side) / packets for side in ("user", "kernel"))
    # All of the guest is one clock, which an instruction advances by a nanosecond.
    waiting = results.get(way, section, "note_elapsed_ns") / packets - user - kernel
    return user, max(waiting, 0), kernel, packets


def pipeline_goals(results):
    for size in results.labels("morsel-keep"):
        kernel = {kind: trip(results, kind, size)[2] for kind in PIPELINES}
        if size_of(size) == 4096:
            yield not_above("kernel instructions of a round trip, 4 KiB, kept by kept", kernel["memfd-keep"], kernel["morsel-keep"])
            yield not_above("kernel instructions of a round trip, 4 KiB, sent by mapped anew", kernel["memfd-remap"], kernel["morsel-remap"])
        elif size_of(size) >= 2 << 20:
            name = f"kernel instructions of a round trip, {human(size)}"
            yield fall(f"{name}, sent by mapped anew", "-39 % of time", kernel["memfd-remap"], kernel["morsel-remap"], 0.90)
            yield fall(f"{name}, sent by kept", "-39 % of time", kernel["memfd-keep"], kernel["morsel-remap"], 0.90)
            yield fall(f"{name}, kept by kept", "-39 % of time", kernel["memfd-keep"], kernel["morsel-keep"], 0.90)


def pipeline_tables(results):
    yield "A round trip, stacked, in instructions; the change of all three together is that of the modelled mean round trip"
    yield "(seed: -39 %), by the memfd that is handled alike."
    yield ""
    yield "| packet | | packets | user | waiting | kernel | together | change |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for size in results.labels("morsel-keep"):
        for kind, name in PIPELINES.items():
            *stack, packets = trip(results, kind, size)
            change = ""
            if kind.startswith("morsel"):
                change = percent(sum(stack) / sum(trip(results, kind.replace("morsel", "memfd"), size)[:3]) - 1)
            yield f"| {human(size)} | {name} | {packets:,.0f} | " + " | ".join(figure(it) for it in [*stack, sum(stack)]) + f" | {change} |"


TOUCHED = {
    "anonymous": "anonymous memory",
    "memfd": "page cache (memfd)",
    "morsel": "open morsel",
    "anonymous-2m": "anonymous memory, 2 MiB",
    "morsel-2m": "open morsel, 2 MiB",
}


def per_page(results, kind, threads):
    section, way = f"{kind}-{threads}", OURS if kind.startswith("morsel") else STOCK
    both = sum(results.of_process(way, section, "scatter", side) for side in ("user", "kernel"))
    return both / results.get(way, section, "note_touched_pages")


def firsttouch_goals(results):
    for kind in ("morsel", "morsel-2m"):
        one, eight = (per_page(results, kind, threads) for threads in (1, 8))
        change = eight / one - 1
        yield Goal(
            f"instructions of a page, 8 CPUs by 1, {TOUCHED[kind]}",
            "good scalability",
            "within 10 %",
            per_page(results, kind.replace("morsel", "anonymous"), 8),
            eight,
            percent(change),
            abs(change) <= 0.10,
            percent(change),
        )


def firsttouch_tables(results):
    yield "Instructions of the threads for each page of 4 KiB, by what is touched and how many do; the stock column above is anonymous memory at 8."
    yield ""
    yield "| | 1 | 2 | 4 | 8 | 8 by 1 |"
    yield "|---|--:|--:|--:|--:|--:|"
    for kind, name in TOUCHED.items():
        costs = [per_page(results, kind, threads) for threads in (1, 2, 4, 8)]
        yield f"| {name} | " + " | ".join(figure(cost) for cost in costs) + f" | {percent(costs[-1] / costs[0] - 1)} |"


LINE_KINDS = {
    "anonymous": "anonymous memory",
    "anonymous-apart": "anonymous memory, apart",
    "memfd": "page cache (memfd)",
    "memfd-apart": "page cache (memfd), apart",
    "morsel": "open morsel",
    "morsel-apart": "open morsel, apart",
}


def line_way(kind):
    return OURS if kind.startswith("morsel") else STOCK


def often(results, kind):
    """Lines that moved once for 16 pages, or more often: of two stores that CPUs make by turns, few meet in the lab."""
    pages = results.get(line_way(kind), kind, "note_touched_pages")
    return results.get(line_way(kind), kind, f"lines_moved_{pages // 16:.0f}")


def lines_goals(results):
    for kind in ("morsel", "morsel-apart"):
        ours, stock = (often(results, kind.replace("morsel", name)) for name in ("morsel", "memfd"))
        mapped = "each thread with its own mapping" if kind.endswith("apart") else "one mapping"
        yield below(f"cache lines that CPUs take from each other for each page, {mapped} (stock: page cache)", 0, ours, stock, "no locking")


def lines_tables(results):
    yield "Lines of the kernel that CPUs wrote in turn, by what is touched. Often: those that went to another CPU once for 16 pages or"
    yield "more. One of them is the lock of the mapping, which every page fault of Linux 6.12 takes; `apart` each thread has its own."
    yield ""
    yield "| | pages | lines | stores to them | moves | moves of a page | often |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for kind, name in LINE_KINDS.items():
        way = line_way(kind)
        pages, *cells = (results.get(way, kind, it) for it in ("note_touched_pages", "lines_shared", "lines_shared_stores", "lines_moved"))
        yield f"| {name} | " + " | ".join(figure(it) for it in [pages, *cells, cells[-1] / pages, often(results, kind)]) + " |"


def pgtables_goals(results):
    stock = results.get(STOCK, "memfd", "note_page_table_bytes_each")

    def each(section):
        return results.get(OURS, section, "note_page_table_bytes_each")

    processes = results.get(OURS, "sealed", "note_processes")
    of = f"bytes of page tables, each of {processes:,.0f} processes"
    yield below(f"{of}, aligned", 8192, each("sealed"), stock, "13.3 GiB in all", strictly=True)
    yield below(f"{of}, with a tail", 12288, each("sealed-tail"), stock)


def pgtables_tables(results):
    yield "Page tables beyond the object's own and those of as many processes that map nothing:"
    yield ""
    yield "| | bytes mapped | processes | page tables | each |"
    yield "|---|--:|--:|--:|--:|"
    for way, section in ((STOCK, "memfd"), (OURS, "sealed"), (OURS, "sealed-tail")):
        cells = [results.get(way, section, f"note_{it}") for it in ("bytes", "processes", "page_table_bytes", "page_table_bytes_each")]
        yield f"| {section} | " + " | ".join(figure(cell) for cell in cells) + " |"


BLOCKS = {"huge": "tmpfs, huge=always", "morsel": "morselfs"}


def blocks_of(results, kind):
    way = OURS if kind == "morsel" else STOCK
    return [results.get(way, kind, f"note_{it}") for it in ("cycles", "blocks_before", "blocks_live", "blocks_after")]


def blocks_goals(results):
    cycles, before, _, after = blocks_of(results, "morsel")
    _, stock_before, _, stock_after = blocks_of(results, "huge")
    change = after / before - 1
    yield Goal(
        f"blocks of 2 MiB after {cycles:,.0f} cycles, of {figure(before)} before (tmpfs, huge: of {figure(stock_before)})",
        "-",
        "within 2 %",
        stock_after,
        after,
        percent(change),
        change >= -0.02,
        percent(change),
    )


def blocks_tables(results):
    yield "Blocks of 2 MiB that free memory has:"
    yield ""
    yield "| | cycles | before | while files are there | after all are gone |"
    yield "|---|--:|--:|--:|--:|"
    for kind, name in BLOCKS.items():
        yield f"| {name} | " + " | ".join(figure(it) for it in blocks_of(results, kind)) + " |"


SCENARIOS = {
    "morsel-map": (map_goals, map_tables),
    "map-folios": (folios_goals, folios_tables),
    "morsel-startup": (startup_goals, startup_tables),
    "morsel-pipeline": (pipeline_goals, pipeline_tables),
    "morsel-blocks": (blocks_goals, blocks_tables),
    "morsel-firsttouch": (firsttouch_goals, firsttouch_tables),
    "morsel-lines": (lines_goals, lines_tables),
    "morsel-pgtables": (pgtables_goals, pgtables_tables),
}

# What those that are no scenarios of the lab are called by.
OWN = {"map-folios": ["benches/morsel/map-folios.toml", "--config", "kernel/config/selftest.config"]}

# --- the report ---


def call(scenario, short, directory):
    if directory:
        path = directory / f"{scenario}.json"
        return Results(json.loads(path.read_text())) if path.exists() else None
    command = [LAB, "run", *OWN.get(scenario, [scenario]), "--json", "--resume", "--variant", STOCK, "--variant", OURS]
    if short:
        command.append("--short")
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return None if done.returncode else Results(json.loads(done.stdout))


def conditions(results):
    environment = results.document["environment"]
    machine = environment["machine"]
    kernels = ", ".join(f"{it['variant']} {it['release']}" for it in environment["kernels"])
    clock = ", all by one instruction count" if machine["icount"] else ", at the same time" if machine["cpus"] > 1 else ""
    return (
        f"{results.document['form']} form, one run of each kernel, {environment['date']}: {kernels}; {machine['cpus']} "
        f"CPU{'s' * (machine['cpus'] > 1)}{clock}, {machine['memory_mib']} MiB; QEMU {environment['qemu']}; preset {results.document['preset']}; first touch: "
        f"{environment['first_touch']}."
    )


INTRODUCTION = """# Morsels in the lab, beside the stock kernel

Made by `benches/morsel/lab.py --markdown docs/results/morsel.md`. Counts in an emulated machine; \"modelled\" is what the preset's
constants make of them, and no figure is a time of real hardware. Stock ways are measured on vanilla, morsels on tollfree, in the same
call. ext4 has no large folios in Linux 6.12; xfs has. ext4's file of 7 GiB was read ahead, and is mapped for the first time. What is not met is
explained in [the guide](../guide/morsel.md#what-morselfs-does-not-reach).
"""


def report(all_results):
    yield from INTRODUCTION.splitlines()
    yield ""
    yield "| measure | seed | goal | vanilla | tollfree | change | |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for name, results in all_results.items():
        yield from (goal.row() for goal in SCENARIOS[name][0](results))
    for name, results in all_results.items():
        yield ""
        yield f"## {name}"
        yield ""
        yield conditions(results)
        yield ""
        yield from SCENARIOS[name][1](results)


def put(path, lines):
    """Behind the mark in the file; what is above it stays."""
    above = path.read_text().partition(MARK)[0].rstrip() if path.exists() else "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->"
    path.write_text("\n".join([above, "", MARK, *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--from", metavar="DIRECTORY", type=Path, dest="directory", help="results that were measured before")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="put the report into this file as well")
    parser.add_argument("scenario", nargs="*", help="of these: " + ", ".join(SCENARIOS))
    args = parser.parse_args()
    asked = {name: args.short or form == "short" for name, _, form in (it.partition(":") for it in args.scenario or SCENARIOS)}
    for name in asked:
        if name not in SCENARIOS:
            parser.error(f"{name}: no scenario of this benchmark")
    if not args.directory and not LAB.exists():
        print(f"{LAB}: is not built: cargo build --release -p toll-lab", file=sys.stderr)
        return 2
    measured = {name: call(name, short, args.directory) for name, short in asked.items()}
    missing = [name for name, results in measured.items() if results is None]
    measured = {name: results for name, results in measured.items() if results}
    if not measured:
        return 2
    lines = list(report(measured))
    if missing:
        lines += ["", f"Not measured: {', '.join(missing)}."]
    print("\n".join(lines))
    if args.markdown:
        put(args.markdown, lines)
    is_met = all(goal.is_met for name, results in measured.items() for goal in SCENARIOS[name][0](results))
    return 0 if is_met and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
