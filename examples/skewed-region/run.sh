#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the whole experiment: run.sh [N] makes the N regions (of 512; default 8) with the most misses huge.
# Options for the program itself (see skewed.c) go behind N:  run.sh 8 --reads 5000000
set -eu
here=$(cd "$(dirname "$0")" && pwd)

top=${1:-8}
case $top in '' | *[!0-9]*) echo "usage: run.sh [N] [OPTIONS OF skewed], N from 0 to 512" >&2 && exit 2 ;; esac
[ "$top" -le 512 ] || { echo "run.sh: there are only 512 regions" >&2 && exit 2; }
[ $# = 0 ] || shift

tollfree=${TOLLFREE:-$here/../../target/release/tollfree}
[ -x "$tollfree" ] || tollfree=tollfree
results=${RESULTS:-$PWD/skewed-region-$top}
rounds=${ROUNDS:-5}
range=0x18780000000..0x187c0000000

mkdir -p "$results"
${CC:-gcc} -O2 -g "$here/skewed.c" -o "$results/skewed"
cd "$results"

echo "1. Before: every access inside $range counted, in a simulated TLB"
"$tollfree" record --force --source sim --sample 1 --only $range -o before.json -- ./skewed "$@"
echo "2. Plan: the $top regions with the most misses -> largepages.txt"
"$tollfree" plan before.json --force --top "$top" --format largepages -o largepages.txt
echo "3. After: the same, with those regions huge"
"$tollfree" record --force --source sim --sample 1 --only $range --plan largepages.txt -o after.json -- ./skewed "$@"
"$tollfree" report before.json --after after.json --html report.html --force
"$tollfree" report before.json --after after.json --json >report.json
python3 "$here/tables.py" report.json

echo "4. Time: $rounds interleaved runs of each, natively (the reads alone)"
python3 "$here/times.py" "$rounds" "none=./skewed" "top$top=$tollfree run --plan largepages.txt -- ./skewed" -- "$@"
echo "Everything is in $results (report.html shows it as a page)"
