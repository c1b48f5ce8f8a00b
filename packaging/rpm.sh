#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/rpm.sh STAGE OUTPUT: writes OUTPUT/tollfree-VERSION-1.x86_64.rpm, and tollfree-simulator-VERSION-1.x86_64.rpm with
# the plugin for QEMU.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

# Every rpm since that of RHEL 6 reads this compression. The host and the times of the build would make each build different.
build_packages() {
	rpmbuild -bb --target x86_64 --define "staged $(readlink -e "$1")" --define "staged_version $version" \
		--define "_topdir $part" --define "_dbpath $part/db" --define "_rpmdir $part" \
		--define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' --define '_binary_payload w6.xzdio' \
		--define '_buildhost tollfree' --define 'use_source_date_epoch_as_buildtime 1' \
		packaging/tollfree.spec
}

check_arguments rpm "$@"
need rpmbuild rpm
prepare_in "$2"
attempt "the .rpm cannot be built" build_packages "$1"
for package in tollfree tollfree-simulator; do
	publish "$package-$version-1.x86_64.rpm" "$2"
done
