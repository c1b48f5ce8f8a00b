#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the preload library costs a program that it has nothing to do for: see the example for the two goals.
cd "$(dirname "$0")/../.." || exit 3
exec cargo run --quiet --release --locked -p toll-preload --example overhead -- "${1:-15}"
