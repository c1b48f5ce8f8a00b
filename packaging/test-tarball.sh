# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the tarball. POSIX sh, sourced by test.sh.
# shellcheck shell=sh

test_tarball() {
	start "$1" bookworm xz-utils
	put_in unpack "cd /opt && tar -xf /packages/${1##*/}"
	use "/opt/$(basename "$1" .tar.xz)/bin/tollfree"
	take_out rm "rm -r /opt/$(basename "$1" .tar.xz)"
	finish
}
