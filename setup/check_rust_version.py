#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fails if a locked dependency needs a newer Rust than the workspace declares.

    check_rust_version.py [FILE]    FILE holds the output of `cargo metadata`; without it, cargo is run

Dependencies of other systems are not built and not checked. A dependency that states no
rust-version cannot be checked, and passes. Status: 0 all fit, 1 one does not, 2 cargo failed.
"""

import json
import subprocess
import sys

CARGO = ["cargo", "metadata", "--locked", "--format-version", "1",
         "--filter-platform", "x86_64-unknown-linux-gnu"]


def version(text):
    """1.85 as (1, 85, 0)."""
    numbers = [int(number) for number in text.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def too_new(metadata):
    """One line for each dependency that needs a newer Rust than the workspace declares."""
    packages = metadata["packages"]
    members = set(metadata["workspace_members"])
    promised = min((p["rust_version"] for p in packages if p["id"] in members), key=version)
    return [
        f"{p['name']} {p['version']} needs Rust {p['rust_version']}, the workspace promises {promised}"
        for p in packages
        if p["rust_version"] and version(p["rust_version"]) > version(promised)
    ]


def main():
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            text = file.read()
    else:
        asked = subprocess.run(CARGO, stdout=subprocess.PIPE, text=True, check=False)
        if asked.returncode != 0:
            return 2
        text = asked.stdout
    lines = too_new(json.loads(text))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
