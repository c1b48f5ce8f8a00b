# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the tarball. POSIX sh, sourced by test.sh.
# shellcheck shell=sh disable=SC2154

# Debian 11 has glibc 2.31, before the functions that packaging/old_glibc.c is about.
test_tarball() {
	test_tarball_in "$1" bookworm
	if has_suite bullseye; then
		test_tarball_in "$1" bullseye
	else
		row "${1##*/}" - bullseye "" "skipped: not in $mirror"
	fi
}

# Whether the mirror has a suite.
has_suite() {
	/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "${mirror%/}/dists/$1/Release" "$place/Release" >/dev/null 2>&1
}

test_tarball_in() {
	directory=/opt/$(basename "$1" .tar.xz)
	start "$1" "$2" xz-utils
	put_in unpack "cd /opt && tar -xf /packages/${1##*/}"
	use "$directory/bin/tollfree"
	take_out rm "rm -r $directory"
	finish
}
