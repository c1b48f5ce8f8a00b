#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds Linux 6.12 with the queue as Debian packages in target/packages, from the configuration of Debian's own kernel:
#     packaging/kernel-deb.sh [--yes] [--flavour amd64|cloud-amd64] [--config FILE]
#     packaging/kernel-deb.sh [--yes] [--flavour amd64|cloud-amd64] --check
# --config starts from another configuration, such as one that make localmodconfig has reduced. --check builds only what
# the queue touches, and the modules that call it, and finds symbols that are undefined or no longer exported.
# An interrupted build continues where it was. Status: 0 done, 1 the kernel does not build or the check found a fault,
# 3 the set-up failed.
set -eu
called_in=$PWD
cd "$(dirname "$0")/.."
here=$PWD/setup
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=../setup/system.sh
. setup/system.sh
# shellcheck source=../setup/unpack.sh
. setup/unpack.sh
# shellcheck source=kernel-check.sh
. packaging/kernel-check.sh

queue=$PWD/kernel
packages=$PWD/target/packages

usage() {
	die "usage: packaging/kernel-deb.sh [--yes] [--flavour amd64|cloud-amd64] [--config FILE | --check]"
}

yes='' flavour=amd64 config='' check=''
while [ $# -gt 0 ]; do
	case $1 in
	--yes) yes=$1 ;;
	--check) check=yes ;;
	--flavour | --config)
		[ $# -gt 1 ] || usage
		case $1 in
		--flavour) flavour=$2 ;;
		--config) config=$2 ;;
		esac
		shift
		;;
	*) usage ;;
	esac
	shift
done
[ -z "$check" ] || [ -z "$config" ] || usage
case $config in
'' | /*) ;;
*) config=$called_in/$config ;;
esac
case " $kernel_flavours " in
*" $flavour "*) ;;
*) die "there is no flavour '$flavour' of Debian's kernel: $kernel_flavours" ;;
esac
[ -z "$config" ] || grep -q '^CONFIG_' "$config" 2>/dev/null || die "$config: not a configuration of a kernel"

# fault TEXT: ends because of what was built.
fault() {
	printf 'tollfree: %s\n' "$*" >&2
	exit 1
}

# Ends if less than $1 GiB are free where the kernel is built.
check_disk() {
	free=$(($(df -Pk "$place" | awk 'NR == 2 { print $4 }') / 1024 / 1024))
	[ "$free" -ge "$1" ] || die "$place: $free GiB of disk are free; this needs $1 GiB"
}

# Prints the seams for kernels outside the lab.
seams() {
	grep -E '^[1-8]' "$queue/seams/series"
}

# Prints the files that those seams change.
seam_files() {
	seams | (cd "$queue/seams" && xargs sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p') | sort -u
}

# Prints the new files.
new_files() {
	(cd "$queue/tree" && find . -type f) | sed 's,^\./,,' | sort
}

# Prints a checksum of the queue.
queue_sum() {
	(cd "$queue" && find tree seams -type f | sort | xargs cksum) | cksum
}

unpack_source() {
	[ ! -d "$place/source" ] || return 0
	say "Unpacking the source of Linux $version"
	rm -rf "$place/source.part"
	mkdir "$place/source.part"
	attempt "$archive cannot be unpacked" tar --extract --xz --strip-components=1 --file "$archive" --directory "$place/source.part"
	mv "$place/source.part" "$place/source"
}

# link_tree NAME: makes a tree of hard links to the source, with .part behind its name.
link_tree() {
	rm -rf "$place/$1.part"
	attempt "$place/$1 cannot be written" cp -al "$place/source" "$place/$1.part"
}

# Makes the tree with the queue, unless it has this queue. Builds in the old tree are kept.
make_tree() {
	sum=$(queue_sum)
	[ "$sum" != "$(cat "$place/tree/.queue" 2>/dev/null || true)" ] || return 0
	say "Applying the queue: $(new_files | wc -l) new files, $(seams | wc -l) seams"
	link_tree tree
	new_files | while read -r file; do
		[ ! -e "$place/source/$file" ] || die "kernel/tree/$file exists in Linux $version"
	done
	attempt "$place/tree cannot be written" cp -R "$queue/tree/." "$place/tree.part"
	for seam in $(seams); do
		patch -d "$place/tree.part" -p1 -F0 --force --forward --no-backup-if-mismatch --reject-file=- --silent \
			-i "$queue/seams/$seam" >>"$log" 2>&1 ||
			die "kernel/seams/$seam does not apply to Linux $version; kernel/BASE names $(grep -v '^#' "$queue/BASE" | paste -s -d ' ') (the whole log: $log)"
	done
	for build in "$place"/tree/build-* "$place"/tree/check-*; do
		[ ! -d "$build" ] || mv "$build" "$place/tree.part"
	done
	printf '%s\n' "$sum" >"$place/tree.part/.queue"
	rm -rf "$place/tree"
	mv "$place/tree.part" "$place/tree"
}

# run_make TREE BUILD ARGUMENT...: calls the kernel's make; shows the number of its steps on a terminal.
run_make() {
	tree=$place/$1 build=$2 watcher=
	shift 2
	: >"$log"
	if [ -t 1 ]; then
		while sleep 1 && kill -0 $$; do
			printf '\r    %s steps ' "$(wc -l <"$log")"
		done 8>&- &
		watcher=$!
	fi
	status=0
	make -C "$tree" O="$build" -j"$(nproc)" CC="$compiler" LOCALVERSION="-tollfree-$flavour" "$@" >"$log" 2>&1 </dev/null || status=$?
	[ -z "$watcher" ] || {
		kill "$watcher"
		printf '\r\033[K'
	}
	watcher=
	return $status
}

# must_make DOING TREE BUILD ARGUMENT...: calls the kernel's make and ends if it fails.
must_make() {
	doing=$1
	shift
	run_make "$@" || {
		! grep -q -i 'no space left on device' "$log" || die "$place: the disk is full"
		fault "$doing failed: $(first_error) (the whole log: $log)"
	}
}

# Prints the first error of a compiler, of modpost or of make in the log.
first_error() {
	grep -m 1 -E ': (fatal )?error: |^ERROR' "$log" || grep -m 1 -F '***' "$log" || tail -n 1 "$log"
}

# configure TREE BUILD FRAGMENT...: a configuration of Debian's own and fragments; names what Kconfig does not accept of
# the queue.
configure() {
	built=$place/$1/$2
	mkdir -p "$built"
	tree_name=$1 build_name=$2 base=${config:-$headers/config}
	shift 2
	cat "$base" "$@" >"$built/wanted.part"
	if ! [ -f "$built/.config" ] || ! cmp -s "$built/wanted.part" "$built/wanted.config"; then
		rm -f "$built/wanted.config"
		cp "$built/wanted.part" "$built/.config"
		must_make "the configuration" "$tree_name" "$build_name" olddefconfig
	fi
	mv "$built/wanted.part" "$built/wanted.config"
	case " $* " in
	*" $queue_config "*) ;;
	*) return 0 ;;
	esac
	refused=$(grep '^CONFIG_' "$queue_config" | grep -v -x -F -f "$built/.config" | paste -s -d ' ')
	[ -z "$refused" ] || {
		rm -f "$built/wanted.config"
		die "Kconfig does not accept $refused with the configuration of $base: what it depends on is off there"
	}
}

# Builds the packages and moves them to target/packages.
build_packages() {
	say "Building Linux $version with the queue, $flavour"
	configure tree "build-$flavour" "$queue/config/debian.config" "$queue_config"
	rm -f "$place"/tree/*.deb
	must_make "the build" tree "build-$flavour" bindeb-pkg DPKG_FLAGS=--no-check-builddeps KBUILD_VERBOSE=0
	mkdir -p "$packages"
	for package in "$place"/tree/linux-image-*.deb "$place"/tree/linux-headers-*.deb; do
		[ -f "$package" ] || fault "make bindeb-pkg made no ${package##*/} (the whole log: $log)"
		cp "$package" "$packages/.part" && mv "$packages/.part" "$packages/${package##*/}"
		say "  target/packages/${package##*/}"
	done
	rm -f "$place"/tree/*.deb
}

# The build depends neither on this machine nor on the time.
set_environment() {
	SOURCE_DATE_EPOCH=$(stat -c %Y "$place/source/Makefile")
	export SOURCE_DATE_EPOCH
	KBUILD_BUILD_TIMESTAMP=$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH")
	export KBUILD_BUILD_TIMESTAMP KBUILD_BUILD_USER=tollfree KBUILD_BUILD_HOST=debian
	export KDEB_SOURCENAME=linux-tollfree KDEB_CHANGELOG_DIST="${codename:-unstable}"
	KDEB_PKGVERSION=$version+tollfree$(sed -n 's/^#define TOLLFREE_VERSION "\(.*\)"/\1/p' "$queue/tree/include/linux/tollfree.h")
	export KDEB_PKGVERSION
	# No package of debug symbols: it has several GB.
	export DEB_BUILD_PROFILES=pkg.linux-tollfree.nokerneldbg
	export CCACHE_DIR="$cache/kernel-deb/ccache" CCACHE_NOHASHDIR=1
	unset MAKEFLAGS MFLAGS KBUILD_OUTPUT ARCH CROSS_COMPILE KCFLAGS
	compiler=gcc
	! have ccache || compiler='ccache gcc'
}

# Sets $disk to the GB that are needed, and prints what is about to happen.
announce() {
	case $check:$config:$flavour in
	yes:*) disk=4 hours='about 10 minutes' ;;
	:?*:*) disk=4 hours='as long as its configuration needs' ;;
	*:cloud-amd64) disk=20 hours='2 to 3 hours' ;;
	*) disk=45 hours='6 to 9 hours' ;;
	esac
	if [ -n "$check" ]; then
		say "tollfree kernel-deb: checks the queue under the configuration of Debian's kernel $flavour"
	else
		say "tollfree kernel-deb: builds Debian packages of Linux 6.12 with the queue from ${config:-the configuration of Debian $flavour}"
	fi
	say "  set-up   packages where they are missing (the only step that needs root)
  disk     $disk GB or more in $cache/kernel-deb
  time     $hours on two cores; an interrupted build continues where it was
"
}

announce
setup/setup.sh ${yes:+"$yes"} kernel-deb || exit 3
identify_system
archive=$(kernel_archive)
[ -n "$archive" ] || die "$kernel_package is neither installed nor in $kernel_sources"
version=$(kernel_version)
headers=$kernel_headers/$version/$flavour
place=$cache/kernel-deb/$version
queue_config=$queue/config/tollfree.config
mkdir -p "$place" || die "$place cannot be written"
log=$place/log-$flavour
: >"$log" || die "$log cannot be written"
exec 8>"$place/lock"
! have flock || flock -n 8 || die "another build of $place is running"
trap '[ -z "${watcher:-}" ] || kill "$watcher"; exit 130' HUP INT TERM
[ -d "$place/tree" ] || check_disk $disk
began=$(date +%s)
unpack_source
make_tree
set_environment
if [ -n "$check" ]; then
	check_queue
else
	build_packages
fi
say "time: $(duration $(($(date +%s) - began)))"
