#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs packages in new minimal roots, uses them, removes them, and verifies that nothing is left:
#     packaging/test.sh [FILE]...                  (default: each package in target/packages)
# Prints a row for each package and root. Needs root, debootstrap, and 2 GB of disk in $TMPDIR.
# packaging/test-FORMAT.sh has the function test_FORMAT FILE, which consists of these calls:
#     start FILE SUITE [PACKAGE]...   makes a root with Debian's packages, and the file in /packages
#     put_in WHAT COMMAND             a step (see below), after a list of the root's files is taken
#     step WHAT COMMAND               runs a command of the shell in the root; after a failure the other steps are left out
#     outside WHAT COMMAND...         a step on this machine, not in the root
#     use [COMMAND]                   runs --version, doctor, record and tune of COMMAND (default: tollfree)
#     take_out WHAT COMMAND           a step, after which nothing may be left
#     finish                          prints the row
# Status: 0 all passed, 1 a package failed, 3 the set-up failed.
set -u
cd "$(dirname "$0")/.." || exit 3
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh
# shellcheck source=../setup/roots.sh
. setup/roots.sh
for format in $formats; do
	# shellcheck disable=SC1090
	. "packaging/test-$format.sh"
done
size_limit=10000000
status=0

# A real program of a minimal root that needs more memory than a TLB reaches: sums an array of Perl in random order.
program="perl -e '\$n = 3e6; @a = (0 .. \$n - 1); \$s += \$a[\$_ * 7919 % \$n] for @a; print \"\$s\n\"'"

# What a package may leave: the state of the package managers, and the user's data.
may_stay='^(var/lib/(dpkg|apt|rpm)|var/log|var/cache/(apt|debconf|ldconfig)|etc/ld\.so\.cache|root/\.cache|work)(/|$)'

# new_root SUITE: a minimal root in $root, copied from the first one of its suite.
new_root() {
	base=$place/base-$1
	[ -d "$base" ] || {
		make_root "$1"
		mv "$root" "$base"
	}
	root=$place/root
	rm -rf --one-file-system "$root"
	cp -a --reflink=auto "$base" "$root" || die "the disk of $place has no space for a root"
}

start() {
	file=$1 suite=$2 ran='' result=passed
	shift 2
	new_root "$suite"
	mkdir "$root/packages" "$root/work" && cp "$file" "$root/packages" || exit 3
	[ $# = 0 ] || in_root "apt-get -qq update && apt-get -qq install -y --no-install-recommends $*" >"$logs/package" 2>&1 || {
		tail -n 5 "$logs/package" >&2
		die "$* could not be installed in the root of $suite"
	}
	size=$(stat -c %s "$file")
	[ "$size" -lt $size_limit ] || {
		result="failed: at least $size_limit bytes"
		status=1
	}
}

step() {
	outside "$1" in_root "$2"
}

outside() {
	[ "$result" = passed ] || return 0
	what=$1
	shift
	ran="$ran${ran:+, }$what"
	"$@" >"$logs/package" 2>&1 || fail "$what"
}

# fail WHAT: records a failure, and shows the end of the step's output.
fail() {
	result="failed: $1" status=1
	tail -n 15 "$logs/package" | sed 's/^/    /'
}

# Prints the files of the root, except those that may stay.
files_of_root() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \) -prune -o -printf '%P\n') |
		grep -v -E "$may_stay" | sort
}

put_in() {
	files_of_root >"$place/before"
	step "$1" "$2"
	files_of_root >"$place/installed"
	[ "$result" != passed ] || ! cmp -s "$place/before" "$place/installed" || fail "$1: it installed no file"
}

use() {
	tollfree=${1:-tollfree}
	step version "$tollfree --version | grep -x -F 'tollfree $version'"
	step doctor "$tollfree doctor"
	# Allocations have names only if the preload library was loaded, and its unwinder works with this glibc.
	step record "cd /work && $tollfree record --source accessed -o profile.json -- $program &&
		$tollfree report profile.json | grep -q '^Perl_safesys.*alloc+0x'"
	step tune "cd /work && $tollfree tune --within 40s -- $program"
}

take_out() {
	step "$1" "$2"
	files_of_root >"$place/after"
	[ "$result" != passed ] || diff "$place/before" "$place/after" >"$logs/package" || fail "$1: files stayed or went"
}

finish() {
	row "${file##*/}" "$(kilobytes "$size")" "$suite" "$ran" "$result"
}

# row PACKAGE SIZE ROOT RAN RESULT
row() {
	printf '%-50s %8s  %-9s %-58s %s\n' "$@"
}

kilobytes() {
	say "$((($1 + 999) / 1000)) kB"
}

[ $# -gt 0 ] || set -- "$packages"/*
setup/setup.sh --yes roots || exit 3
row package size root "what ran" result
tested=0
for argument; do
	format=$(format_of "$argument")
	[ -n "$format" ] || continue
	path=$(readlink -e "$argument") || die "$argument: no such package"
	"test_$format" "$path"
	tested=$((tested + 1))
done
[ ! -x target/stage/usr/bin/tollfree ] || ! have python3 || python3 -B packaging/help-time.py target/stage/usr/bin/tollfree
[ "$tested" -gt 0 ] || die "no package to test in $packages; run 'make packages' first"
exit $status
