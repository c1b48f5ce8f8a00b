#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Adds to target/packages what a release has beside the packages: the source, the bill of materials, and the checksums of all
# files. `make release-files` runs it after `make packages`. The source is that of the last commit.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

# Archives without the name and the time of the compressed file, by one thread: more threads make other blocks.
source_archive() {
	git archive --prefix="tollfree-$version/" --output="$part/source.tar" HEAD
	xz --threads=1 "$part/source.tar"
}

need git git
need xz xz-utils
need python3 python3
prepare_in "$packages"
attempt "the archive of the source" source_archive
attempt "the bill of materials" python3 -B packaging/sbom.py "$part/sbom"
mv "$part/source.tar.xz" "$packages/tollfree-$version.tar.xz"
mv "$part/sbom" "$packages/tollfree-$version.spdx.json"
rm -f "$packages/SHA256SUMS"
(cd "$packages" && sha256sum -- *) >"$part/sums"
mv "$part/sums" "$packages/SHA256SUMS"
say "$packages:"
sed 's/^[^ ]* ./  /' "$packages/SHA256SUMS"
