#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/deb.sh STAGE OUTPUT: writes OUTPUT/tollfree_VERSION_amd64.deb, and tollfree-simulator_VERSION_amd64.deb with the
# plugin for QEMU. The latter cannot be installed where QEMU does not load plugins (Debian 13's qemu-user is static).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

maintainer='The tollfree authors <maintainers@tollfree.invalid>'

# Moves the files of the stage to where Debian has them.
move_files() {
	mkdir -p "$part/tollfree" "$part/tollfree-simulator/usr/lib/tollfree" &&
		cp -a "$1/usr" "$part/tollfree" &&
		mv "$part/tollfree/usr/lib/tollfree/"libtoll_user*.so "$part/tollfree-simulator/usr/lib/tollfree" &&
		mkdir "$part/tollfree/usr/share/zsh/vendor-completions" &&
		mv "$part/tollfree/usr/share/zsh/site-functions/_tollfree" "$part/tollfree/usr/share/zsh/vendor-completions" &&
		rmdir "$part/tollfree/usr/share/zsh/site-functions" &&
		rm "$part"/tollfree/usr/share/doc/tollfree/*-*.txt "$part/tollfree/usr/share/doc/tollfree/MIT.txt" &&
		gzip -9 -n "$part"/tollfree/usr/share/man/man1/*.1 "$part/tollfree/usr/share/doc/tollfree/CHANGELOG.md" \
			"$part/tollfree/usr/share/doc/tollfree/NOTICES.txt"
}

# Debian's copyright file: licences that Debian's base system has are named, the others quoted.
# copyright FILES LICENCE
copyright() {
	cat <<-COPYRIGHT
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Upstream-Name: tollfree

		Files: *
		Copyright: 2026 The tollfree authors
		License: $1
	COPYRIGHT
	[ "$1" = GPL-2.0-only ] || echo "Comment: NOTICES.txt.gz has the licences of the libraries in the binaries."
	echo
	case $1 in
	GPL-2.0-only)
		cat <<-LICENCE
			License: GPL-2.0-only
			 The complete text is in /usr/share/common-licenses/GPL-2.
		LICENCE
		;;
	*)
		cat <<-LICENCE
			License: Apache-2.0
			 The complete text is in /usr/share/common-licenses/Apache-2.0.

			License: MIT
		LICENCE
		sed '1,2d; s/^$/./; s/^/ /' LICENSES/MIT.txt
		;;
	esac
}

changelog() {
	cat <<-CHANGELOG
		$1 ($version) unstable; urgency=medium

		  * Build of version $version; what changed is in CHANGELOG.md of tollfree.

		 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
	CHANGELOG
}

override_lintian() {
	[ -f "packaging/deb/$1.lintian" ] || return 0
	mkdir "$tree/usr/share/lintian" "$tree/usr/share/lintian/overrides" &&
		grep -v '^# SPDX' "packaging/deb/$1.lintian" >"$tree/usr/share/lintian/overrides/$1"
}

# Kilobytes as dpkg counts them: each file rounded up, and one for each directory.
installed_size() {
	find "$1" ! -path "$1/DEBIAN*" -printf '%y %s\n' | awk '$1 == "f" { n += int(($2 + 1023) / 1024); next } { n++ } END { print n }'
}

# build PACKAGE LICENCE <FIELDS: makes the package of directory $part/PACKAGE, with more fields and the description.
build() {
	tree=$part/$1 documents=$part/$1/usr/share/doc/$1
	mkdir -p "$documents" "$tree/DEBIAN" &&
		copyright "$2" >"$documents/copyright" &&
		changelog "$1" | gzip -9 -n >"$documents/changelog.gz" &&
		override_lintian "$1" &&
		(cd "$tree" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$part/md5sums" && mv "$part/md5sums" "$tree/DEBIAN" &&
		{
			printf 'Package: %s\nVersion: %s\nArchitecture: amd64\n' "$1" "$version"
			printf 'Maintainer: %s\nInstalled-Size: %s\nSection: utils\nPriority: optional\n' "$maintainer" "$(installed_size "$tree")"
			cat
		} >"$tree/DEBIAN/control" &&
		find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + &&
		dpkg-deb --root-owner-group -Zxz --build "$tree" "$part/$1_${version}_amd64.deb"
}

build_tollfree() {
	build tollfree 'MIT or Apache-2.0' <<-FIELDS
		Depends: libc6 (>= 2.28)
		Suggests: tollfree-simulator
		Description: finds out whether huge pages pay for a program, and for which memory
		 tollfree observes where a program misses the TLB, estimates what huge pages
		 would save and cost there, applies those that pay, and proves the result by
		 interleaved runs with a confidence interval. It needs neither root nor
		 performance counters.
	FIELDS
}

# Debian's and Ubuntu's qemu-user is static from version 9 on, and loads no plugins.
build_simulator() {
	build tollfree-simulator GPL-2.0-only <<-FIELDS
		Depends: tollfree (= $version), libc6 (>= 2.28), qemu-user (>= 1:6.0), qemu-user (<< 1:9)
		Description: simulated TLB for tollfree
		 This plugin of QEMU counts the TLB misses of a program on a modelled CPU, so
		 that tollfree can observe programs on machines without performance counters.
	FIELDS
}

check_arguments deb "$@"
need dpkg-deb dpkg
need gzip gzip
prepare_in "$2"
attempt "the files of the .deb cannot be prepared" move_files "$1"
attempt "tollfree_${version}_amd64.deb cannot be built" build_tollfree
attempt "tollfree-simulator_${version}_amd64.deb cannot be built" build_simulator
for package in tollfree tollfree-simulator; do
	publish "${package}_${version}_amd64.deb" "$2"
done
