#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What tollfree costs a program that it has nothing to do for.
# 1. A plan that asks nothing of the preload library: the library stays out. Exact: the program's environment is the same.
# 2. A plan with rules that never match: the library is loaded. Measured: see the example for its goals;
#    first of all what the start of an empty program takes longer.
cd "$(dirname "$0")/../.." || exit 3
cargo build --quiet --release --locked -p tollfree -p toll-preload || exit 3

folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
: >"$folder/empty"
show() {
	env -i PATH="$PATH" HOME="$folder" "$@" env | sort
}
show >"$folder/alone"
show "${CARGO_TARGET_DIR:-target}/release/tollfree" run --plan "$folder/empty" -- >"$folder/under"
changed=$(diff "$folder/alone" "$folder/under" | grep -c '^[<>]')
echo "an empty plan: $changed of $(grep -c = "$folder/alone") variables of the environment differ (goal: 0)"

cargo run --quiet --release --locked -p toll-preload --example overhead -- "${1:-60}" && [ "$changed" = 0 ]
