# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of an .rpm, in a root of Debian with Debian's rpm: Debian's archive has no distribution that is made of .rpm. rpm checks
# all dependencies, against a package that provides what the root's own C library provides.
# POSIX sh, sourced by test.sh.
# shellcheck shell=sh disable=SC2154

# Debian's rpm keeps its database in the home directory, and installs nothing unless it is told that this is Debian.
rpm='rpm --dbpath /var/lib/rpm --force-debian'

test_rpm() {
	case ${1##*/} in
	tollfree-simulator-*) test_rpm_of_simulator "$1" ;;
	*) test_rpm_of_tollfree "$1" ;;
	esac
}

test_rpm_of_tollfree() {
	start "$1" bookworm rpm
	step 'libc of the root' "$(provide_libc)"
	step 'rpm -K' "rpm -K /packages/${1##*/}"
	put_in install "$rpm --install /packages/${1##*/}"
	step files "$rpm --verify tollfree && gzip -t /usr/share/man/man1/tollfree.1.gz"
	use
	take_out erase "$rpm --erase tollfree"
	finish
}

test_rpm_of_simulator() {
	start "$1" bookworm rpm qemu-user
	advisor=$(dirname "$1")/tollfree-$version-1.x86_64.rpm
	cp "$advisor" "$root/packages" || die "$advisor: no such package, and the simulator's depends on it"
	step 'libc of the root' "$(provide_libc)"
	step 'rpm -K' "rpm -K /packages/${1##*/}"
	step tollfree "$rpm --install /packages/tollfree-$version-1.x86_64.rpm"
	put_in install "$rpm --install /packages/${1##*/}"
	step files "$rpm --verify tollfree-simulator"
	step record "cd /work && tollfree record --source sim -o profile.json -- $program"
	take_out erase "$rpm --erase tollfree-simulator"
	finish
}

# Prints the commands that install a package without files for the C library that dpkg installed.
provide_libc() {
	cat <<-'COMMANDS'
		libraries='/lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2'
		cd /tmp && {
			printf '%s\n' 'Name: libc' 'Version: 1' 'Release: 1' 'Summary: libc' 'License: none' 'BuildArch: noarch' &&
				printf '%s\n' $libraries | /usr/lib/rpm/elfdeps --provides | sed 's/^/Provides: /' &&
				printf '%s\n' 'Provides: rtld(GNU_HASH)' '%description' 'libc' '%files'
		} >libc.spec && rpmbuild -bb --define '_topdir /tmp/libc' libc.spec &&
	COMMANDS
	say "$rpm --install /tmp/libc/RPMS/noarch/libc-1-1.noarch.rpm"
}
