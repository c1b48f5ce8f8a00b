#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of setup/lib.sh and of the format of the package lists.
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
printf '#!/bin/sh\n' >"$fake/qemu"
chmod +x "$fake/qemu"
for expected in 5.2.0:no 6.2.0:yes 7.2.22:yes 8.2.2:yes 9.2.4:yes 10.2.2:yes 11.1.3:yes 12.0.0:no 16.0.0:no 110.0.0:no; do
	version=${expected%:*}
	printf '#!/bin/sh\necho "qemu-x86_64 version %s (Debian 1:%s)"; echo "-plugin [file=]"\n' $version $version >"$fake/qemu"
	expect "QEMU $version with plugins fits" "$(yes_or_no qemu_fits "$fake/qemu")" "${expected#*:}"
done
for version in 7.2.0 10.0.2; do
	printf '#!/bin/sh\necho "qemu-x86_64 version %s (static)"\n' $version >"$fake/qemu"
	expect "a QEMU $version without plugins does not fit" "$(yes_or_no qemu_fits "$fake/qemu")" no
done

expect "the set-up and Cargo.toml ask for the same Rust" \
	"$(sed -n 's/^rust-version = "\(.*\)"/\1/p' ../Cargo.toml)" "$rust_needed"

# dependency_needing RUST_VERSION: the check's output for a workspace of 1.85 with one such dependency
dependency_needing() {
	cat >"$fake/metadata" <<-METADATA
		{"workspace_members": ["ours"], "packages": [
			{"id": "ours", "name": "ours", "version": "0.1.0", "rust_version": "1.85"},
			{"id": "theirs", "name": "theirs", "version": "2.3.4", "rust_version": $1}]}
	METADATA
	python3 -B check_rust_version.py "$fake/metadata" || true
}
expect "a dependency may need the same Rust" "$(dependency_needing '"1.85.0"')" ""
expect "a dependency may need an older Rust" "$(dependency_needing '"1.9"')" ""
expect "a dependency may say nothing" "$(dependency_needing null)" ""
expect "a dependency may not need a newer Rust" "$(dependency_needing '"1.85.1"')" \
	"theirs 2.3.4 needs Rust 1.85.1, the workspace promises 1.85"

known='(debian|debian-1[23]|ubuntu|ubuntu-2[46]\.04|fedora|arch|opensuse)'
for list in *.packages; do
	bad=$(grep -v -E "^(#.*|($known( $known)*: )?[A-Za-z0-9][A-Za-z0-9.+-]+)\$" "$list" || true)
	expect "$list: lines that are no package" "$bad" ""
done
