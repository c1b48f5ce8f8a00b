#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what one purpose needs, except what is installed already:
#     setup/setup.sh [--yes] demo|test|bench|lab|outside
# Only packages need root (directly or through sudo); on a terminal it asks before it installs any, unless --yes is
# given. Everything else goes to ~/.cache/tollfree.
# Supports Debian 12 and 13; on other systems it lists what is missing. Status 3: the set-up failed.
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

# Prints the Debian release, "12" or "13"; nothing on other systems.
debian_release() {
	[ -r /etc/os-release ] || return 0
	# shellcheck disable=SC1091
	(. /etc/os-release && case "${ID:-}:${VERSION_ID:-}" in
		debian:12 | debian:13) printf '%s' "$VERSION_ID" ;;
	esac)
}

# Prints the packages of list $1 for this release.
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

# Ends with the command to type.
name_packages() {
	die "these Debian packages are missing and $1. As root, once:
    apt-get update && apt-get install --no-install-recommends$missing"
}

# Runs a command as root, or ends with the packages to install.
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

# On other systems nothing is installed: lists what is needed.
check_foreign_system() {
	say "This is not Debian 12 or 13: nothing is installed here, only checked."
	for tool in gcc make; do
		have "$tool" || die "$tool is missing; install it with your system's package manager"
	done
	choose_rust || die "cargo $rust_needed or later is missing; install Rust with your system's package manager, or with rustup"
	qemu_fits qemu-x86_64 || say "No qemu-x86_64 7.2 with plugins: tollfree's simulator will be missing, the rest works."
}

# Prints the Debian archive in this machine's apt sources.
debian_mirror() {
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
	[ -n "$mirror" ] || die "apt's sources name no Debian archive to take QEMU from (it is in $1)"
	printf '%s' "$mirror"
}

# Runs apt-get with a private apt root: the machine's sources, lists and packages stay unchanged.
private_apt() {
	apt-get -qq -o Dir="$root" -o Dir::State::status="$root/status" -o APT::Sandbox::User= \
		-o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

# unpack_package SUITE... PACKAGE: unpacks a package of another suite with its libraries in $root/files.
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
		# Keep the machine's own C library: plugins are linked with it.
		libc6_* | libgcc-s1_* | gcc-*-base_* | libcrypt1_*) ;;
		*) dpkg -x "$archive" "$root/files" ;;
		esac
	done
}

# Unpacks Debian 12's qemu-user with its libraries, if the machine's own QEMU is not the version that the simulator needs
# (Debian 13's is static and does not support plugins).
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

# Unpacks the emulator of the lab's guests: Debian 13 has version 10, Debian 12 has it in its backports.
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

# Sets LD_LIBRARY_PATH instead of calling the loader, because QEMU searches its modules beside its own file.
system_qemu_wrapper() {
	cat <<'WRAPPER'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/../root
libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$libraries exec "$root/usr/bin/qemu-system-x86_64" \
	-L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"
WRAPPER
}

# Installs the tool for shells in the lab's kernels; the version is pinned.
install_virtme() {
	venv=$cache/lab/venv
	! "$venv/bin/vng" --version 2>/dev/null | grep -q "$virtme_version" || return 0
	say "Installing virtme-ng $virtme_version into $venv (about 20 MB)"
	mkdir -p "$cache/lab"
	{ python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "virtme-ng==$virtme_version"; } >>"$log" 2>&1 ||
		die "virtme-ng could not be installed into $venv (see $log)"
}
virtme_version=1.42

# Calls the loader directly, so that the simulated program inherits no LD_LIBRARY_PATH.
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
