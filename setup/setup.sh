#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what one purpose needs, except what is installed already:
#     setup/setup.sh [--yes] demo|test|bench|lab|outside|packages|roots|kernel-deb
# Only packages need root (directly or through sudo); on a terminal it asks before it installs any, unless --yes is
# given. Everything else goes to ~/.cache/tollfree.
# Knows Debian, Ubuntu, Fedora, Arch and openSUSE (docs/guide/install.md); elsewhere it names what is missing.
# Status 3: the set-up failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=system.sh
. "$here/system.sh"
# shellcheck source=unpack.sh
. "$here/unpack.sh"

yes=
[ "${1:-}" != --yes ] || {
	yes=$1
	shift
}
purpose=${1:-}
case $purpose in
demo | test | bench | lab | outside | packages | roots | kernel-deb) ;;
*) die "usage: setup/setup.sh [--yes] demo|test|bench|lab|outside|packages|roots|kernel-deb" ;;
esac

needs_rust() {
	[ "$purpose" != roots ] && [ "$purpose" != kernel-deb ]
}

# Prints the packages to install.
missing_packages() {
	{
		packages_of "$purpose"
		! needs_rust || choose_rust || packages_of rust
	} | while read -r package; do
		installed "$package" || comes_unpacked "$package" || printf ' %s' "$package"
	done
}

# Whether package $1 is the kernel's source, and it is unpacked without root because this machine's suites lack it.
comes_unpacked() {
	[ "$1" = "$kernel_package" ] && { have_kernel_source || ! apt_may_have "$1"; }
}

# Ends with the command to type.
name_packages() {
	die "these packages are missing and $1. As root, once:
    $(install_command)$missing"
}

# Sets $as_root to the command that runs another as root, or ends with the packages to install.
become_root() {
	if [ "$(id -u)" = 0 ]; then
		as_root=
	elif have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		as_root=sudo
	else
		name_packages "only root can install them"
	fi
}

install_packages() {
	[ -n "$(packages_of "$purpose")" ] || die "'$purpose' is supported on Debian only; this is $release"
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	say "Packages to install (needs root):$missing"
	agree "Install them?" || name_packages "were not installed"
	become_root
	attempt "the package lists could not be updated" update_lists
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086
	print_size $missing
	# shellcheck disable=SC2086
	attempt "the packages could not be installed" install_now $missing
	missing=$(missing_packages)
	[ -z "$missing" ] || die "still missing after the installation:$missing"
}

# Names what is missing on a system with unknown names of packages.
check_unknown_system() {
	say "The set-up does not know this system: nothing is installed. Debian's names of what it needs:"
	# shellcheck disable=SC2046
	say "   " $(system=debian release=debian-13 packages_of "$purpose")
	for tool in gcc make; do
		have "$tool" || die "$tool is missing; install the package that has it (Debian's is $tool)"
	done
}

# The simulator is optional, and only Debian's apt can check the archive that has a QEMU for it.
get_qemu_user() {
	if [ "$system" = debian ]; then
		unpack_qemu_user
	elif ! qemu_fits qemu-x86_64; then
		say "There is no qemu-x86_64 6.0 to 11.x with plugins: tollfree's simulator will be missing, the rest works."
	fi
}

# The kernel's source and the emulator of guests.
get_lab() {
	if [ "$system" = debian ]; then
		unpack_kernel_source
		unpack_qemu_system
	else
		have_kernel_source || die "the lab needs the file $kernel_package.tar.xz of Debian's package: copy it to $kernel_sources/VERSION.tar.xz"
		system_qemu_fits qemu-system-x86_64 || die "the lab needs qemu-system-x86_64 10 with plugins"
	fi
	install_virtme
}

[ "$(uname -s):$(uname -m)" = Linux:x86_64 ] || die "only Linux on x86-64 for now; this is $(uname -s) on $(uname -m)"
{ mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; } ||
	die "$cache cannot be written: name another directory in XDG_CACHE_HOME"
log=$cache/setup.log
: >"$log"
identify_system
if [ -n "$system" ]; then
	install_packages
else
	check_unknown_system
fi
if [ "$purpose" = kernel-deb ]; then
	unpack_kernel_source
	unpack_kernel_headers
fi
needs_rust || exit 0
[ "$purpose" != packages ] || exit 0
choose_rust || die "no cargo $rust_needed or later: the packages of this system are older; install Rust with rustup"
get_qemu_user
[ "$purpose" != lab ] || get_lab
