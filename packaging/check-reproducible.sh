#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the files of a release twice, from new clones of the last commit, and compares them byte by byte:
#     packaging/check-reproducible.sh [REVISION]
# The second build differs in what must not matter: its directories (also cargo's), umask, time zone and language.
# Status: 0 all files are equal, 1 one differs, 3 the set-up or a build failed.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh

# clone DIRECTORY: a new clone at the revision.
clone() {
	git clone --quiet --shared --no-checkout . "$1" && git -C "$1" checkout --quiet --detach "$revision"
}

# build DIRECTORY NAME=VALUE...: makes the files of a release there.
build() {
	directory=$1
	shift
	say "Building in $directory"
	clone "$directory" || die "$directory: git could not clone the checkout"
	env -u MAKEFLAGS -u CARGO_TARGET_DIR -u SOURCE_DATE_EPOCH "$@" make --no-print-directory -C "$directory" release-files \
		>"$place/log" 2>&1 || {
		tail -n 20 "$place/log" >&2
		die "the build in $directory failed"
	}
	mv "$directory/target/packages" "$place/$(basename "$directory").files"
}

# Prints "SIZE DIGEST" of a file; "- -" if it is missing.
identity() {
	if [ -f "$1" ]; then
		say "$(stat -c %s "$1") $(sha256sum <"$1" | cut -c 1-16)"
	else
		say "- -"
	fi
}

# Prints a row for each file of either build; fails if one differs.
compare() {
	different=0
	printf '%-48s %10s  %-16s  %s\n' file bytes sha256 "two builds"
	for name in $({ ls "$place/first.files" && ls "$place/second.files"; } | sort -u); do
		one=$(identity "$place/first.files/$name") other=$(identity "$place/second.files/$name")
		result=equal
		[ "$one" = "$other" ] || {
			result="differ: $other" different=1
		}
		# shellcheck disable=SC2086
		printf '%-48s %10s  %-16s  %s\n' "$name" $one "$result"
	done
	return $different
}

revision=$(git rev-parse --verify --quiet "${1:-HEAD}^{commit}") || die "$1: no such revision"
mkdir -p target
# The second path is longer.
place=$(mktemp -d "$(pwd)/target/reproducible.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' HUP INT TERM
mkdir -p "$place/elsewhere/deeper" "$place/cargo"
cargo=${CARGO_HOME:-$HOME/.cargo}
for entry in "$cargo"/*; do
	ln -s "$entry" "$place/cargo/"
done

build "$place/first"
umask 077
build "$place/elsewhere/deeper/second" CARGO_HOME="$place/cargo" TZ=Asia/Kathmandu LC_ALL=C.UTF-8
compare || {
	kept=target/reproducible
	rm -rf "$kept"
	mkdir "$kept"
	mv "$place/first.files" "$place/second.files" "$kept"
	say "Some files differ; both builds are in $kept."
	exit 1
}
