#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/wheel.sh STAGE OUTPUT: writes OUTPUT/tollfree-VERSION-py3-none-manylinux_2_28_x86_64.whl, a package for pip.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

check_arguments wheel "$@"
# Cargo and Python write versions before a release differently.
case $version in
*[!0-9.]*) die "version $version is not a release: pip accepts no wheel of it" ;;
esac
need python3 python3
prepare_in "$2"
name=tollfree-$version-py3-none-manylinux_2_28_x86_64.whl
attempt "$name cannot be written" python3 -B packaging/wheel.py "$1" "$version" "$part/$name"
publish "$name" "$2"
