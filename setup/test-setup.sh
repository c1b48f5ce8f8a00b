#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of setup/setup.sh on each distribution and in bad conditions, with stubs of package managers. Installs nothing.
set -eu
cd "$(dirname "$0")"
# shellcheck source=stubs.sh
. ./stubs.sh
home=$fake/home
cached=$home/.cache/tollfree

# fresh: a home and stubs on a machine where nothing is installed, no package manager works, and Rust is new enough.
fresh() {
	rm -rf "$fake/called" "$bin" "$home"
	mkdir -p "$bin" "$home"
	for name in apt-get dnf pacman zypper; do
		stub $name 'case $1 in -T) ;; *) echo "$*" >>"$(dirname "$0")/../called" ;; esac; exit 1'
	done
	stub apt-cache 'exit 0'
	stub dpkg-query 'exit 1'
	stub rpm 'exit 1'
	stub sudo 'exit 1'
	stub id 'echo 1000'
	stub cargo 'echo "cargo 1.85.0"'
	stub rustc 'echo "rustc 1.85.0"'
	stub qemu-x86_64 'echo "qemu-x86_64 version 8.2.2"; echo -plugin'
	stub qemu-system-x86_64 'echo "QEMU emulator version 10.0.2"; echo -plugin'
}

# on ID VERSION [LIKE [CODENAME]]: writes the os-release of a distribution.
on() {
	printf 'ID="%s"\nVERSION_ID="%s"\nID_LIKE="%s"\nVERSION_CODENAME=%s\n' "$1" "$2" "${3:-}" "${4:-}" >"$fake/os-release"
}

# set_up ARGUMENT...: runs the set-up without a terminal; sets $said and $status.
set_up() {
	status=0
	said=$(exec env -u XDG_CACHE_HOME HOME="$home" PATH="$bin:$PATH" TOLLFREE_OS_RELEASE="$fake/os-release" \
		sh ./setup.sh "$@" </dev/null 2>&1) || status=$?
}

# set_up_answering ANSWER [--yes]: runs the set-up for the demo on a terminal; sets $said and $status.
set_up_answering() {
	rm -f "$fake/called"
	status=0
	said=$(printf '%s\n' "$1" | env -u XDG_CACHE_HOME HOME="$home" PATH="$bin:$PATH" TOLLFREE_OS_RELEASE="$fake/os-release" \
		script -qec "sh ./setup.sh ${2:-} demo" /dev/null 2>&1) || status=$?
}

# calls TEXT: the first call of a package manager began with TEXT.
calls() {
	case $(head -n 1 "$fake/called" 2>/dev/null) in
	"$1"*) ;;
	*) wrong "expected a call with $1, not $(cat "$fake/called" 2>&1)" ;;
	esac
}

calls_nothing() {
	[ ! -e "$fake/called" ] || wrong "expected no call, not $(cat "$fake/called")"
}

# Without root and sudo, each distribution's own command and names.
names_packages() {
	set_up "$1"
	ends 3 "only root can install them. As root, once:" "$2"
	calls_nothing
}

apt='apt-get update && apt-get install --no-install-recommends'
fresh
on debian 12
names_packages demo "$apt argon2 ca-certificates gcc libc6-dev make qemu-user"
on debian 13
names_packages demo "$apt argon2 ca-certificates gcc libc6-dev make"
on ubuntu 24.04 debian
names_packages demo "$apt argon2 ca-certificates gcc libc6-dev make qemu-user"
on linuxmint 22 "ubuntu debian"
names_packages demo "$apt argon2 ca-certificates gcc libc6-dev make"
on ubuntu 26.04 debian
names_packages test "$apt ca-certificates gcc g++ libc6-dev libjemalloc2 make patch python3 shellcheck"
on fedora 43
dnf="dnf install --setopt=install_weak_deps=False"
names_packages test "$dnf ca-certificates gcc gcc-c++ glibc-devel jemalloc make patch python3 qemu-user ShellCheck"
on almalinux 9.4 "rhel centos fedora"
names_packages demo "$dnf argon2 ca-certificates gcc glibc-devel make qemu-user"
on arch ""
names_packages test "pacman -Syu --needed ca-certificates gcc jemalloc make patch python qemu-user shellcheck"
on opensuse-tumbleweed 20261101 "opensuse suse"
names_packages test "zypper install --no-recommends ca-certificates gcc gcc-c++ glibc-devel libjemalloc2 make"

# rust_of ID VERSION NAME...: where there is no suitable Rust, these packages bring it.
rust_of() {
	on "$1" "$2"
	shift 2
	status=0
	said=$(
		here=.
		TOLLFREE_OS_RELEASE=$fake/os-release
		. ./lib.sh
		. ./system.sh
		identify_system
		packages_of rust
	)
	[ "$(echo $said)" = "$*" ] || wrong "expected $*"
}
rust_of debian 12 cargo-web rustc-web
rust_of debian 13 cargo rustc
rust_of ubuntu 24.04 cargo-1.85 rustc-1.85
rust_of ubuntu 26.04 cargo rustc
rust_of fedora 43 cargo rust
rust_of arch "" rust
rust_of opensuse-leap 16.0 cargo rust

# An old cargo does not count; a toolchain of rustup counts where rustup puts it.
if [ ! -x /usr/bin/cargo ]; then
	on arch ""
	stub cargo 'echo "cargo 1.63.0"'
	set_up demo
	ends 3 "--needed argon2 ca-certificates gcc make qemu-user rust"
	mkdir -p "$home/.cargo/bin"
	for name in cargo rustc; do
		printf '#!/bin/sh\necho "%s 1.90.0"\n' $name >"$home/.cargo/bin/$name"
		chmod +x "$home/.cargo/bin/$name"
	done
	set_up demo
	ends 3 "--needed argon2 ca-certificates gcc make qemu-user"
	case $said in *" rust"*) wrong "expected no package with Rust" ;; esac
fi

# As root, the package manager is called, and its failure is one line with the reason.
installs_by() {
	fresh
	stub id 'echo 0'
	set_up demo
	calls "$1"
	ends 3
}
on fedora 43
installs_by "install -y --setopt=install_weak_deps=False argon2"
on arch ""
installs_by "-Syu --needed --noconfirm argon2"
on opensuse-leap 16.0 "suse opensuse"
installs_by "--non-interactive install --no-recommends argon2"
on debian 12
installs_by "update -qq"
ends 3 "the package lists could not be updated"
stub sudo 'case $1 in -n) ;; *) exec "$@" ;; esac'
stub id 'echo 1000'
rm "$fake/called"
set_up demo
calls "update -qq"

failing() {
	stub apt-get "echo '$1' >&2; case \$* in *update*) exit 0;; *) exit 100;; esac"
	set_up demo
	ends 3 "tollfree: the packages could not be installed: $2 (the whole log: $cached/setup.log)"
}
failing "Temporary failure resolving deb.example" "the server cannot be reached; is there a network?"
failing "E: You do not have enough free space here." "E: You do not have enough free space here."
failing "dpkg: error: failed to write: No space left on device" "the disk is full"
failing "E: Unable to locate package argon2" "E: Unable to locate package argon2"

# On a terminal it asks first, elsewhere it does not.
fresh
stub id 'echo 0'
if command -v script >/dev/null; then
	set_up_answering n
	calls_nothing
	ends 3 "were not installed. As root, once"
	set_up_answering ''
	calls "update -qq"
	set_up_answering n --yes
	calls "update -qq"
	case $said in *"Install them"*) wrong "expected no question with --yes" ;; esac
fi
rm -f "$fake/called"
set_up demo
calls "update -qq"

# Where everything is installed, nothing is called.
fresh
everything_installed() {
	stub dpkg-query 'case $* in *linux-source*) exit 1;; esac; printf installed'
	stub rpm 'exit 0'
	stub pacman 'exit 0'
}
everything_installed
for system in "debian 13" "ubuntu 26.04" "fedora 43" "arch ''" "opensuse-leap 16.0"; do
	eval "on $system"
	set_up test
	ends 0
	[ -z "$said" ] || wrong "expected no output"
	calls_nothing
done
# Every QEMU from 6 to 11 simulates, if it has plugins.
for version in 7.2.22 9.2.4 10.1.0 11.1.3; do
	stub qemu-x86_64 "echo 'qemu-x86_64 version $version'; echo -plugin"
	for system in "debian 13" "ubuntu 26.04" "fedora 43" "arch ''" "opensuse-leap 16.0"; do
		eval "on $system"
		set_up demo
		ends 0
		[ -z "$said" ] || wrong "expected no output"
	done
done
stub qemu-x86_64 'echo "qemu-x86_64 version 10.1.0"'
for system in "ubuntu 26.04" "fedora 43" "arch ''" "opensuse-leap 16.0"; do
	eval "on $system"
	set_up demo
	ends 0 "There is no qemu-x86_64 6.0 to 11.x with plugins"
done
stub qemu-x86_64 'echo "qemu-x86_64 version 12.0.0"; echo -plugin'
on fedora 43
set_up demo
ends 0 "There is no qemu-x86_64 6.0 to 11.x with plugins"
set_up bench
ends 3 "'bench' is supported on Debian only; this is fedora-43"
set_up packages
ends 3 "'packages' is supported on Debian only; this is fedora-43"
set_up lab
ends 3 "the lab needs the file linux-source-6.12.tar.xz of Debian's package: copy it to $cached/lab/source/VERSION.tar.xz"

# An unknown system is told what Debian calls the packages.
on slackware 15
set_up demo
ends 0 "Debian's names of what it needs:" "    argon2 ca-certificates gcc libc6-dev make"
calls_nothing

# A home that cannot be written.
rm -rf "$home" && : >"$home"
set_up demo
ends 3 "$cached cannot be written: name another directory in XDG_CACHE_HOME"

# The kernel's source of another suite. The stub of apt-get has a mirror with the suites of $1.
mirror_with() {
	fresh
	everything_installed
	on debian 12 "" bookworm
	stub apt-cache 'case $* in *linux-source*) exit 100;; esac'
	mkdir -p "$cached/lab/venv/bin"
	printf '#!/bin/sh\necho "vng 1.42"\n' >"$cached/lab/venv/bin/vng"
	chmod +x "$cached/lab/venv/bin/vng"
	stub apt-get "suites='$1'"'
		for argument; do case $argument in Dir=*) root=${argument#Dir=};; esac; done
		case $* in
		*indextargets*) echo http://mirror.example/debian/ ;;
		*update*)
			cp "$root/etc/apt/sources.list" "$(dirname "$0")/../sources"
			set -- $(cat "$root/etc/apt/sources.list")
			case " $suites " in *" $5 "*) ;; *) echo "E: The repository $4 $5 has no Release file." >&2; exit 100 ;; esac ;;
		*download*) : >linux-source-6.12_6.12.99-1_all.deb ;;
		esac'
	stub dpkg 'mkdir -p "$3/usr/src" && echo source >"$3/usr/src/linux-source-6.12.tar.xz"'
	stub dpkg-deb 'echo 6.12.99-1'
}

has_source() {
	[ "$(cat "$cached/lab/source/6.12.99-1.tar.xz")" = source ] || wrong "expected the kernel's source"
	[ ! -e "$cached/unpack" ] || wrong "expected no half-made files"
}

has_no_source() {
	[ ! -e "$cached/lab/source" ] || wrong "expected no kernel source"
	[ ! -e "$cached/unpack" ] || wrong "expected no half-made files"
}

# Only where this machine's apt has no lists does it have to be asked for the package first.
if [ -n "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ]; then
	mirror_with bookworm-security
	set_up lab
	ends 0 "Downloading the source of Linux 6.12"
	has_source
	grep -q ' http://mirror.example/debian-security bookworm-security main$' "$fake/sources" || wrong "$(cat "$fake/sources")"
	set_up lab
	ends 0
	[ -z "$said" ] || wrong "expected a second set-up to say nothing"

	mirror_with bookworm-backports
	set_up lab
	ends 0
	has_source
	grep -q ' http://mirror.example/debian/ bookworm-backports main$' "$fake/sources" || wrong "$(cat "$fake/sources")"

	mirror_with none
	set_up lab
	ends 3 "linux-source-6.12 could not be had from the security or backports suite" "has no Release file"
	has_no_source

	# A full disk, then the same set-up again with space.
	mirror_with bookworm-security
	cp "$bin/dpkg" "$fake/dpkg"
	stub dpkg 'mkdir -p "$3/usr/src" && : >"$3/usr/src/linux-source-6.12.tar.xz"; echo "No space left on device" >&2; exit 2'
	set_up lab
	ends 3 "the disk is full"
	has_no_source
	cp "$fake/dpkg" "$bin/dpkg"
	set_up lab
	ends 0
	has_source

	# An interrupted set-up, then the same again: the first is stopped by a signal while it unpacks, the second is killed.
	for signal in TERM KILL; do
		mirror_with bookworm-security
		stub dpkg "kill -$signal \$PPID"
		set_up lab 2>/dev/null
		[ "$status" -gt 128 ] || wrong "expected the end by signal $signal"
		[ ! -e "$cached/lab/source" ] || wrong "expected no kernel source"
		stub dpkg 'mkdir -p "$3/usr/src" && echo source >"$3/usr/src/linux-source-6.12.tar.xz"'
		set_up lab
		ends 0
		has_source
	done

	# apt's sources name no Debian archive.
	mirror_with bookworm-security
	stub apt-get 'exit 0'
	set_up lab
	ends 3 "apt's sources name no Debian archive to take bookworm-security from"
	has_no_source
fi
