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
[ "$(id -u)" = 0 ] || die "only root can make and enter the roots"
setup/setup.sh --yes roots || exit 3

place=$(mktemp -d) || die "no temporary directory can be made"
logs=$cache/test-logs
mkdir -p "$logs" || exit 3
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 130' HUP INT TERM
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
[ -n "$mirror" ] || die "apt's sources name no Debian archive to make a root from"

# make_root SUITE: a minimal root in $place/root with the files of this checkout in /tollfree.
make_root() {
	root=$place/root
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase "$1" "$root" "$mirror" >"$logs/root-$1" 2>&1 || {
		tail -n 5 "$logs/root-$1" >&2
		die "debootstrap could not make a root of $1 from $mirror"
	}
	mkdir "$root/tollfree"
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$root/tollfree" || exit 3
	[ -z "$certificates" ] || cp "$certificates" "$root/etc/machine-certificates.pem" || exit 3
}

# in_root COMMAND: runs a command of the shell in the root, with an environment of its own. The mounts end with it.
in_root() {
	# shellcheck disable=SC2086
	unshare --mount --pid --fork --kill-child sh -ec '
		root=$1 command=$2
		shift 2
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" \
			sh -c "cd /tollfree && $command"
	' in_root "$root" "$1" $settings
}

# The bundle of certificates of this machine, where one is set, and the settings that name it in the root.
certificates=${SSL_CERT_FILE:-${CARGO_HTTP_CAINFO:-${PIP_CERT:-}}}
settings=
if [ -n "$certificates" ]; then
	for name in SSL_CERT_FILE CARGO_HTTP_CAINFO PIP_CERT; do
		settings="$settings $name=/etc/machine-certificates.pem"
	done
fi
for name in http_proxy https_proxy no_proxy; do
	eval "value=\${$name:-}"
	[ -z "$value" ] || settings="$settings $name=$value"
done

# run_in_root NAME LIMIT COMMAND: prints and judges one line of the table.
run_in_root() {
	# shellcheck disable=SC2086
	began=$(date +%s) result=passed
	in_root "$3" >"$logs/root-$suite-$1" 2>&1 || result=failed
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
	for command in $commands; do
		case $command in
		demo) run_in_root demo $demo_limit './demo --yes' ;;
		test) run_in_root test $test_limit './test --yes' ;;
		set-up) run_in_root set-up $demo_limit 'for purpose in demo test lab; do setup/setup.sh --yes $purpose || exit; done' ;;
		esac
	done
done
exit $status
