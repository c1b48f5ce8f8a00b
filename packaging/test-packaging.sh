#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the scripts of packaging in bad conditions, with stubs of the compilers, and of the packages of a small
# stage. Compiles and installs nothing.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/stubs.sh
. setup/stubs.sh
checkout=$fake/checkout
stage=$checkout/target/stage
packages=$checkout/target/packages
musl=x86_64-unknown-linux-musl
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

# fresh: a checkout, and a machine with Rust but without the target and without rustup.
fresh() {
	rm -rf "$checkout" "$bin" "$fake/sysroot"
	mkdir -p "$bin" "$checkout/plugins" "$fake/sysroot"
	cp -R Cargo.toml CHANGELOG.md LICENSES schemas setup packaging "$checkout"
	stub cargo 'case $1 in --version) echo "cargo 1.85.0" ;; *) exit 1 ;; esac'
	stub rustc "case \$1 in --version) echo 'rustc 1.85.0' ;; *) echo $fake/sysroot ;; esac"
}

# run SCRIPT ARGUMENT...: runs a script of the checkout; sets $said and $status.
run() {
	status=0
	script=$checkout/packaging/$1
	shift
	said=$(exec env -u CARGO_TARGET_DIR -u XDG_CACHE_HOME -u GIT_DIR SOURCE_DATE_EPOCH="${epoch-1700000000}" HOME="$fake" \
		PATH="$bin:/usr/bin:/bin" sh "$script" "$@" </dev/null 2>&1) || status=$?
}

# ends STATUS LINE: the last script ended so, and printed this line last. Nothing incomplete is left.
ends() {
	[ "$status" = "$1" ] || wrong "expected status $1"
	[ "$(printf '%s\n' "$said" | tail -n 1)" = "$2" ] || wrong "expected the line: $2"
	[ -z "$(find "$checkout" -name '.part*')" ] || wrong "expected no incomplete files"
}

# small_stage: files in place of a build's.
small_stage() {
	for file in bin/tollfree lib/tollfree/libtoll_preload.so lib/tollfree/libtoll_user.so lib/tollfree/libtoll_user-2.so \
		share/man/man1/tollfree.1 share/bash-completion/completions/tollfree \
		share/fish/vendor_completions.d/tollfree.fish share/zsh/site-functions/_tollfree \
		share/tollfree/schemas/plan.schema.json share/doc/tollfree/CHANGELOG.md share/doc/tollfree/Apache-2.0.txt \
		share/doc/tollfree/MIT.txt share/doc/tollfree/GPL-2.0-only.txt share/doc/tollfree/NOTICES.txt; do
		mkdir -p "$stage/usr/${file%/*}"
		echo "$file" >"$stage/usr/$file"
	done
	chmod 755 "$stage/usr/bin/tollfree"
}

# as_before TEXT: the stage that an earlier build made is still there.
as_before() {
	[ "$(cat "$stage/usr/bin/tollfree")" = "$1" ] || wrong "expected the stage of the earlier build"
}

# A checkout without history does not know the time of its packages.
fresh
epoch=''
run stage.sh "$stage"
ends 3 "tollfree: the checkout has no git history to take the time of the packages from: set SOURCE_DATE_EPOCH"
unset epoch

# No Rust target.
if [ ! -x /usr/bin/rustup ]; then
	run stage.sh "$stage"
	ends 3 "tollfree: $bin/rustc has no target $musl, which the static executable needs: install Rust with rustup"
	[ ! -e "$stage" ] || wrong "expected no stage"
fi
stub rustup 'echo "error: could not download file" >&2; exit 1'
small_stage
run stage.sh "$stage"
ends 3 "tollfree: rustup cannot add the Rust target $musl: error: could not download file"
as_before bin/tollfree

# The build fails, or fills the disk.
stub rustup "mkdir -p $fake/sysroot/lib/rustlib/\$3"
stub cargo 'case $1 in --version) echo "cargo 1.85.0" ;; *) echo "error: could not compile" >&2; exit 101 ;; esac'
run stage.sh "$stage"
ends 3 "tollfree: tollfree cannot be built: error: could not compile"
as_before bin/tollfree
stub cargo 'case $1 in --version) echo "cargo 1.85.0" ;; *) echo "rustc-LLVM ERROR: No space left on device" >&2; exit 101 ;; esac'
run stage.sh "$stage"
ends 3 "tollfree: tollfree cannot be built: the disk is full"
as_before bin/tollfree
run stage.sh
ends 3 "tollfree: usage: packaging/stage.sh DIRECTORY"

# A library that needs a newer glibc than the packages promise.
stub objdump 'echo "0 DF *UND* 0 (GLIBC_2.34) dlsym"; echo "0 DF *UND* 0 GLIBC_2.2.5 read"'
run check-glibc.sh library.so
ends 1 "library.so: needs glibc 2.34 for dlsym; the packages promise 2.28"
stub objdump 'echo "0 DF *UND* 0 (GLIBC_2.28) statx"'
run check-glibc.sh library.so
ends 0 ""
stub objdump 'echo "objdump: library.so: no such file" >&2; exit 1'
run check-glibc.sh library.so
[ "$status" = 3 ] || wrong "expected status 3"

# The packages: wrong arguments, places that cannot be written, a full disk, an interruption.
while read -r format tool full; do
	command -v "$tool" >/dev/null || continue
	fresh
	run $format.sh "$stage"
	ends 3 "tollfree: usage: packaging/$format.sh STAGE OUTPUT"
	run $format.sh "$stage" "$packages"
	ends 3 "tollfree: $stage has no staged files: run packaging/stage.sh $stage"
	small_stage
	: >"$packages"
	run $format.sh "$stage" "$packages"
	ends 3 "tollfree: $packages cannot be written"
	rm "$packages"

	run $format.sh "$stage" "$packages"
	[ "$status" = 0 ] || wrong "expected a package"
	mv "$packages" "$fake/first"
	find "$stage" -exec touch -d 2001-02-03 {} +
	run $format.sh "$stage" "$packages"
	diff -r "$fake/first" "$packages" || wrong "expected equal packages of equal files"
	rm -r "$fake/first"

	echo changed >"$stage/usr/bin/tollfree"
	cp -R "$packages" "$fake/before"
	stub "$tool" 'echo "cannot write: No space left on device" >&2; exit 2'
	run $format.sh "$stage" "$packages"
	ends 3 "tollfree: $full: the disk is full"
	stub "$tool" 'exit 2'
	run $format.sh "$stage" "$packages"
	ends 3 "tollfree: $full: no message could be kept; is the disk of $packages full?"
	stub "$tool" 'kill -TERM $PPID; sleep 1'
	run $format.sh "$stage" "$packages" 2>/dev/null
	ends 130 "$said"
	diff -r "$fake/before" "$packages" || wrong "expected the packages of the earlier build"
	rm -r "$fake/before"
done <<FORMATS
tarball tar tollfree-$version-x86_64-linux.tar.xz cannot be written
deb dpkg-deb tollfree_${version}_amd64.deb cannot be built
rpm rpmbuild the .rpm cannot be built
wheel python3 tollfree-$version-py3-none-manylinux_2_28_x86_64.whl cannot be written
container podman tollfree-$version-x86_64.oci.tar cannot be built
FORMATS

# What Debian has elsewhere, and the description of each package.
if command -v dpkg-deb >/dev/null; then
	fresh
	small_stage
	run deb.sh "$stage" "$packages"
	for file in usr/bin/tollfree usr/lib/tollfree/libtoll_preload.so usr/share/zsh/vendor-completions/_tollfree \
		usr/share/man/man1/tollfree.1.gz usr/share/doc/tollfree/copyright usr/share/doc/tollfree/changelog.gz \
		usr/share/doc/tollfree/NOTICES.txt.gz; do
		dpkg-deb -c "$packages"/tollfree_*.deb | grep " root/root .* \./$file\$" >/dev/null || wrong "expected $file"
	done
	[ "$(dpkg-deb -c "$packages"/tollfree-simulator_*.deb | grep -c ' \./usr/lib/tollfree/libtoll_user.*\.so$')" = 2 ] ||
		wrong "expected both plugins"
	[ "$(dpkg-deb -f "$packages"/tollfree_*.deb Version)" = "$version" ] || wrong "expected the version of Cargo.toml"
fi

# In an .rpm, every file is root's, and each staged file is in one of the two.
if command -v rpmbuild >/dev/null; then
	fresh
	small_stage
	run rpm.sh "$stage" "$packages"
	owned() {
		rpm -qp --queryformat '[%{FILEUSERNAME} %{FILENAMES}\n]' "$packages/$1-$version-1.x86_64.rpm"
	}
	owned tollfree | grep -q -x 'root /usr/bin/tollfree' || wrong "expected tollfree"
	! owned tollfree | grep -q libtoll_user || wrong "expected the plugin in the other package only"
	owned tollfree-simulator | grep -q -x 'root /usr/lib/tollfree/libtoll_user.so' || wrong "expected the plugin"
	: >"$stage/usr/share/new"
	run rpm.sh "$stage" "$packages"
	ends 3 "tollfree: the .rpm cannot be built: error: Installed (but unpackaged) file(s) found:"
fi

# Python has other names for versions before a release.
fresh
small_stage
sed -i 's/^version = ".*"$/version = "0.2.0-rc.1"/' "$checkout/Cargo.toml"
run wheel.sh "$stage" "$packages"
ends 3 "tollfree: version 0.2.0-rc.1 is not a release: pip accepts no wheel of it"
[ ! -e "$packages" ] || wrong "expected no package"

# Only root can test the packages.
fresh
stub id 'echo 1000'
run test.sh
ends 3 "tollfree: only root can make and enter the roots"
run packages.sh zip
ends 3 "tollfree: no such format: zip (tarball deb rpm wheel container)"
