#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/check-glibc.sh FILE...: fails if a shared library needs a newer glibc than the packages promise.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
promised=2.28

# Prints the versions of glibc that library $1 takes symbols from.
versions_of() {
	objdump -T "$1" | sed -n 's/.*\*UND\*.*GLIBC_\([0-9.]*\).*/\1/p' | sort -u
}

status=0
for library; do
	versions=$(versions_of "$library")
	[ -n "$versions" ] || die "$library: no shared library that uses glibc"
	for version in $versions; do
		version_at_least "$promised" "$version" || {
			symbols=$(objdump -T "$library" | sed -n "s/.*GLIBC_$version)\{0,1\} *//p" | tr '\n' ' ')
			say "$library: needs glibc $version for ${symbols% }; the packages promise $promised"
			status=1
		}
	done
done
exit $status
