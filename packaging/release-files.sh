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
	git archive --prefix="tollfree-$version/" --output="$part/${source%.xz}" HEAD && xz --threads=1 "$part/${source%.xz}"
}

need git git
need xz xz-utils
need python3 python3
prepare_in "$packages"
source=tollfree-$version.tar.xz bill=tollfree-$version.spdx.json
attempt "$source cannot be written" source_archive
attempt "$bill cannot be written" python3 -B packaging/sbom.py "$part/$bill"
publish "$source" "$packages"
publish "$bill" "$packages"
rm -f "$packages/SHA256SUMS"
(cd "$packages" && sha256sum -- *) >"$part/SHA256SUMS"
publish SHA256SUMS "$packages"
