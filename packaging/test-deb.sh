# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of a .deb. POSIX sh, sourced by test.sh.
# shellcheck shell=sh disable=SC2154

test_deb() {
	case ${1##*/} in
	tollfree-simulator_*)
		test_deb_of_simulator "$1"
		test_deb_without_qemu "$1"
		;;
	*)
		test_deb_of_tollfree "$1" bookworm
		test_deb_of_tollfree "$1" trixie
		;;
	esac
}

test_deb_of_tollfree() {
	start "$1" "$2"
	put_in install "dpkg --install /packages/${1##*/}"
	step files "dpkg --verify tollfree && gzip -t /usr/share/man/man1/tollfree.1.gz"
	use
	take_out purge "dpkg --purge tollfree"
	finish
}

# start_with_tollfree FILE SUITE [PACKAGE]...: as start, with the tollfree package of the same version in /packages.
start_with_tollfree() {
	start "$@"
	cp "${1%/*}/tollfree_${version}_amd64.deb" "$root/packages" || exit 3
}

# Debian 12's qemu-user loads plugins.
test_deb_of_simulator() {
	start_with_tollfree "$1" bookworm qemu-user
	put_in install "dpkg --install /packages/*.deb"
	step doctor "tollfree doctor | grep -E '^ simulator +ok'"
	step simulate "cd /work && tollfree record --source sim -o profile.json -- perl -e '@a = (1 .. 300000)' &&
		tollfree report profile.json | grep -q '^source: qemu-x86_64'"
	take_out purge "dpkg --purge tollfree-simulator tollfree"
	finish
}

# Debian 13's does not: apt must refuse the package, and tollfree must say so.
test_deb_without_qemu() {
	start_with_tollfree "$1" trixie
	put_in 'install tollfree' "dpkg --install /packages/tollfree_*.deb"
	step 'apt refuses the simulator' "apt-get -qq update && ! apt-get install -y /packages/${1##*/} >/work/log 2>&1 &&
		grep 'tollfree-simulator : Depends: qemu-user (< 1:9)' /work/log"
	step doctor "tollfree doctor | grep -E '^ simulator +missing'"
	take_out purge "dpkg --purge tollfree"
	finish
}
