#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# setup/install.sh install|uninstall PREFIX: installs the build under PREFIX, or removes exactly those files.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lib.sh
. setup/lib.sh

action=${1:-} prefix=${2:-}
[ -n "$prefix" ] || die "usage: setup/install.sh install|uninstall PREFIX"
library=$prefix/lib/tollfree
manual=$prefix/share/man/man1
# One for each version of QEMU's plugin interface that the simulator's plugin declares (plugins/user/interface.h).
built=plugins/user/build
plugins="$built/libtoll_user.so $built/libtoll_user-2.so $built/libtoll_user-7.so"

# put MODE SOURCE TARGET
put() {
	install -D -m "$1" "$2" "$3"
	say "  $3"
}

# Prints the QEMU that the set-up unpacked for the user that built tollfree; nothing if there is none. Under sudo, $HOME is
# root's, and the set-up ran as the owner of the build. A QEMU of any other user is neither run nor installed.
unpacked_qemu() {
	builder=$(stat -c %u target/release/tollfree)
	for directory in "$cache" "$(getent passwd "$builder" | cut -d : -f 6)/.cache/tollfree"; do
		directory=$directory/qemu-user-7.2
		[ -x "$directory/bin/qemu-x86_64" ] || continue
		case $(stat -c %u "$directory") in
		"$(id -u)" | "$builder") ;;
		*) continue ;;
		esac
		if qemu_fits "$directory/bin/qemu-x86_64"; then
			printf '%s' "$directory"
			return 0
		fi
	done
}

# Installs the simulator's QEMU for every user, if the system's own does not fit.
put_qemu() {
	if qemu_fits qemu-x86_64; then
		return 0
	fi
	unpacked=$(unpacked_qemu)
	if [ -z "$unpacked" ]; then
		say "Found no QEMU 6.0 to 11.x with plugins to install: tollfree's simulator will be missing, the rest works."
		say "Run setup/setup.sh demo as the user that built tollfree, and install again."
		return 0
	fi
	mkdir -p "$library"
	rm -rf "$library/qemu-user-7.2"
	# Owned by the installing user, and readable by all users.
	cp -R --no-preserve=ownership "$unpacked" "$library/qemu-user-7.2"
	chmod -R u=rwX,go=rX "$library/qemu-user-7.2"
	ln -sf qemu-user-7.2/bin/qemu-x86_64 "$library/qemu-x86_64"
	say "  $library/qemu-x86_64"
}

install_all() {
	tollfree=target/release/tollfree
	for file in $tollfree target/release/libtoll_preload.so $plugins; do
		[ -f "$file" ] || die "$file is not built; run 'make build' first (as yourself, not as root)"
	done
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	mkdir "$made/man"
	for shell in bash fish zsh; do
		$tollfree completions $shell >"$made/$shell"
	done
	$tollfree man "$made/man"
	put 755 $tollfree "$prefix/bin/tollfree"
	put 644 target/release/libtoll_preload.so "$library/libtoll_preload.so"
	for plugin in $plugins; do
		put 644 "$plugin" "$library/${plugin##*/}"
	done
	put_qemu
	put 644 "$made/bash" "$prefix/share/bash-completion/completions/tollfree"
	put 644 "$made/fish" "$prefix/share/fish/vendor_completions.d/tollfree.fish"
	put 644 "$made/zsh" "$prefix/share/zsh/site-functions/_tollfree"
	for page in "$made"/man/*.1; do
		put 644 "$page" "$manual/${page##*/}"
	done
}

uninstall_all() {
	rm -rf "$library/qemu-user-7.2"
	for plugin in $plugins; do
		rm -f "$library/${plugin##*/}"
	done
	rm -f "$prefix/bin/tollfree" "$library/libtoll_preload.so" "$library/qemu-x86_64" \
		"$prefix/share/bash-completion/completions/tollfree" \
		"$prefix/share/fish/vendor_completions.d/tollfree.fish" \
		"$prefix/share/zsh/site-functions/_tollfree" \
		"$manual/tollfree.1" "$manual"/tollfree-*.1
	[ ! -d "$library" ] || rmdir "$library"
}

case $action in
install) install_all ;;
uninstall) uninstall_all ;;
*) die "usage: setup/install.sh install|uninstall PREFIX" ;;
esac
