#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of setup/lib.sh and of the package lists.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lib.sh
. ./lib.sh

expect() {
	[ "$2" = "$3" ] || {
		printf '%s: expected "%s", got "%s"\n' "$1" "$3" "$2"
		exit 1
	}
}

yes_or_no() {
	if "$@"; then say yes; else say no; fi
}

expect "1.96 is at least 1.85" "$(yes_or_no version_at_least 1.96.0 1.85)" yes
expect "1.85.0 is at least 1.85" "$(yes_or_no version_at_least 1.85.0 1.85)" yes
expect "1.100 is at least 1.85" "$(yes_or_no version_at_least 1.100.0 1.85)" yes
expect "1.63 is not" "$(yes_or_no version_at_least 1.63.0 1.85)" no
expect "2.0 is" "$(yes_or_no version_at_least 2.0.0 1.85)" yes
expect "59 seconds" "$(duration 59)" "59 s"
expect "61 seconds" "$(duration 61)" "1 min 1 s"

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
printf '#!/bin/sh\necho "cargo 1.63.0 (old)"\n' >"$fake/cargo"
chmod +x "$fake/cargo"
expect "an old cargo does not fit" "$(yes_or_no rust_fits "$fake/cargo")" no
printf '#!/bin/sh\necho "cargo 1.85.0 (Debian)"\n' >"$fake/cargo"
expect "Debian's cargo fits" "$(yes_or_no rust_fits "$fake/cargo")" yes
expect "no cargo does not fit" "$(yes_or_no rust_fits "$fake/none")" no
printf '#!/bin/sh\necho "qemu-x86_64 version 10.0.2"\n' >"$fake/qemu"
chmod +x "$fake/qemu"
expect "another QEMU does not fit" "$(yes_or_no qemu_fits "$fake/qemu")" no
printf '#!/bin/sh\necho "qemu-x86_64 version 7.2.0 (static)"\n' >"$fake/qemu"
expect "a QEMU 7.2 without plugins does not fit" "$(yes_or_no qemu_fits "$fake/qemu")" no

for list in *.packages; do
	bad=$(grep -v -E '^(#.*|(1[23]: )?[a-z0-9][a-z0-9.+-]+)$' "$list" || true)
	expect "$list: lines that are no package" "$bad" ""
done
