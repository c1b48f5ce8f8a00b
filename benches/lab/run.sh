#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures the cost of the lab itself: builds, boots, and the slow-down by counting.  benches/lab/run.sh [--cold]
# Status: 0 all goals met, 1 one not met, 3 the set-up failed.
set -u
cd "$(dirname "$0")/../.." || exit 3
setup/setup.sh lab >&2 || exit 3
output=$(target/release/toll-lab bench --runs 5 "$@") || exit 3
printf '%s\n' "$output"
case $output in
*'NOT MET'*) exit 1 ;;
esac
