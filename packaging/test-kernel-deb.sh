#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of packaging/kernel-deb.sh in bad conditions, and of the parts of its check: with a small source and queue, and with
# stubs of the package manager and of the kernel's make. Installs and downloads nothing.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/stubs.sh
. setup/stubs.sh
repo=$fake/repo
cached=$fake/cache/tollfree
place=$cached/kernel-deb/6.12.99-1

printf 'ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n' >"$fake/os-release"

# fresh: a checkout with a queue of one file and one seam, a cache with a source of two files and Debian's headers of it.
fresh() {
	rm -rf "$bin" "$repo" "$fake/cache" "$fake/linux"
	mkdir -p "$bin" "$repo/kernel/tree/mm/luf" "$repo/kernel/tree/include/linux" "$repo/kernel/seams" "$repo/kernel/config" "$fake/linux/mm"
	cp -R setup packaging "$repo"
	printf '# versions\n6.12.99-1\n' >"$repo/kernel/BASE"
	cp kernel/config/debian.config kernel/config/tollfree.config "$repo/kernel/config"
	echo '#define TOLLFREE_VERSION "0.1"' >"$repo/kernel/tree/include/linux/tollfree.h"
	echo 'int luf;' >"$repo/kernel/tree/mm/luf/luf.c"
	printf '# seams\n300-mm.patch\n900-lab.patch\n' >"$repo/kernel/seams/series"
	printf -- '--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1,2 @@\n int memory;\n+int more;\n' >"$repo/kernel/seams/300-mm.patch"
	echo 'all:' >"$fake/linux/Makefile"
	echo 'int memory;' >"$fake/linux/mm/memory.c"
	mkdir -p "$cached/lab/source"
	tar --create --xz --file "$cached/lab/source/6.12.99-1.tar.xz" --directory "$fake" linux
	for flavour in amd64 cloud-amd64; do
		mkdir -p "$cached/kernel-deb/headers/6.12.99-1/$flavour"
		echo 'CONFIG_MODULES=y' >"$cached/kernel-deb/headers/6.12.99-1/$flavour/config"
	done
	stub dpkg-query 'case $* in *linux-source*) exit 1;; esac; printf installed'
	stub apt-get 'exit 1'
	stub apt-cache 'exit 1'
	stub df 'printf "Filesystem blocks\n/dev/fake 9 9 %s 1%% /\n" 99999999'
	stub make "$kernel_make"
}

# Accepts each symbol, and makes the packages of a kernel.
kernel_make='
for word; do
	case $word in
	O=*) build=${word#O=} ;;
	LOCALVERSION=*) suffix=${word#LOCALVERSION=} ;;
	esac
done
cd "$2" && mkdir -p "$build" || exit
case $* in
*bindeb-pkg*)
	grep -q "int more" mm/memory.c && [ -f mm/luf/luf.c ] || exit
	echo "$DEB_BUILD_PROFILES $KBUILD_BUILD_USER $KBUILD_BUILD_TIMESTAMP" >"$build/environment"
	for name in linux-image-6.12.99$suffix linux-image-6.12.99$suffix-dbg linux-headers-6.12.99$suffix linux-libc-dev; do
		case $name in *-dbg) ;; *) echo deb >"${name}_${KDEB_PKGVERSION}_amd64.deb" ;; esac
	done
	;;
esac'

# build ARGUMENT...: runs the script without a terminal; sets $said and $status.
build() {
	status=0
	said=$(exec env TOLLFREE_OS_RELEASE="$fake/os-release" XDG_CACHE_HOME="$fake/cache" HOME="$fake" PATH="$bin:$PATH" sh "$repo/packaging/kernel-deb.sh" "$@" </dev/null 2>&1) || status=$?
}

has_packages() {
	found=$(cd "$repo/target/packages" && find . -type f | sort | paste -s -d ' ')
	expected="./linux-headers-6.12.99-tollfree-$1_6.12.99-1+tollfree0.1_amd64.deb ./linux-image-6.12.99-tollfree-$1_6.12.99-1+tollfree0.1_amd64.deb"
	[ "$found" = "$expected" ] || wrong "expected $expected, found $found"
}

# Arguments.
fresh
build --flavour rt-amd64
ends 3 "there is no flavour 'rt-amd64' of Debian's kernel: amd64 cloud-amd64"
build --flavour
ends 3 "usage: packaging/kernel-deb.sh"
build --config /dev/null
ends 3 "/dev/null: not a configuration of a kernel"
build --config "$repo/kernel/config/tollfree.config" --check
ends 3 "usage: packaging/kernel-deb.sh"

# The packages, of the kernel and its headers only.
build --flavour cloud-amd64
ends 0 "Applying the queue: 2 new files, 1 seams" "target/packages/linux-image-6.12.99-tollfree-cloud-amd64"
has_packages cloud-amd64
grep -q -x "pkg.linux-tollfree.nokerneldbg tollfree [A-Z][a-z][a-z] .* UTC [0-9]*" "$place/tree/build-cloud-amd64/environment" ||
	wrong "expected settings without the machine and the time"
[ -z "$(find "$place/tree" -name '*.deb')" ] || wrong "expected no package in the tree"
[ "$(cat "$place/source/mm/memory.c")" = 'int memory;' ] || wrong "expected the source as Debian has it"

# Only a changed queue makes a new tree; a build that has begun is kept.
touch "$place/tree/build-cloud-amd64/vmlinux.o"
build --flavour cloud-amd64
ends 0
case $said in *"Applying"*) wrong "expected the same tree" ;; esac
echo 'int luf = 1;' >"$repo/kernel/tree/mm/luf/luf.c"
build --flavour cloud-amd64
ends 0 "Applying the queue"
cmp -s "$repo/kernel/tree/mm/luf/luf.c" "$place/tree/mm/luf/luf.c" || wrong "expected the new queue in the tree"
[ -f "$place/tree/build-cloud-amd64/vmlinux.o" ] || wrong "expected the begun build in the new tree"

# Another configuration, named from where the script is called.
echo 'CONFIG_REDUCED=y' >"$repo/reduced"
cd "$repo"
build --config reduced
cd "$OLDPWD"
ends 0
grep -q -x CONFIG_REDUCED=y "$place/tree/build-amd64/.config" || wrong "expected the given configuration"
grep -q -x CONFIG_ECON=y "$place/tree/build-amd64/.config" || wrong "expected the queue in the given configuration"

# The source.
fresh
rm "$cached/lab/source/6.12.99-1.tar.xz"
build
ends 3 "apt's sources name no Debian archive to take bookworm-security from"
fresh
echo torn >"$cached/lab/source/6.12.99-1.tar.xz"
build
ends 3 "6.12.99-1.tar.xz cannot be unpacked"
[ ! -e "$place/source" ] || wrong "expected no source"
fresh
rm -r "$cached/kernel-deb/headers"
build
ends 3 "apt's sources name no Debian archive to take bookworm-security from"
stub apt-get 'case $* in *download*) : >linux-headers-6.12.99+deb12-amd64_6.12.99-1_amd64.deb ;; *indextargets*) echo http://mirror.example/debian/ ;; esac'
build
ends 3 "Debian's headers of Linux 6.12.99-1, amd64, could not be had: E: there is no package linux-headers-6.12.99*-amd64"
[ ! -e "$cached/kernel-deb/headers" ] || wrong "expected no headers"
stub apt-cache 'case $* in *search*-amd64*) echo "linux-headers-6.12.99+deb12-amd64 - Header files" ;; esac'
stub dpkg 'mkdir -p "$3/usr/src/linux-headers-6.12.99+deb12-amd64" && cd "$3"/usr/src/* && echo CONFIG_MODULES=y >.config && touch Module.symvers vmlinux'
build
ends 0 "Downloading the headers of Linux 6.12.99-1, cloud-amd64"
[ "$(cat "$cached/kernel-deb/headers/6.12.99-1/amd64/config")" = CONFIG_MODULES=y ] || wrong "expected the configuration of Debian's kernel"

# A queue that does not fit the version.
fresh
echo 'int other;' >"$fake/linux/mm/memory.c"
tar --create --xz --file "$cached/lab/source/6.12.99-1.tar.xz" --directory "$fake" linux
build
ends 3 "kernel/seams/300-mm.patch does not apply to Linux 6.12.99-1; kernel/BASE names 6.12.99-1"
[ ! -e "$place/tree" ] || wrong "expected no tree"
fresh
cp "$fake/linux/mm/memory.c" "$repo/kernel/tree/mm/memory.c"
build
ends 3 "kernel/tree/mm/memory.c exists in Linux 6.12.99-1"

# A symbol that Kconfig does not accept is named, in the next call too.
fresh
stub make "$kernel_make"'
case $* in *olddefconfig*) sed -i /MORSELFS/d "$build/.config" ;; esac'
build
ends 3 "Kconfig does not accept CONFIG_MORSELFS=y with the configuration of $cached/kernel-deb/headers/6.12.99-1/amd64/config"
build
ends 3 "Kconfig does not accept CONFIG_MORSELFS=y"
[ ! -e "$repo/target/packages" ] || wrong "expected no packages"

# A full disk: before, and in the middle.
fresh
stub df 'printf "Filesystem blocks\n/dev/fake 9 9 1048576 1%% /\n"'
build
ends 3 "$place: 1 GiB of disk are free; this needs"
fresh
stub make "$kernel_make"'
case $* in *bindeb-pkg*) rm -f *.deb; echo "fatal error: error writing to x.s: No space left on device"; exit 2 ;; esac'
build
ends 3 "$place: the disk is full"

# A kernel that does not build.
stub make "$kernel_make"'
case $* in *bindeb-pkg*) rm -f *.deb; printf "  CC      mm/memory.o\n../mm/memory.c:2:5: error: unknown type\nmake: *** [all] Error 2\n"; exit 2 ;; esac'
build
ends 1 "the build failed: ../mm/memory.c:2:5: error: unknown type (the whole log: $place/log-amd64)"
[ ! -e "$repo/target/packages" ] || wrong "expected no packages"
stub make "$kernel_make"
build
ends 0
has_packages amd64

# An interrupted unpack is repeated.
for signal in TERM KILL; do
	fresh
	stub tar "kill -$signal \$PPID"
	build 2>/dev/null
	[ "$status" -gt 128 ] || wrong "expected the end by signal $signal"
	[ ! -e "$place/source" ] || wrong "expected no source"
	rm "$bin/tar"
	build
	ends 0
	has_packages amd64
done

# What uses an exported symbol through inline functions and macros of headers.
cat >"$fake/a.h" <<'HEADER'
static inline int gate(struct inode *inode)
{
	if (static_branch_unlikely(&luf_key))
		return 1;
	return 0;
}

int declared(struct luf_key_other *other);

#define wrapped(inode) \
	do { \
		gate(inode); \
	} while (0)
#define unrelated(x)	(x)

static inline struct page *
unconcerned(int luf)
{
	return luf_keys;
}
HEADER
echo luf_key >"$fake/words"
found=$(awk -f packaging/kernel-callers.awk "$fake/words" "$fake/a.h" | paste -s -d ' ')
[ "$found" = gate ] || { echo "callers: expected gate, found $found" && exit 1; }
echo gate >>"$fake/words"
found=$(awk -f packaging/kernel-callers.awk "$fake/words" "$fake/a.h" | paste -s -d ' ')
[ "$found" = "gate wrapped" ] || { echo "callers: expected gate and wrapped, found $found" && exit 1; }

# The functions of a vmlinux: a section .BTF with a number, a structure of two members, and two functions.
python3 - "$fake/vmlinux" <<'PYTHON'
import struct
import sys
names = b"\0int\0pair\0one\0two\0do_it\0do_more\0"
at = {name: names.index(b"\0" + name + b"\0") + 1 for name in names.split(b"\0") if name}
types = struct.pack("<4I", at[b"int"], 1 << 24, 4, 32)
types += struct.pack("<9I", at[b"pair"], 4 << 24 | 2, 8, at[b"one"], 1, 0, at[b"two"], 1, 32)
types += struct.pack("<5I", 0, 13 << 24 | 1, 1, at[b"one"], 1)
types += struct.pack("<3I", at[b"do_it"], 12 << 24, 3) + struct.pack("<3I", at[b"do_more"], 12 << 24 | 1, 3)
btf = struct.pack("<HBB5I", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names)) + types + names
table = b"\0.BTF\0.shstrtab\0"
body = btf + table
header = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 64 + len(body)) + bytes(10) + struct.pack("<3H", 64, 3, 2)
row = lambda name, offset, size: struct.pack("<2I4Q", name, 1, 0, 0, offset, size) + bytes(24)
with open(sys.argv[1], "wb") as file:
    file.write(header + body + bytes(64) + row(1, 64, len(btf)) + row(6, 64 + len(btf), len(table)))
PYTHON
found=$(python3 -B packaging/kernel_functions.py "$fake/vmlinux" | paste -s -d ' ')
[ "$found" = "do_it do_more" ] || { echo "functions: expected do_it and do_more, found $found" && exit 1; }
! python3 -B packaging/kernel_functions.py "$fake/words" 2>/dev/null || { echo "expected a text file to be refused" && exit 1; }

# checked STOCK NEW: what the check says of two objects of vmlinux, without and with the queue.
checked() {
	status=0
	said=$(
		here=$PWD/setup log=$fake/log headers=$fake check_build=$fake/new stock_build=$fake/stock
		. setup/lib.sh
		. packaging/kernel-check.sh
		fault() {
			say "$*"
			exit 1
		}
		mkdir -p "$check_build" "$stock_build"
		printf '0x1\tprintk\tvmlinux\tEXPORT_SYMBOL\t\n0x2\tof_module\tfs/a/a\tEXPORT_SYMBOL\t\n' >"$headers/Module.symvers"
		export='#define export(name) void name(void) { } asm("__export_symbol_" #name ":");'
		printf '%s\n%s\n' "$export" "$1" | gcc -x c -c -o "$stock_build/vmlinux.o" -
		printf '%s\n%s\n' "$export" "$2" | gcc -x c -c -o "$check_build/vmlinux.o" -
		check_link
	) 2>&1 || status=$?
}
uses='void hidden(void); void user(void) { hidden(); }'
checked "$uses export(old)" "$uses export(old) export(luf_key)"
ends 0 "1 symbols that they export are still exported, and new: luf_key"
checked "$uses export(old)" "$uses void old(void) { }"
ends 1 "exported without the queue, and not with it: old"
checked "$uses void gone(void) { }" "$uses"
ends 1 "defined without the queue, and not with it: gone"
checked "$uses" "$uses void more(void); void our(void) { more(); }"
ends 1 "used in vmlinux and not defined: more"
checked "$uses" "$uses void of_module(void); void our(void) { of_module(); }"
ends 1 "used in vmlinux and not defined: of_module"
checked "$uses" "$uses void printk(void); void do_it(void); void our(void) { printk(); do_it(); }"
ends 0
