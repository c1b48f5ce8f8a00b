# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of an .rpm, in a root of Debian with Debian's rpm: Debian's archive has no distribution that is made of .rpm. rpm checks
# all dependencies, against a package that provides what the root's libc6 has.
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
	step 'provide libc6' "$(provide_libc)"
	step 'rpm -K' "rpm -K /packages/${1##*/}"
	put_in "install by Debian's rpm" "$rpm --install /packages/${1##*/}"
	step files "$rpm --verify tollfree && gzip -t /usr/share/man/man1/tollfree.1.gz"
	use
	take_out erase "$rpm --erase tollfree"
	finish
}

test_rpm_of_simulator() {
	start "$1" bookworm rpm qemu-user
	advisor=$(dirname "$1")/tollfree-$version-1.x86_64.rpm
	cp "$advisor" "$root/packages" || die "$advisor: no such package, and the simulator's depends on it"
	step 'provide libc6' "$(provide_libc)"
	step 'rpm -K' "rpm -K /packages/${1##*/}"
	step tollfree "$rpm --install /packages/tollfree-$version-1.x86_64.rpm"
	put_in "install by Debian's rpm" "$rpm --install /packages/${1##*/}"
	step files "$rpm --verify tollfree-simulator"
	step doctor "tollfree doctor | grep -E '^ simulator +ok'"
	step simulate "cd /work && tollfree record --source sim -o profile.json -- perl -e '@a = (1 .. 300000)' &&
		tollfree report profile.json | grep -q '^source: qemu-x86_64'"
	take_out erase "$rpm --erase tollfree-simulator"
	finish
}

# Prints the commands that install a package without files for the libraries of Debian's libc6.
provide_libc() {
	cat <<-'COMMANDS'
		cd /tmp && {
			printf '%s\n' 'Name: libc' 'Version: 1' 'Release: 1' 'Summary: libc' 'License: none' 'BuildArch: noarch' &&
				dpkg -L libc6 | grep '\.so\.[0-9]*$' | /usr/lib/rpm/elfdeps --provides | sort -u | sed 's/^/Provides: /' &&
				printf '%s\n' 'Provides: rtld(GNU_HASH)' '%description' 'libc' '%files'
		} >libc.spec && rpmbuild -bb --define '_topdir /tmp/libc' libc.spec &&
	COMMANDS
	say "$rpm --install /tmp/libc/RPMS/noarch/libc-1-1.noarch.rpm"
}
