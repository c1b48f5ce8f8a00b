#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/tarball.sh STAGE OUTPUT: writes OUTPUT/tollfree-VERSION-x86_64-linux.tar.xz, a prefix that works where it is
# unpacked: bin/tollfree finds its libraries in ../lib/tollfree.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

check_arguments tarball "$@"
need xz xz-utils
prepare_in "$2"
name=tollfree-$version-x86_64-linux
attempt "$name.tar.xz cannot be written" cp -a "$1/usr" "$part/$name"
attempt "$name.tar.xz cannot be written" archive "$part/$name.tar.xz" "$part" "$name"
publish "$name.tar.xz" "$2"
