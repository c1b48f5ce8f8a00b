# SPDX-License-Identifier: MIT OR Apache-2.0
# What the set-up takes from other suites of Debian's archive, into the cache. POSIX sh, sourced by setup.sh.
# shellcheck shell=sh disable=SC2034,SC2154

kernel_package=linux-source-6.12
kernel_sources=$cache/lab/source
# Debian's configuration and exported symbols, from which packaging/kernel-deb.sh starts: VERSION/FLAVOUR.
kernel_headers=$cache/kernel-deb/headers
kernel_flavours='amd64 cloud-amd64'
virtme_version=1.42

# Empties the directory in which files are prepared before they are renamed, and removes it at the end. One set-up at a
# time prepares files, so anything in it was left by an interrupted one.
prepare() {
	part=$cache/unpack
	[ -n "${prepared:-}" ] || {
		exec 9>"$cache/setup.lock"
		! have flock || flock 9
		prepared=yes
		trap 'rm -rf "$part"' EXIT
		trap 'exit 130' HUP INT TERM
	}
	rm -rf "$part"
	mkdir -p "$part/files"
}

# Prints the Debian archive in this machine's apt sources.
debian_archive() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1
}

# private_sources SUITE...: prepares a private apt root with suites of the archive that this machine uses. The machine's
# own sources, lists and packages stay unchanged.
private_sources() {
	archive=$(debian_archive)
	[ -n "$archive" ] || die "apt's sources name no Debian archive to take $* from"
	prepare
	apt=$part/apt
	mkdir -p "$apt/etc/apt/apt.conf.d" "$apt/etc/apt/preferences.d" "$apt/var/lib/apt/lists/partial" \
		"$apt/var/cache/apt/archives/partial"
	: >"$apt/status"
	for suite in "$@"; do
		case $suite in
		# Security suites are in an archive beside the main one.
		*-security) from=${archive%/}-security ;;
		*) from=$archive ;;
		esac
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch=amd64] %s %s main\n' \
			"$from" "$suite" >>"$apt/etc/apt/sources.list"
	done
}

private_apt() {
	apt-get -qq -o Dir="$apt" -o Dir::State::status="$apt/status" -o APT::Sandbox::User= \
		-o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

private_cache() {
	apt-cache -o Dir="$apt" -o Dir::State::status="$apt/status" "$@"
}

# unpack_package SUITE... PACKAGE: unpacks a package of the last suite with its libraries in $part/files.
unpack_package() {
	suites=
	while [ $# -gt 1 ]; do
		suites="$suites $1" newest=$1
		shift
	done
	# shellcheck disable=SC2086
	private_sources $suites
	attempt "$1 of $newest could not be had from $archive" fetch_and_unpack "$1"
}

fetch_and_unpack() {
	private_apt update && private_apt -t "$newest" install --download-only -y "$1" || return 1
	for package in "$apt"/var/cache/apt/archives/*.deb; do
		case ${package##*/} in
		# Keep the machine's own C library: plugins are linked with it.
		libc6_* | libgcc-s1_* | gcc-*-base_* | libcrypt1_*) ;;
		*) dpkg -x "$package" "$part/files" || return 1 ;;
		esac
	done
}

# Moves $part/new to directory $1 of the cache, and links its program $2 in the cache's bin.
keep() {
	rm -rf "${cache:?}/$1" && mv "$part/new" "$cache/$1" && mkdir -p "$cache/bin" && ln -sf "../$1/bin/$2" "$cache/bin/$2"
}

# Unpacks Debian 12's qemu-user with its libraries, if the machine's own QEMU does not fit the simulator (Debian 13's is
# static and does not support plugins).
unpack_qemu_user() {
	! qemu_fits qemu-x86_64 || return 0
	! qemu_fits "$cache/bin/qemu-x86_64" || return 0
	say "Unpacking Debian 12's qemu-user 7.2 into $cache/qemu-user-7.2 (about 30 MB to download)"
	unpack_package bookworm qemu-user
	attempt "$cache/qemu-user-7.2 could not be written" make_qemu_user
	qemu_fits "$part/new/bin/qemu-x86_64" || die "Debian 12's qemu-user does not run here"
	attempt "$cache/qemu-user-7.2 could not be written" keep qemu-user-7.2 qemu-x86_64
}

make_qemu_user() {
	mkdir -p "$part/new/bin" "$part/new/lib" &&
		cp "$part/files/usr/bin/qemu-x86_64" "$part/new/lib/qemu-x86_64" &&
		find "$part/files" -name '*.so*' -path '*x86_64-linux-gnu*' ! -path '*/gconv/*' \
			-exec cp -P {} "$part/new/lib/" \; &&
		qemu_wrapper >"$part/new/bin/qemu-x86_64" &&
		chmod +x "$part/new/bin/qemu-x86_64"
}

# Calls the loader directly, so that the simulated program inherits no LD_LIBRARY_PATH.
qemu_wrapper() {
	cat <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/../lib
exec /lib64/ld-linux-x86-64.so.2 --library-path "$here" "$here/qemu-x86_64" "$@"
WRAPPER
}

# Unpacks the emulator of the lab's guests: Debian 13 has version 10, Debian 12 has it in its backports.
unpack_qemu_system() {
	! system_qemu_fits qemu-system-x86_64 || return 0
	! system_qemu_fits "$cache/bin/qemu-system-x86_64" || return 0
	say "Unpacking QEMU 10 of Debian 12's backports into $cache/qemu-system-10 (about 80 MB to download)"
	unpack_package bookworm bookworm-backports qemu-system-x86
	attempt "$cache/qemu-system-10 could not be written" make_qemu_system
	system_qemu_fits "$part/new/bin/qemu-system-x86_64" || die "QEMU 10 of Debian 12's backports does not run here"
	attempt "$cache/qemu-system-10 could not be written" keep qemu-system-10 qemu-system-x86_64
}

make_qemu_system() {
	mkdir -p "$part/new/bin" &&
		mv "$part/files" "$part/new/root" &&
		system_qemu_wrapper >"$part/new/bin/qemu-system-x86_64" &&
		chmod +x "$part/new/bin/qemu-system-x86_64"
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

# Whether the set-up unpacked the kernel's source already.
have_kernel_source() {
	[ -n "$(find "$kernel_sources" -maxdepth 1 -name '*.tar.xz' 2>/dev/null | head -n 1)" ]
}

# Takes the kernel's source from this release's security or backports suite, where its package is not installed.
unpack_kernel_source() {
	! installed "$kernel_package" || return 0
	! have_kernel_source || return 0
	say "Downloading the source of Linux 6.12 into $kernel_sources (about 150 MB)"
	for newest in "$codename-security" "$codename-backports"; do
		private_sources "$newest"
		! fetch_kernel_source >>"$log" 2>&1 || return 0
	done
	die "$kernel_package could not be had from the security or backports suite of $archive: $(reason) (the whole log: $log)"
}

fetch_kernel_source() {
	private_apt update && (cd "$part" && private_apt download "$kernel_package") || return 1
	for package in "$part/$kernel_package"_*.deb; do
		dpkg -x "$package" "$part/files" && mkdir -p "$kernel_sources" &&
			mv "$part/files/usr/src/$kernel_package.tar.xz" "$kernel_sources/$(dpkg-deb -f "$package" Version).tar.xz"
	done
}

# Prints the file with the packed source of the kernel, that of the installed package first; nothing if there is none.
kernel_archive() {
	if installed "$kernel_package" && [ -f "/usr/src/$kernel_package.tar.xz" ]; then
		say "/usr/src/$kernel_package.tar.xz"
	else
		find "$kernel_sources" -maxdepth 1 -name '*.tar.xz' 2>/dev/null | sort | tail -n 1
	fi
}

# Prints the version of that package.
kernel_version() {
	archive=$(kernel_archive)
	case $archive in
	'') ;;
	/usr/src/*) dpkg-query -W -f '${Version}\n' "$kernel_package" ;;
	*) basename "$archive" .tar.xz ;;
	esac
}

# Takes the configuration and the exported symbols of Debian's kernel of the same version from its package of headers.
unpack_kernel_headers() {
	version=$(kernel_version)
	for flavour in $kernel_flavours; do
		[ ! -d "$kernel_headers/$version/$flavour" ] || continue
		say "Downloading the headers of Linux $version, $flavour, into $kernel_headers (about 4 MB)"
		get_kernel_headers ||
			die "Debian's headers of Linux $version, $flavour, could not be had: $(reason) (the whole log: $log)"
	done
}

# The machine's own suites first, then this release's others.
get_kernel_headers() {
	prepare
	! fetch_kernel_headers apt-get apt-cache >>"$log" 2>&1 || return 0
	for newest in "$codename-security" "$codename-backports"; do
		private_sources "$newest"
		! { private_apt update && fetch_kernel_headers private_apt private_cache; } >>"$log" 2>&1 || return 0
	done
	return 1
}

# fetch_kernel_headers APT-GET APT-CACHE: the name of the package has the release of the kernel, 6.12.117+deb12.
fetch_kernel_headers() {
	for package in $("$2" search --names-only "^linux-headers-${version%%-*}[^-]*-$flavour\$" | cut -d ' ' -f 1); do
		(cd "$part" && "$1" download "$package=$version") || continue
		dpkg -x "$part/$package"_*.deb "$part/files" && keep_kernel_headers "$part/files/usr/src/$package" && return 0
	done
	say "E: there is no package linux-headers-${version%%-*}*-$flavour of version $version" >&2
	return 1
}

keep_kernel_headers() {
	mkdir -p "$part/new" "$kernel_headers/$version" &&
		mv "$1/.config" "$part/new/config" && mv "$1/Module.symvers" "$1/vmlinux" "$part/new" &&
		mv "$part/new" "$kernel_headers/$version/$flavour"
}

# Installs the tool for shells in the lab's kernels; the version is pinned. A virtual environment cannot be renamed.
install_virtme() {
	venv=$cache/lab/venv
	! "$venv/bin/vng" --version 2>/dev/null | grep -q "$virtme_version" || return 0
	say "Installing virtme-ng $virtme_version into $venv (about 20 MB)"
	rm -rf "$venv"
	{ mkdir -p "$cache/lab" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "virtme-ng==$virtme_version"; } \
		>>"$log" 2>&1 || {
		rm -rf "$venv"
		die "virtme-ng could not be installed into $venv: $(reason) (the whole log: $log)"
	}
}
