#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/container.sh STAGE OUTPUT: writes OUTPUT/tollfree-VERSION-x86_64.oci.tar, an archive of an OCI image. Needs neither
# root nor a network, and leaves the builder's images as they are.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

image=localhost/tollfree:$version

# podman writes to the home directory, whatever its storage.
private_podman() {
	HOME=$part podman --root "$part/storage" --runroot "$run" --storage-driver vfs "$@"
}

build_image() {
	context=$part/context
	mkdir "$context" "$context/tmp" "$context/work" && chmod 1777 "$context/tmp" "$context/work" && cp -a "$1/usr" "$context" &&
		private_podman build --network none --timestamp "$SOURCE_DATE_EPOCH" \
			--label "org.opencontainers.image.version=$version" \
			--file packaging/Containerfile --tag "$image" "$context" &&
		private_podman save --format oci-dir --output "$part/image" "$image"
}

pack_image() {
	tar --create --file "$part/$name" --directory "$part/image" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" .
}

check_arguments container "$@"
need podman podman
prepare_in "$2"
# podman refuses a path of over 50 characters here.
run=$(mktemp -d /tmp/tollfree.XXXXXX) || die "/tmp cannot be written"
# Its storage has directories that their owner cannot write to.
trap 'chmod -R u+w "$part"; rm -rf "$part" "$run"' EXIT
name=tollfree-$version-x86_64.oci.tar
attempt "$name cannot be built" build_image "$1"
attempt "$name cannot be written" pack_image
publish "$name" "$2"
