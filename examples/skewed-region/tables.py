# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the eight regions with the most misses, before and after: tables.py REPORT.json"""
import json
import sys

SHOWN = 8


def regions(report):
    """(address, misses before, misses after) of every region inside a fixed address range."""
    sites = report.get("sites") or report["anchors"]
    return [(site["start"] + region["offset"], region["misses"], region["misses_after"])
            for site in sites if site["kind"] == "address" for region in site["regions"]]


def table(title, rows):
    print(f"\n{title}\n{'2 MiB region':>16}  {'TLB misses':>12}")
    for address, misses in sorted(rows, key=lambda row: -row[1])[:SHOWN]:
        print(f"{address:#16x}  {misses:12.0f}")


with open(sys.argv[1]) as file:
    found = regions(json.load(file))
before, after = (sum(row[column] for row in found) for column in (1, 2))
table("Before", [(address, misses) for address, misses, _ in found])
table("After", [(address, misses) for address, _, misses in found])
averted = f", {1 - after / before:.1%} averted" if before else ""
print(f"\nAll {len(found)} regions: {before:.0f} misses before, {after:.0f} after{averted}\n")
