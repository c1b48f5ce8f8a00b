#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the benchmarks and prints their goals: benches/all.sh [--keep] [NAME]...
# Native: skewed, sim, preload, sampler, stat, bpf, why, null, live, services, text, lab, real, morsel. In the lab: bpf-lab
# (minutes; needs pahole), and luf, econ and morsel-lab (hours each).
# With --keep, the output is written to docs/results/NAME.md.
# Installs the real programs first. Results are kept in the cache, so that an interrupted run continues.
# Status: 0 all goals met, 1 one not met, 3 the set-up failed.
set -u
cd "$(dirname "$0")/.." || exit 3
# shellcheck source=../setup/lib.sh
. setup/lib.sh

say "tollfree benchmarks
  set-up   real programs from Debian and numpy (about 1 GB), inputs (about 2 GB in $cache/bench)
  time     skewed, sim and preload 15 minutes; the real programs up to 4 minutes each, over 30 of them
  It measures time: leave the machine alone meanwhile, and give it 8 GiB of memory.
"
setup/setup.sh bench || exit 3
choose_rust || die "cargo $rust_needed or later was not found after the set-up"
{ cargo build --release --locked && make --quiet -C plugins; } || die "the build failed"

venv=$cache/bench/venv
if ! "$venv/bin/python" -c 'import numpy' 2>/dev/null; then
	say "Installing numpy into $venv"
	{ python3 -m venv "$venv" && "$venv/bin/pip" install --quiet numpy; } || die "numpy could not be installed into $venv"
fi

keep=
[ "${1:-}" != --keep ] || keep=yes
[ -z "$keep" ] || shift
[ $# -gt 0 ] || set -- skewed sim preload lab real
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# Writes the output of a benchmark to docs/results: keep_result NAME
keep_result() {
	{
		say "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->"
		say "# benches/all.sh --keep $1"
		say ""
		say "$(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs," \
			"$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r)"
		say ""
		case $1 in
		real | services) cat "$output" ;;
		*) sed 's/^/    /' "$output" ;;
		esac
	} >"docs/results/$1.md"
}

# On a kernel that can run BPF programs at functions.
bpf_in_a_guest() {
	setup/setup.sh lab >&2 || return 3
	target/release/toll-lab shell vanilla --config kernel/config/bpf.config --icount -- \
		env INSTRUCTIONS=yes TOLLFREE="$PWD/target/release/tollfree" "$PWD/benches/bpf/run.sh" 5 5
}

status=0
for bench in "$@"; do
	case $bench in
	luf | econ | morsel-lab)
		say "== $bench"
		target/release/toll-lab report "${bench%-lab}" ${keep:+--markdown --output "docs/results/$bench.md"} || status=1
		continue
		;;
	esac
	runner=
	[ "$bench" != bpf-lab ] || runner=bpf_in_a_guest
	for name in run.py run.sh; do
		[ ! -x "benches/$bench/$name" ] || runner=benches/$bench/$name
	done
	[ -n "$runner" ] || die "no such benchmark: $bench"
	say "== $bench"
	"$runner" >"$output" || status=1
	cat "$output"
	[ -z "$keep" ] || keep_result "$bench"
done
exit $status
