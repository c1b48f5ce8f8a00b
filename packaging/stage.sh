#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packaging/stage.sh DIRECTORY: builds the files of an installation below DIRECTORY/usr, for every package format, and their
# debug information below DIRECTORY-debug/usr.
#   tollfree            static, with musl: it runs on each distribution
#   libtoll_preload.so  for the glibc of the target, 2.28 or later (old_glibc.c explains how)
#   libtoll_user*.so    the plugins for QEMU, likewise
#   NOTICES.txt         the licences of what the first two contain from other projects
# Status 3: something is missing, or the build failed; DIRECTORY is as before.
set -eu
cd -P "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh
# shellcheck source=lib.sh
. packaging/lib.sh

stage=${1:-}
[ -n "$stage" ] || die "usage: packaging/stage.sh DIRECTORY"
musl=x86_64-unknown-linux-musl
glibc=x86_64-unknown-linux-gnu
target=${CARGO_TARGET_DIR:-target}

has_musl() {
	[ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]
}

# Of the distributions' Rust packages, Debian's and Ubuntu's lack this target.
get_musl() {
	! has_musl || return 0
	if have rustup; then
		say "Adding the Rust target $musl (about 40 MB to download)"
		attempt "rustup cannot add the Rust target $musl" rustup target add "$musl"
	fi
	has_musl || die "$(command -v rustc) has no target $musl, which the static executable needs: install Rust with rustup"
}

# Paths of this machine do not belong in a package. rustc records the directory in which it runs without symbolic links, and
# cargo runs it in that of each dependency. Flags are separated by the character 31, because a path may have spaces.
set_rust_flags() {
	flags="" cargo=${CARGO_HOME:-$HOME/.cargo}
	for place in "$PWD=/tollfree" "$cargo=/cargo" "$(readlink -m "$cargo/registry")=/cargo/registry" \
		"$(rustc --print sysroot)=/rust"; do
		flags="$flags--remap-path-prefix=$place$(printf '\037')"
	done
	export CARGO_ENCODED_RUSTFLAGS="$flags-Clink-arg=-Wl,--build-id"
}

build_tollfree() {
	cargo build --release --locked -p tollfree --target "$musl" && cp "$target/$musl/release/tollfree" "$built"
}

# libdl has dlsym before glibc 2.34, and is empty since. The object's path is fixed, because cargo hashes the arguments.
build_preload() {
	mkdir -p "$target/$glibc" && cc -O2 -Wall -fPIC -fvisibility=hidden -c packaging/old_glibc.c -o "$target/$glibc/old_glibc.o" &&
		cargo rustc --release --locked -p toll-preload --target "$glibc" -- -C "link-arg=$target/$glibc/old_glibc.o" \
			-C link-arg=-Wl,--no-as-needed,-l:libdl.so.2,--as-needed &&
		cp "$target/$glibc/release/libtoll_preload.so" "$built"
}

build_plugins() {
	make -C plugins "BUILD=$part/plugin" simulators LDFLAGS=-Wl,--build-id \
		"CFLAGS=-O2 -g -ffile-prefix-map=$PWD=/tollfree -include ../packaging/old_glibc_plugin.h" &&
		cp "$part"/plugin/libtoll_user*.so "$built"
}

# split FILE: moves its debug information to where debuggers look for it.
split() {
	id=$(readelf -n "$1" | sed -n 's/^ *Build ID: //p')
	debug=$part/debug/usr/lib/debug/.build-id/$(printf %.2s "$id")
	mkdir -p "$debug" &&
		objcopy --only-keep-debug "$1" "$debug/${id#??}.debug" && chmod 644 "$debug/${id#??}.debug" &&
		strip --strip-unneeded --remove-section=.comment "$1"
}

choose_rust || die "no cargo $rust_needed or later: install Rust with rustup"
need cc gcc
need objcopy binutils
need python3 python3
prepare_in "$(dirname "$stage")"
get_musl
set_rust_flags
built=$part/built
mkdir "$built"
attempt "tollfree cannot be built" build_tollfree
attempt "the preload library cannot be built" build_preload
attempt "the simulator's plugins cannot be built" build_plugins
for file in "$built"/*.so; do
	attempt "${file##*/}" packaging/check-glibc.sh "$file"
done
for file in "$built"/*; do
	attempt "the debug information of ${file##*/} cannot be split off" split "$file"
done
attempt "the files cannot be installed in $part" setup/install.sh stage "$part/new/usr" "$built"
attempt "the licence notices cannot be written" python3 -B packaging/notices.py "$part/new/usr/share/doc/tollfree/NOTICES.txt"
find "$part/new" "$part/debug" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rm -rf "$stage" "$stage-debug"
mv "$part/debug" "$stage-debug"
mv "$part/new" "$stage"
