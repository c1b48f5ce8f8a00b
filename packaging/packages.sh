#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the packages of this checkout into target/packages:  packaging/packages.sh [FORMAT]...
# Status 3: something is missing, or a build failed; that package is as before.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $formats
for format; do
	case " $formats " in
	*" $format "*) ;;
	*) die "no such format: $format ($formats)" ;;
	esac
done
setup/setup.sh packages
stage=target/stage
packaging/stage.sh "$stage"
say "Packages of tollfree $version:"
for format; do
	"packaging/$format.sh" "$stage" "$packages"
done
prepare_in "$packages"
name=tollfree-debug-$version.tar.xz
attempt "$name cannot be written" archive "$part/$name" "$stage-debug" usr
publish "$name" "$packages"
