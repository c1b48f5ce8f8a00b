# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of a .deb. POSIX sh, sourced by test.sh.
# shellcheck shell=sh disable=SC2154

test_deb() {
	for debian in bookworm trixie; do
		case ${1##*/} in
		tollfree-simulator_*) test_deb_of_simulator "$1" $debian ;;
		*) test_deb_of_tollfree "$1" $debian ;;
		esac
	done
}

test_deb_of_tollfree() {
	start "$1" "$2"
	put_in install "dpkg --install /packages/${1##*/}"
	step files "dpkg --verify tollfree && man_page=/usr/share/man/man1/tollfree.1.gz && gzip -t \$man_page"
	use
	take_out purge "dpkg --purge tollfree"
	finish
}
