#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what one purpose needs, and nothing that is there already:
#     setup/setup.sh [--yes] demo|test|bench|lab|outside
# Packages alone need root (directly or through sudo); on a terminal it asks before it installs any, unless --yes is
# given. Everything else goes to ~/.cache/tollfree.
# Debian 12 and 13; elsewhere it says what is missing. Status 3: it could not be set up.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"

yes=
[ "${1:-}" != --yes ] || {
	yes=$1
	shift
}
purpose=${1:-}
[ -f "$here/$purpose.packages" ] || die "usage: setup/setup.sh [--yes] demo|test|bench|lab|outside"

# The Debian release, "12" or "13"; empty elsewhere.
debian_release() {
	[ -r /etc/os-release ] || return 0
	# shellcheck disable=SC1091
	(. /etc/os-release && case "${ID:-}:${VERSION_ID:-}" in
		debian:12 | debian:13) printf '%s' "$VERSION_ID" ;;
	esac)
}

# The packages of list $1 for this release.
packages_of() {
	sed -e '/^#/d' -e "s/^$release: *//" -e '/^[0-9]*:/d' "$here/$1.packages"
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
	{
		packages_of "$purpose"
		choose_rust || packages_of rust
	} | while read -r package; do
		installed "$package" || printf ' %s' "$package"
	done
}

# Ends with the exact line to type.
name_packages() {
	die "these Debian packages are missing and $1. As root, once:
    apt-get update && apt-get install --no-install-recommends$missing"
}

# Runs a command as root, or ends.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		sudo "$@"
	else
		name_packages "only root can install them"
	fi
}

install_packages() {
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	say "Debian packages to install (needs root):$missing"
	agree "Install them?" || name_packages "were not installed"
	as_root apt-get update -qq
	# shellcheck disable=SC2086
	apt-get install --assume-no --no-install-recommends $missing 2>/dev/null | grep -E '^(Need to get|After this)' || true
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
		-o APT::Keep-Downloaded-Packages=false $missing >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "apt-get could not install:$missing (the whole log: $log)"
	}
	missing=$(missing_packages)
	[ -z "$missing" ] || die "still missing after the installation:$missing"
}

# On a system that is not Debian 12 or 13 nothing is installed: what is needed is named.
check_foreign_system() {
	say "This is not Debian 12 or 13: nothing is installed here, only checked."
	for tool in gcc make; do
		have "$tool" || die "$tool is missing; install it with your system's package manager"
	done
	choose_rust || die "cargo $rust_needed or later is missing; install Rust with your system's package manager, or with rustup"
	qemu_fits qemu-x86_64 || say "No qemu-x86_64 7.2 with plugins: tollfree's simulator will not be there, the rest works."
}

# The archive that this machine's own apt takes Debian from.
debian_mirror() {
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
	[ -n "$mirror" ] || die "apt's sources name no Debian archive to take QEMU from (it is in $1)"
	printf '%s' "$mirror"
}

# apt-get with an apt root of its own: the machine's sources, lists and packages stay untouched.
private_apt() {
	apt-get -qq -o Dir="$root" -o Dir::State::status="$root/status" -o APT::Sandbox::User= \
		-o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

# unpack_package SUITE... PACKAGE: a package of another suite with its libraries, unpacked in $root/files.
unpack_package() {
	root=$cache/apt.$$
	trap 'rm -rf "$root"' EXIT
	mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/apt/preferences.d" "$root/var/lib/apt/lists/partial" \
		"$root/var/cache/apt/archives/partial" "$root/files"
	: >"$root/status"
	while [ $# -gt 1 ]; do
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch=amd64] %s %s main\n' \
			"$(debian_mirror "$1")" "$1" >>"$root/etc/apt/sources.list"
		newest=$1
		shift
	done
	private_apt update
	private_apt -t "$newest" install --download-only -y "$1" >/dev/null
	for archive in "$root"/var/cache/apt/archives/*.deb; do
		case ${archive##*/} in
		# The C library stays the machine's own: plugins are linked with it.
		libc6_* | libgcc-s1_* | gcc-*-base_* | libcrypt1_*) ;;
		*) dpkg -x "$archive" "$root/files" ;;
		esac
	done
}

# Where the machine's own QEMU is not the one that the simulator needs (Debian 13's is static and takes no plugins):
# Debian 12's package with its libraries, unpacked privately.
unpack_qemu_user() {
	target=$cache/qemu-user-7.2
	! qemu_fits qemu-x86_64 || return 0
	! qemu_fits "$cache/bin/qemu-x86_64" || return 0
	say "Unpacking Debian 12's qemu-user 7.2 into $target (about 30 MB to download)"
	unpack_package bookworm qemu-user
	rm -rf "$target"
	mkdir -p "$target/bin" "$target/lib"
	cp "$root/files/usr/bin/qemu-x86_64" "$target/lib/qemu-x86_64"
	find "$root/files" -name '*.so*' -path '*x86_64-linux-gnu*' ! -path '*/gconv/*' -exec cp -P {} "$target/lib/" \;
	qemu_wrapper >"$target/bin/qemu-x86_64"
	chmod +x "$target/bin/qemu-x86_64"
	mkdir -p "$cache/bin"
	ln -sf ../qemu-user-7.2/bin/qemu-x86_64 "$cache/bin/qemu-x86_64"
	qemu_fits "$cache/bin/qemu-x86_64" || die "the unpacked $target does not run"
}

# The emulator of the lab's guests: Debian 13 has version 10, for Debian 12 its backport is unpacked privately.
unpack_qemu_system() {
	target=$cache/qemu-system-10
	! system_qemu_fits qemu-system-x86_64 || return 0
	! system_qemu_fits "$cache/bin/qemu-system-x86_64" || return 0
	say "Unpacking QEMU 10 of Debian 12's backports into $target (about 80 MB to download)"
	unpack_package bookworm bookworm-backports qemu-system-x86
	rm -rf "$target"
	mkdir -p "$target/bin" "$cache/bin"
	mv "$root/files" "$target/root"
	system_qemu_wrapper >"$target/bin/qemu-system-x86_64"
	chmod +x "$target/bin/qemu-system-x86_64"
	ln -sf ../qemu-system-10/bin/qemu-system-x86_64 "$cache/bin/qemu-system-x86_64"
	system_qemu_fits "$cache/bin/qemu-system-x86_64" || die "the unpacked $target does not run"
}

# Its libraries are found by a variable, and not by calling the loader: it finds its modules beside its own file.
system_qemu_wrapper() {
	cat <<'WRAPPER'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/../root
libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$libraries exec "$root/usr/bin/qemu-system-x86_64" \
	-L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"
WRAPPER
}

# Shells in the lab's kernels; the version is pinned.
install_virtme() {
	venv=$cache/lab/venv
	! "$venv/bin/vng" --version 2>/dev/null | grep -q "$virtme_version" || return 0
	say "Installing virtme-ng $virtme_version into $venv (about 20 MB)"
	mkdir -p "$cache/lab"
	{ python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "virtme-ng==$virtme_version"; } >>"$log" 2>&1 ||
		die "virtme-ng could not be installed into $venv (see $log)"
}
virtme_version=1.42

# The loader is called by hand, so that no LD_LIBRARY_PATH reaches the simulated program.
qemu_wrapper() {
	cat <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/../lib
exec /lib64/ld-linux-x86-64.so.2 --library-path "$here" "$here/qemu-x86_64" "$@"
WRAPPER
}

[ "$(uname -s):$(uname -m)" = Linux:x86_64 ] || die "only Linux on x86-64 for now; this is $(uname -s) on $(uname -m)"
mkdir -p "$cache"
log=$cache/setup.log
release=$(debian_release)
if [ -n "$release" ]; then
	install_packages
	case $purpose in
	lab) unpack_qemu_user && unpack_qemu_system && install_virtme ;;
	*) unpack_qemu_user ;;
	esac
else
	check_foreign_system
fi
