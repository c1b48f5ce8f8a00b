#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that every file has a licence: in its first lines, or in REUSE.toml if it cannot hold a comment.
set -eu
cd "$(dirname "$0")/.."

# Prints the patterns of REUSE.toml, one a line.
excused() {
	sed -n '/^path = \[/,/^\]/s/^ *"\(.*\)",*$/\1/p' REUSE.toml
}

tracked_files() {
	if [ -e .git ] && command -v git >/dev/null 2>&1; then
		git -c safe.directory='*' ls-files --cached --others --exclude-standard
	else
		find . -type f ! -path './.git/*' ! -path './target/*' ! -path './plugins/*/build/*' ! -path './tollfree-*' ! -path '*/__pycache__/*' |
			sed 's|^\./||'
	fi
}

# Prints the licence that a file must carry.
licence_of() {
	case $1 in
	plugins/* | kernel/*) printf 'GPL-2.0-only' ;;
	*) printf 'MIT OR Apache-2.0' ;;
	esac
}

is_excused() {
	printf '%s\n' "$patterns" | {
		while read -r pattern; do
			# shellcheck disable=SC2254
			case $1 in $pattern) exit 0 ;; esac
		done
		exit 1
	}
}

patterns=$(excused)
tracked_files | {
	wrong=0
	while read -r file; do
		[ -f "$file" ] || continue
		if head -n 5 "$file" | grep -q -a "SPDX-License-Identifier: $(licence_of "$file")"; then
			continue
		fi
		is_excused "$file" && continue
		printf '%s: no "SPDX-License-Identifier: %s" in its first 5 lines\n' "$file" "$(licence_of "$file")"
		wrong=1
	done
	exit $wrong
}
