# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by ./demo, ./test, setup/setup.sh and the benches: the cache directory and the choice of Rust. POSIX sh, to be sourced.
# shellcheck shell=sh disable=SC2034,SC2154

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tollfree
rust_needed=1.85

say() {
	printf '%s\n' "$*"
}

# Ends the script with a status of its own, which tells a failed set-up from a failed test.
die() {
	printf 'tollfree: %s\n' "$*" >&2
	exit 3
}

# Prints why the last command with its output in $log failed.
reason() {
	if grep -q -i 'no space left on device' "$log"; then
		say "the disk is full"
	elif grep -q -i -E 'could not resolve|(temporary )?failure (in name )?resol|unreachable|could not connect|timed out' "$log"; then
		say "the server cannot be reached; is there a network?"
	else
		{ grep -i -E '^(E:|error)' "$log" || tail -n 1 "$log"; } | head -n 1
	fi
}

# attempt WHAT COMMAND...: runs a command with its output in the log; if it fails, ends with WHAT and the reason.
attempt() {
	what=$1
	shift
	"$@" >>"$log" 2>&1 || die "$what: $(reason) (the whole log: $log)"
}

# Asks on a terminal; an empty answer is yes. Without a terminal, or if $yes is not empty, the answer is yes.
agree() {
	if [ -n "${yes:-}" ] || ! [ -t 0 ] || ! [ -t 1 ]; then
		return 0
	fi
	printf '%s [Y/n] ' "$1"
	read -r answer || return 1
	case $answer in
	'' | [Yy] | [Yy][Ee][Ss]) ;;
	*) return 1 ;;
	esac
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# Whether version $1 (1.85.0) is at least $2 (1.85).
version_at_least() {
	printf '%s\n%s\n' "$2" "$1" | sort -t . -k 1,1n -k 2,2n -C
}

# Whether the cargo named $1 is new enough.
rust_fits() {
	rust_version=$("$1" --version 2>/dev/null | sed 's/^[a-z]* \([0-9.]*\).*/\1/')
	[ -n "$rust_version" ] && version_at_least "$rust_version" "$rust_needed"
}

# Puts a suitable cargo first in PATH; fails if there is none. Ubuntu has newer versions in directories of their own.
choose_rust() {
	for directory in "" /usr/bin "/usr/lib/rust-$rust_needed/bin" "$HOME/.cargo/bin"; do
		if rust_fits "${directory:+$directory/}cargo" && rust_fits "${directory:+$directory/}rustc"; then
			[ -z "$directory" ] || PATH=$directory:$PATH
			export PATH
			return 0
		fi
	done
	return 1
}

# Whether $1 is a QEMU of a version (a regular expression of grep) with support for plugins.
qemu_is() {
	have "$1" && "$1" --version 2>/dev/null | grep -q "version $2" && "$1" -h 2>/dev/null | grep -q -e -plugin
}

# Whether $1 is a QEMU for the simulator: one with a plugin interface for which there is a plugin.
qemu_fits() {
	qemu_is "$1" '\([6-9]\|1[01]\)\.'
}

# Whether $1 is the lab's QEMU.
system_qemu_fits() {
	qemu_is "$1" '10\.'
}

# Prints seconds as "4 min 12 s".
duration() {
	if [ "$1" -ge 60 ]; then
		printf '%d min %d s' $(($1 / 60)) $(($1 % 60))
	else
		printf '%d s' "$1"
	fi
}
