# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the scripts of packaging: what is packaged, where it goes, and the time that archives carry. POSIX sh, sourced
# after setup/lib.sh from the root of the checkout.
# shellcheck shell=sh disable=SC2034

# The formats: packaging/FORMAT.sh STAGE OUTPUT makes the packages, packaging/test-FORMAT.sh tests them.
formats='tarball deb rpm wheel container'
packages=target/packages
version=$(sed -n '/^\[workspace\.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || die "Cargo.toml has no version of the workspace"

# Each file of a package has the time of the last commit, so that two builds of it are equal.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
	SOURCE_DATE_EPOCH=$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null) ||
		die "the checkout has no git history to take the time of the packages from: set SOURCE_DATE_EPOCH"
fi
export SOURCE_DATE_EPOCH
# The modes of the packages' files must not depend on the builder's.
umask 022

# Prints the format of package file $1; nothing for other files, such as the packages of a kernel.
format_of() {
	case ${1##*/} in
	tollfree-debug-*) ;;
	*-linux.tar.xz) say tarball ;;
	tollfree*.deb) say deb ;;
	*.rpm) say rpm ;;
	*.whl) say wheel ;;
	*.oci.tar) say container ;;
	esac
}

# need PROGRAM PACKAGE: ends if a program is missing.
need() {
	have "$1" || die "$1 is missing; install the package that has it (Debian's is $2)"
}

# check_arguments FORMAT STAGE OUTPUT: ends if a script of a format was not called so.
check_arguments() {
	[ $# = 3 ] || die "usage: packaging/$1.sh STAGE OUTPUT"
	[ -x "$2/usr/bin/tollfree" ] || die "$2 has no staged files: run packaging/stage.sh $2"
}

# Makes a directory for what is not complete yet, in $part, beside what will be renamed to its place in directory $1.
prepare_in() {
	{ mkdir -p "$1" && part=$(mktemp -d "$(cd "$1" && pwd)/.part.XXXXXX"); } 2>/dev/null || die "$1 cannot be written"
	trap 'rm -rf "$part"' EXIT
	trap 'exit 130' HUP INT TERM
}

# attempt WHAT COMMAND...: as in setup/lib.sh, with a log that is removed at the end. It is on the disk that may be full.
attempt() {
	what=$1 log=$part/log
	shift
	"$@" >"$log" 2>&1 || {
		[ -s "$log" ] || die "$what: no message could be kept; is the disk of ${part%/*} full?"
		die "$what: $(reason)"
	}
}

# archive FILE DIRECTORY ENTRY: writes the entry of the directory to an archive that depends on the files alone.
archive() {
	tar --create --file "$1" --directory "$2" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" --use-compress-program='xz -6 -T1' "$3"
}

# publish FILE DIRECTORY: moves a complete file from $part to the directory.
publish() {
	mv "$part/$1" "$2/$1" || die "$2/$1 cannot be written"
	say "  $2/$1"
}
