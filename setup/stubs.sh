# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the tests of scripts: stubs of programs, and what the last call of a script said. POSIX sh, to be sourced. Sets
# $fake, a directory that is removed at the end, and $bin, the one of the stubs.
# shellcheck shell=sh disable=SC2154

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
bin=$fake/bin

# stub NAME BODY: puts a script first in the PATH of the tested script.
stub() {
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

# wrong WHAT: ends the test, with the status ($status) and the output ($said) of the last call.
wrong() {
	printf '%s\n%s ended with %s and said:\n%s\n' "$1" "${script:-The script}" "$status" "$said"
	exit 1
}

# ends STATUS TEXT...: the last call ended so, and its output contains each text.
ends() {
	[ "$status" = "$1" ] || wrong "expected status $1"
	shift
	for text in "$@"; do
		case $said in
		*"$text"*) ;;
		*) wrong "expected to read: $text" ;;
		esac
	done
}
