#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fills a directory with a small system that can build a kernel, copied from installed packages, and with the source to
# build at /linux, configured and prepared:  kernel-source.sh DIRECTORY
# TOLL_LAB_CACHE is the directory of the lab's sources.
set -eu
root=$1
tools='bash bc binutils bison coreutils dash diffutils findutils flex gcc grep gzip libc6-dev libelf-dev libssl-dev make mawk perl-base sed'

# /bin, /sbin and /lib are links into /usr, as on this machine; some packages list paths without /usr.
for name in bin sbin lib lib64; do
	mkdir -p "$root/usr/$name"
	ln -s "usr/$name" "$root/$name"
done
# Copy every file of the tools and of their dependencies; leave out documentation and locales.
# shellcheck disable=SC2086
apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
	--no-enhances $tools | grep '^[a-z0-9]' | sort -u |
	while read -r package; do dpkg-query -L "$package" 2>/dev/null || :; done |
	grep -v -x -e '/bin' -e '/sbin' -e '/lib' -e '/lib64' | grep -v -e '^/usr/share/doc' -e '^/usr/share/man' -e '^/usr/share/locale' | sort -u |
	while read -r file; do
		if [ -f "$file" ] || [ -L "$file" ]; then printf '%s\0' "${file#/}"; fi
	done | tar --null -C / -cf - -T - | tar -C "$root" --keep-directory-symlink -xf -
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/linux"
ln -sf mawk "$root/usr/bin/awk"
ln -sf gcc "$root/usr/bin/cc"

source=$(find "$TOLL_LAB_CACHE/source" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
[ -n "$source" ] || { echo 'the kernel source is not unpacked: toll-lab kernel' >&2; exit 1; }
tar -C "$source" -cf - --exclude=./drivers --exclude=./sound --exclude=./Documentation --exclude='./arch/[a-wyz]*' \
	--exclude=./tools/testing --exclude=./.pc . | tar -C "$root/linux" -xf -
# Kconfig reads every directory, make builds two of them.
(cd "$source" && find arch drivers sound Documentation -name 'Kconfig*' -o -name Makefile | tar -cf - -T -) | tar -C "$root/linux" -xf -

# Prepared at the place where the guest builds it: what make wrote names paths, and would be made anew there. It needs
# /dev/null: root makes one, others bring theirs.
prepare='PATH=/usr/bin exec make -C /linux -s ARCH=x86_64 tinyconfig prepare'
if [ "$(id -u)" = 0 ]; then
	mknod -m 666 "$root/dev/null" c 1 3
	chroot "$root" /usr/bin/sh -ec "$prepare" </dev/null
else
	unshare --mount --map-root-user sh -ec 'mount --rbind /dev "$1/dev"
	exec chroot "$1" /usr/bin/sh -ec "$2"' prepare "$root" "$prepare" </dev/null
fi
