#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The goals of the skewed-region example, measured:

    benches/skewed/run.py [counts] [time] [chase] [--rounds N]

counts  with at least 90 % of the modelled misses in 8 of 512 regions, the top 8 avert >= 90 % of what all 512 avert (exact)
time    with the same skew, but 1 GiB of 4 GiB hot, the plan (those 512 regions) keeps >= 80 % of the time that all save;
        and, without a goal, what it keeps where 5 % of the reads miss the hot set, and where the hot set is 128 MiB of
        1 GiB: its page tables stay in the caches, so there is little to save beside the cost of the reads elsewhere
chase   a uniform dependent chase over 4 GiB (needs 5 GiB free) gains >= 1.3x with all regions huge
Status: 0 all goals met, 1 one not met.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "skewed-region"
DIRECTORY = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollfree" / "bench" / "skewed"
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
PROGRAM = str(DIRECTORY / "skewed")
BASE, REGION = 0x18780000000, 2 << 20
# Share of the reads that go to the hot regions: 90 % of the misses then lie in 8 of 512.
SKEW = 0.995

sys.path.insert(0, str(EXAMPLE))
import times  # noqa: E402


def call(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def record(name, regions, options, plan=None):
    """Misses by region address of one fully counted run."""
    path = DIRECTORY / (name + ".json")
    span = f"{BASE:#x}..{BASE + regions * REGION:#x}"
    call(TOLLFREE, "record", "--force", "--source", "sim", "--sample", "1", "--only", span, "-o", path,
         *(["--plan", plan] if plan else []), "--", PROGRAM, *options)
    report = json.loads(subprocess.run([TOLLFREE, "report", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    sites = report.get("sites") or report["anchors"]
    return {site["start"] + region["offset"]: region["misses"]
            for site in sites if site["kind"] == "address" for region in site["regions"]}


def planned(name, top):
    """largepages.txt of the `top` regions of a recording."""
    path = DIRECTORY / f"{name}-top{top}.txt"
    call(TOLLFREE, "plan", DIRECTORY / (name + ".json"), "--force", "--top", top, "--format", "largepages", "-o", path)
    return path


def every_region(regions):
    path = DIRECTORY / f"all{regions}.txt"
    path.write_text("".join(f"{BASE + i * REGION}\n" for i in range(regions)))
    return path


def under(plan):
    return [TOLLFREE, "run", "--plan", str(plan), "--", PROGRAM]


def verdict(met, text):
    print(f"{'met    ' if met else 'NOT MET'}  {text}", flush=True)
    return met


def counts(_rounds):
    options = ["--reads", "20000000", "--hot-share", str(SKEW)]
    before = record("counts", 512, options)
    total = sum(before.values())
    skew = sum(sorted(before.values())[-8:]) / total
    averted = {top: total - sum(record(f"counts-after{top}", 512, options, planned("counts", top)).values()) for top in (8, 512)}
    print(f"  {total:.0f} misses, {skew:.1%} in the top 8 regions; averted by 8: {averted[8]:.0f}, by 512: {averted[512]:.0f}")
    share = averted[8] / averted[512] if averted[512] else 0.0
    return verdict(skew >= 0.9 and share >= 0.9, f"the top 8 of 512 avert {share:.1%} of what all avert (goal 90 %; skew {skew:.1%})")


def kept_interval(measured, rng):
    """Share of all's saved time that the plan keeps, with a 90 % bootstrap interval of the rounds."""
    rounds = list(zip(*(times.log_ratios(measured["none"], measured[name]) for name in ("plan", "all"))))

    def kept(rounds):
        plan, every = (1 - math.exp(-times.pseudo_median(logs)) for logs in zip(*rounds))
        return plan / every if every else float("nan")

    draws = sorted(kept(rng.choices(rounds, k=len(rounds))) for _ in range(times.RESAMPLED))
    return kept(rounds), draws[len(draws) // 20], draws[-len(draws) // 20]


def time_of(size, hot, share, rounds):
    """Share of all's saved time that `hot` regions of a mapping of `size` MiB keep, if they get this share of the reads;
    and that in words."""
    regions = size // 2
    options = ["--size", str(size), "--hot-regions", str(hot), "--hot-share", str(share)]
    record("time", regions, options + ["--reads", "3000000"])
    variants = {"none": [PROGRAM], "plan": under(planned("time", hot)), "all": under(every_region(regions))}
    measured = times.measure(rounds, {name: command + options + ["--reads", "10000000"] for name, command in variants.items()})
    text = f"{2 * hot} MiB of {size} hot with {share:.1%} of the reads"
    for name in ("plan", "all"):
        speedup = times.ratio(measured["none"], measured[name], random.Random(1))
        print(f"  {text}, {name}: speedup {speedup['median']:.3f} [{speedup['low']:.3f}, {speedup['high']:.3f}]")
    kept, low, high = kept_interval(measured, random.Random(1))
    return kept, f"{text}: {hot} of {regions} regions keep {kept:.0%} [{low:.0%}, {high:.0%}] of the time that all save"


def time(rounds):
    for size, hot, share in ((1024, 64, SKEW), (4096, 512, 0.95)):
        print(f"  {time_of(size, hot, share, rounds)[1]}", flush=True)
    kept, text = time_of(4096, 512, SKEW, rounds)
    return verdict(kept >= 0.8, f"{text} (goal 80 %)")


def chase(rounds):
    options = ["--size", "4096", "--hot-regions", "0", "--reads", "10000000"]
    variants = {"none": [PROGRAM], "all": under(every_region(2048))}
    measured = times.measure(rounds, {name: command + options for name, command in variants.items()})
    speedup = times.ratio(measured["none"], measured["all"], random.Random(1))
    return verdict(speedup["median"] >= 1.3, "a uniform dependent chase over 4 GiB: speedup "
                   f"{speedup['median']:.3f} [{speedup['low']:.3f}, {speedup['high']:.3f}] (goal 1.3)")


PARTS = {"counts": counts, "time": time, "chase": chase}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="timed rounds of each variant (default 9)")
    parser.add_argument("parts", nargs="*", metavar="PART", help="counts, time, chase; all of them if none is named")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    call("gcc", "-O2", "-g", EXAMPLE / "skewed.c", "-o", PROGRAM)
    met = [PARTS[name](options.rounds) for name in options.parts or PARTS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
