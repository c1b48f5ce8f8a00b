#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# setup/install.sh install|uninstall PREFIX: installs the build under PREFIX, or removes exactly those files.
# setup/install.sh stage PREFIX DIRECTORY: installs the files of a package, with the executables of DIRECTORY and no QEMU.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lib.sh
. setup/lib.sh

usage='usage: setup/install.sh install|uninstall PREFIX'
action=${1:-} prefix=${2:-}
[ -n "$prefix" ] || die "$usage"
library=$prefix/lib/tollfree
manual=$prefix/share/man/man1
documents=$prefix/share/doc/tollfree
schemas=$prefix/share/tollfree/schemas
# One for each version of QEMU's plugin interface that the simulator's plugin declares (plugins/user/interface.h).
plugins='libtoll_user.so libtoll_user-2.so libtoll_user-7.so'

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

check_built() {
	[ -f "$1" ] || die "$1 is not built; run 'make build' first (as yourself, not as root)"
}

# put_files PROGRAMS PLUGINS: installs what was built in these two directories, and what belongs to it.
put_files() {
	tollfree=$1/tollfree preload=$1/libtoll_preload.so
	check_built "$tollfree"
	check_built "$preload"
	for plugin in $plugins; do
		check_built "$2/$plugin"
	done
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	mkdir "$made/man"
	for shell in bash fish zsh; do
		"$tollfree" completions $shell >"$made/$shell"
	done
	"$tollfree" man "$made/man"
	put 755 "$tollfree" "$prefix/bin/tollfree"
	put 644 "$preload" "$library/libtoll_preload.so"
	for plugin in $plugins; do
		put 644 "$2/$plugin" "$library/$plugin"
	done
	put 644 "$made/bash" "$prefix/share/bash-completion/completions/tollfree"
	put 644 "$made/fish" "$prefix/share/fish/vendor_completions.d/tollfree.fish"
	put 644 "$made/zsh" "$prefix/share/zsh/site-functions/_tollfree"
	for page in "$made"/man/*.1; do
		put 644 "$page" "$manual/${page##*/}"
	done
	for schema in schemas/*.json; do
		put 644 "$schema" "$schemas/${schema##*/}"
	done
	for document in CHANGELOG.md LICENSES/Apache-2.0.txt LICENSES/GPL-2.0-only.txt LICENSES/MIT.txt; do
		put 644 "$document" "$documents/${document##*/}"
	done
}

uninstall_all() {
	rm -rf "$library/qemu-user-7.2"
	for plugin in $plugins; do
		rm -f "$library/$plugin"
	done
	rm -f "$prefix/bin/tollfree" "$library/libtoll_preload.so" "$library/qemu-x86_64" \
		"$prefix/share/bash-completion/completions/tollfree" \
		"$prefix/share/fish/vendor_completions.d/tollfree.fish" \
		"$prefix/share/zsh/site-functions/_tollfree" \
		"$manual/tollfree.1" "$manual"/tollfree-*.1 "$schemas"/*.schema.json \
		"$documents/CHANGELOG.md" "$documents/Apache-2.0.txt" "$documents/GPL-2.0-only.txt" "$documents/MIT.txt"
	for directory in "$library" "$schemas" "${schemas%/schemas}" "$documents"; do
		[ ! -d "$directory" ] || rmdir "$directory"
	done
}

case $action in
install)
	put_files target/release plugins/user/build
	put_qemu
	;;
uninstall) uninstall_all ;;
stage) put_files "$3" "$3" ;;
*) die "$usage" ;;
esac
