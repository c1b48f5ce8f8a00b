#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Tests a model of econ in a BPF program, in TAP: econ_bpf.sh [ECON]
# ECON is the compiled program econ. Needs root, a kernel with CONFIG_ECON_BPF, clang, bpftool and the headers of libbpf;
# CLANG names another compiler.
set -u
here=$(cd "$(dirname "$0")" && pwd)
econ=${1:-$here/econ}
clang=${CLANG:-clang}
sysfs=/sys/kernel/mm/econ
work=$(mktemp -d) || exit 1
trap 'bpftool struct_ops unregister name half_used >/dev/null 2>&1; echo off >$sysfs/mode 2>/dev/null; rm -rf "$work"' EXIT
nr=0
failures=0

skip() {
	echo "1..0 # SKIP $1"
	exit 4
}

# check WHAT COMMAND...: prints a result.
check() {
	nr=$((nr + 1))
	what=$1
	shift
	if "$@"; then
		echo "ok $nr $what"
	else
		echo "not ok $nr $what"
		failures=$((failures + 1))
	fi
}

# Touches 8 MiB with a profile that says how many pages of 512 the program touches, and that huge pages save 50 ms.
# Prints the MiB in huge pages.
touch_8() {
	printf 'mm_profile 1\nprogram econ\nrun 1000000000000\nmmap 0 23 3 0 0x800000 50000000 %s 100\nend 1\n' "$1" \
		>"$work/profile"
	sh -c 'dd if="$1" of=/proc/$$/mm_profile bs=1M status=none && exec "$2" - touch_8' sh "$work/profile" "$econ"
	echo $?
}

touches() {
	[ "$(touch_8 "$1")" = "$2" ]
}

counted() {
	sed -n "s/^$1 //p" $sysfs/stats/program
}

refuses() {
	! "$@" >/dev/null 2>&1
}

[ -w $sysfs/mode ] || skip 'no econ'
[ -r $sysfs/stats/program ] || skip 'no BPF programs can decide'
command -v bpftool >/dev/null || skip 'no bpftool'
"$clang" -O2 -g -target bpf -Wall -Werror "-I/usr/include/$(uname -m)-linux-gnu" -c "$here/econ_model.bpf.c" \
	-o "$work/model.o" || skip 'no clang, or no headers of libbpf'
echo 1..9
echo 0 >$sysfs/zeroed_blocks/limit
echo always >/sys/kernel/mm/transparent_hugepage/enabled
echo on >$sysfs/mode
check 'without a program the model decides' touches 100 8
check 'a program is registered' bpftool struct_ops register "$work/model.o"
check 'it refuses' touches 100 0
check 'refusals are counted' [ "$(counted refused)" -ge 4 ]
check 'it leaves other decisions to the model' touches 300 8
check 'there is one program at a time' refuses bpftool struct_ops register "$work/model.o"
echo off >$sysfs/mode
check 'in mode off it is not asked' touches 100 8
echo on >$sysfs/mode
check 'it is unregistered' bpftool struct_ops unregister name half_used
check 'the model decides again' touches 100 8
[ $failures = 0 ]
