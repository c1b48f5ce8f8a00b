# SPDX-License-Identifier: MIT OR Apache-2.0
# Which distribution this is, its package manager, and the names of its packages. POSIX sh, sourced by setup.sh.
# shellcheck shell=sh disable=SC2034,SC2154

# Sets $system to the name in the package lists (empty on an unknown system), $release to debian-12 and the like, and
# $codename to bookworm and the like. $TOLLFREE_OS_RELEASE is for the tests.
identify_system() {
	os_release=${TOLLFREE_OS_RELEASE:-/etc/os-release}
	system='' release='' codename=''
	[ -r "$os_release" ] || return 0
	# shellcheck disable=SC1090
	codename=$(. "$os_release" && printf '%s' "${VERSION_CODENAME:-}")
	# shellcheck disable=SC1090
	release=$(. "$os_release" && printf '%s-%s' "${ID:-}" "${VERSION_ID:-}")
	# shellcheck disable=SC1090
	for word in $(. "$os_release" && printf '%s %s' "${ID:-}" "${ID_LIKE:-}"); do
		case $word in
		debian | ubuntu | fedora | arch) system=$word ;;
		opensuse* | suse) system=opensuse ;;
		*) continue ;;
		esac
		break
	done
}

# Prints the packages of list $1 for this system.
packages_of() {
	while IFS= read -r line; do
		case $line in
		'#'*) ;;
		*:*)
			case " ${line%%:*} " in
			*" $system "* | *" $release "*) say "${line##*: }" ;;
			esac
			;;
		*) say "$line" ;;
		esac
	done <"$here/$1.packages"
}

# Whether package $1, or one that provides it, is installed.
installed() {
	case $system in
	debian | ubuntu) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
	fedora | opensuse) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
	arch) pacman -T "$1" >/dev/null 2>&1 ;;
	esac
}

# Prints the command that an administrator types to install packages.
install_command() {
	case $system in
	debian | ubuntu) say "apt-get update && apt-get install --no-install-recommends" ;;
	fedora) say "dnf install --setopt=install_weak_deps=False" ;;
	arch) say "pacman -Syu --needed" ;;
	opensuse) say "zypper install --no-recommends" ;;
	esac
}

# Fetches the package lists, where the package manager does not do that itself.
update_lists() {
	case $system in
	debian | ubuntu) $as_root apt-get update -qq ;;
	esac
}

# Prints the size of a download and of what it installs, where that can be had.
print_size() {
	case $system in
	debian | ubuntu)
		apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null |
			grep -E '^(Need to get|After this)' || true
		;;
	esac
}

# Installs packages without a question.
install_now() {
	case $system in
	debian | ubuntu)
		$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			-o APT::Keep-Downloaded-Packages=false "$@"
		;;
	fedora) $as_root dnf install -y --setopt=install_weak_deps=False "$@" ;;
	# Arch supports no upgrade of single packages, so the whole system is upgraded with them.
	arch) $as_root pacman -Syu --needed --noconfirm "$@" ;;
	opensuse) $as_root zypper --non-interactive install --no-recommends "$@" ;;
	esac
}

# Whether apt knows package $1, or may know it after an update.
apt_may_have() {
	[ -z "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ] ||
		apt-cache show "$1" >/dev/null 2>&1
}
