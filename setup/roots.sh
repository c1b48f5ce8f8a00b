# SPDX-License-Identifier: MIT OR Apache-2.0
# New minimal roots of Debian for setup/test-roots.sh and packaging/test.sh. POSIX sh, sourced after lib.sh by scripts that run
# as root. The machine's mirror, proxy and certificates are used.
# Sets $place, a temporary directory that is removed at the end, $logs, and $root, the present root.
# shellcheck shell=sh disable=SC2034,SC2154

[ "$(id -u)" = 0 ] || die "only root can make and enter the roots"
place=$(mktemp -d) || die "no temporary directory can be made"
logs=$cache/test-logs
mkdir -p "$logs" || exit 3
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 130' HUP INT TERM
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
[ -n "$mirror" ] || die "apt's sources name no Debian archive to make a root from"

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

# make_root SUITE: a minimal root in $root.
make_root() {
	root=$place/root
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase "$1" "$root" "$mirror" >"$logs/root-$1" 2>&1 || {
		tail -n 5 "$logs/root-$1" >&2
		die "debootstrap could not make a root of $1 from $mirror"
	}
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
			sh -c "$command"
	' in_root "$root" "$1" $settings
}
