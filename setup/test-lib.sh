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

for list in *.packages; do
	bad=$(grep -v -E '^(#.*|(1[23]: )?[a-z0-9][a-z0-9.+-]+)$' "$list" || true)
	expect "$list: lines that are no package" "$bad" ""
done

# On a terminal the set-up asks; a stub writes the arguments of apt-get to a file.
cat >"$fake/apt-get" <<'STUB'
#!/bin/sh
echo "$*" >>"$(dirname "$0")/called"
exit 1
STUB
printf '#!/bin/sh\nexit 1\n' >"$fake/dpkg-query"
chmod +x "$fake/apt-get" "$fake/dpkg-query"

# set_up_answering ANSWER [--yes]: the output of setup.sh on a terminal
set_up_answering() {
	rm -f "$fake/called"
	printf '%s\n' "$1" | XDG_CACHE_HOME=$fake PATH=$fake:$PATH script -qec "./setup.sh ${2:-} demo" /dev/null 2>&1 || true
}

says() {
	printf '%s\n' "$said" | grep -q "$1"
}

if grep -q -E '^ID=debian$' /etc/os-release 2>/dev/null && [ "$(id -u)" = 0 ]; then
	said=$(set_up_answering n)
	expect "a no installs nothing" "$(yes_or_no test -e "$fake/called")" no
	expect "a no names the packages" "$(yes_or_no says "were not installed. As root, once")" yes
	said=$(set_up_answering '')
	expect "an empty answer is yes" "$(head -n 1 "$fake/called")" "update -qq"
	said=$(set_up_answering n --yes)
	expect "--yes asks nothing" "$(head -n 1 "$fake/called")" "update -qq"
	expect "--yes prints no question" "$(yes_or_no says "Install them")" no
	rm -f "$fake/called"
	XDG_CACHE_HOME=$fake PATH=$fake:$PATH ./setup.sh demo </dev/null >/dev/null 2>&1 || true
	expect "there is no question without a terminal" "$(head -n 1 "$fake/called")" "update -qq"
fi
