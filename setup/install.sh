#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# setup/install.sh install|uninstall PREFIX: puts what was built under PREFIX, or takes exactly that away again.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lib.sh
. setup/lib.sh

action=${1:-} prefix=${2:-}
[ -n "$prefix" ] || die "usage: setup/install.sh install|uninstall PREFIX"
library=$prefix/lib/tollfree
manual=$prefix/share/man/man1

# put MODE SOURCE TARGET
put() {
	install -D -m "$1" "$2" "$3"
	say "  $3"
}

install_all() {
	tollfree=target/release/tollfree
	for file in $tollfree target/release/libtoll_preload.so plugins/user/build/libtoll_user.so; do
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
	put 644 plugins/user/build/libtoll_user.so "$library/libtoll_user.so"
	put 644 "$made/bash" "$prefix/share/bash-completion/completions/tollfree"
	put 644 "$made/fish" "$prefix/share/fish/vendor_completions.d/tollfree.fish"
	put 644 "$made/zsh" "$prefix/share/zsh/site-functions/_tollfree"
	for page in "$made"/man/*.1; do
		put 644 "$page" "$manual/${page##*/}"
	done
}

uninstall_all() {
	rm -f "$prefix/bin/tollfree" "$library/libtoll_preload.so" "$library/libtoll_user.so" \
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
