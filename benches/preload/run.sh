#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures the overhead of tollfree for a program under a plan without effect.
# 1. A plan without rules for the preload library: the library is not loaded. Exact: the program's environment is the same.
# 2. A plan with rules that never match: the library is loaded. Measured: see the example for its goals,
#    above all the additional start-up time of an empty program.
cd "$(dirname "$0")/../.." || exit 3
cargo build --quiet --release --locked -p tollfree -p toll-preload || exit 3

directory=$(mktemp -d) || exit 3
trap 'rm -rf "$directory"' EXIT
: >"$directory/empty"
show() {
	env -i PATH="$PATH" HOME="$directory" "$@" env | sort
}
show >"$directory/alone"
show "${CARGO_TARGET_DIR:-target}/release/tollfree" run --plan "$directory/empty" -- >"$directory/under"
changed=$(diff "$directory/alone" "$directory/under" | grep -c '^[<>]')
echo "an empty plan: $changed of $(grep -c = "$directory/alone") variables of the environment differ (goal: 0)"

cargo run --quiet --release --locked -p toll-preload --example overhead -- "${1:-60}" && [ "$changed" = 0 ]
