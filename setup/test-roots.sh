#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs ./demo and ./test in new minimal roots of Debian 12 and 13 without a security suite, and prints their times beside
# the limits:
#     setup/test-roots.sh [--set-up] [bookworm|trixie]...
# --set-up only installs and unpacks what both commands need. Needs root, debootstrap, and 20 GB of disk in $TMPDIR; takes
# over two hours with both roots. One root exists at a time, and is removed at the end.
# The machine's mirror, proxy and certificates are used. Status: 0 all passed, 1 a command failed, 3 the set-up failed.
set -u
cd "$(dirname "$0")/.." || exit 3
. setup/lib.sh

demo_limit=600 test_limit=3600
commands='demo test'
[ "${1:-}" != --set-up ] || {
	commands='set-up'
	shift
}
[ $# -gt 0 ] || set -- bookworm trixie
# shellcheck source=roots.sh
. setup/roots.sh
setup/setup.sh --yes roots || exit 3

# Copies the files of this checkout to /tollfree in the root.
copy_checkout() {
	mkdir "$root/tollfree"
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$root/tollfree" || exit 3
}

# run_in_root NAME LIMIT COMMAND: prints and judges one line of the table.
run_in_root() {
	# shellcheck disable=SC2086
	began=$(date +%s) result=passed
	in_root "cd /tollfree && $3" >"$logs/root-$suite-$1" 2>&1 || result=failed
	seconds=$(($(date +%s) - began))
	[ "$result" = failed ] || [ "$seconds" -le "$2" ] || result="passed, too slow"
	say "$suite, ./$1: $result in $(duration $seconds) (limit $(duration "$2"))"
	[ "$result" = passed ] || {
		status=1
		tail -n 15 "$logs/root-$suite-$1" | sed 's/^/    /'
	}
}

status=0
for suite in "$@"; do
	make_root "$suite"
	copy_checkout
	for command in $commands; do
		case $command in
		demo) run_in_root demo $demo_limit './demo --yes' ;;
		test) run_in_root test $test_limit './test --yes' ;;
		set-up) run_in_root set-up $demo_limit 'for purpose in demo test lab; do setup/setup.sh --yes $purpose || exit; done' ;;
		esac
	done
done
exit $status
