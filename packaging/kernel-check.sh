# SPDX-License-Identifier: MIT OR Apache-2.0
# The check of packaging/kernel-deb.sh, without the full build. POSIX sh, to be sourced.
#
# It builds the objects that the queue touches or that call it, with the queue and without, and each module with such an
# object. For the rest of the kernel it takes the symbols of Debian's own build of the same version. Then
# - the linker's view: a symbol that an object uses is defined in another object, or was used or exported without the queue
#   too, or is a function of Debian's vmlinux; and no symbol that was defined without the queue is missing;
# - modpost's view: whatever a module uses is exported.
# shellcheck shell=sh disable=SC2034,SC2154

# kbuild_directory FILE: prints the directory with the makefile that lists the object of a file.
kbuild_directory() {
	directory=${1%/*}
	while ! [ -f "$place/tree/$directory/Makefile" ] && ! [ -f "$place/tree/$directory/Kbuild" ]; do
		case $directory in
		*/*) directory=${directory%/*} ;;
		*) break ;;
		esac
	done
	say "$directory"
}

# Prints the configured objects of the directories of the files in its input: lines "vmlinux OBJECT..." and
# "MODULE OBJECT...".
members() {
	while read -r file; do
		kbuild_directory "$file"
	done | sort -u | while read -r directory; do
		make --no-print-directory -rR -C "$check_build" -f "$here/../packaging/kernel-members.mk" srctree=.. obj="$directory" \
			SRCARCH=x86 BITS=64 list 2>>"$log" || fault "the objects of $directory could not be listed (the whole log: $log)"
	done
}

# Prints the C files of a list of files, without those of user space.
c_files() {
	grep '\.c$' "$1" | grep -v -E '^(tools|Documentation)/'
}

kernel_directories='arch/x86 block crypto drivers fs include init io_uring ipc kernel lib mm net security sound virt'

# Prints the symbols that the new objects define. Not only those that they export: one that is no longer exported must
# still lead to its callers.
new_symbols() {
	(
		cd "$check_build" || exit
		configured <new | xargs nm -g --defined-only | awk 'NF == 3 { print $3 }' | sort -u
	)
}

# Prints the C files that use a symbol of the queue, directly or through inline functions of headers.
callers() {
	(
		cd "$place/tree" || exit
		words=$check_build/words
		new_symbols >"$words"
		while :; do
			# shellcheck disable=SC2086
			grep -rlwF -f "$words" --include='*.h' $kernel_directories >"$words.headers" || break
			xargs awk -f "$here/../packaging/kernel-callers.awk" "$words" <"$words.headers" | cat - "$words" | sort -u >"$words.more"
			! cmp -s "$words" "$words.more" || break
			mv "$words.more" "$words"
		done
		# shellcheck disable=SC2086
		grep -rlwF -f "$words" --include='*.c' $kernel_directories || true
	)
}

# Prints the objects of the files in its input that vmlinux or a module has under this configuration.
configured() {
	sed 's/\.c$/.o/' | awk 'NR == FNR { for (i = 2; i <= NF; i++) has[$i]; next } $1 in has' "$check_build/members" -
}

# Builds the new objects, and writes the lists of built-in objects and of modules with their objects.
list_objects() {
	seam_files >"$check_build/changed"
	new_files >"$check_build/added"
	c_files "$check_build/changed" >"$check_build/seams"
	c_files "$check_build/added" >"$check_build/new"
	cat "$check_build/seams" "$check_build/new" | members >"$check_build/members"
	# shellcheck disable=SC2046
	must_make "the build" tree "check-$flavour" $(configured <"$check_build/new")
	callers | sort -u | grep -v -x -F -f "$check_build/new" >"$check_build/callers"
	sort -u "$check_build/seams" "$check_build/new" "$check_build/callers" >"$check_build/sources"
	members <"$check_build/sources" >"$check_build/members"
	sed 's/\.c$/.o/' "$check_build/sources" |
		awk 'NR == FNR { wanted[$1]; next } $1 == "vmlinux" { for (i = 2; i <= NF; i++) if ($i in wanted) print $i }' - "$check_build/members" |
		sort -u >"$check_build/builtin"
	sed 's/\.c$/.o/' "$check_build/sources" |
		awk 'NR == FNR { wanted[$1]; next } $1 != "vmlinux" { for (i = 2; i <= NF; i++) if ($i in wanted) { print; next } }' - "$check_build/members" >"$check_build/modules"
}

count() {
	wc -l <"$check_build/$1"
}

# Prints what is built.
print_lists() {
	objects=$(awk '{ n += NF - 1 } END { print n + 0 }' "$check_build/modules")
	say "  $(count builtin) objects of vmlinux: $(configured <"$check_build/seams" | grep -c -x -F -f "$check_build/builtin") with seams, $(configured <"$check_build/new" | wc -l) new, the rest callers"
	say "  $(count modules) modules of $objects objects: $(cut -d ' ' -f 1 "$check_build/modules" | sed 's,.*/,,; s,\.o$,,' | sort | paste -s -d ' ')"
	say "  not in this configuration: $(configured <"$check_build/sources" | sed 's/\.o$/.c/' | grep -v -x -F -f - "$check_build/sources" | paste -s -d ' ')"
}

# link BUILD OBJECT...: links objects to one, as modpost reads them.
link_objects() {
	linked=$1
	shift
	(cd "$linked" && ld -r -m elf_x86_64 -o vmlinux.o "$@" >>"$log" 2>&1) || fault "the objects of $linked cannot be linked: $(tail -n 1 "$log") (the whole log: $log)"
}

# symbols BUILD OPTION...: prints the symbols that nm lists in the linked object.
symbols() {
	nm_build=$1
	shift
	nm "$@" "$nm_build/vmlinux.o" | awk '{ print $NF }' | sort -u
}

# exports BUILD: prints the symbols that the linked object exports.
exports() {
	symbols "$1" | sed -n 's/^__export_symbol_//p'
}

# Finds symbols that objects of vmlinux use and nothing defines, and symbols that the queue has removed.
check_link() {
	symbols "$stock_build" -g --defined-only >"$check_build/stock.defined"
	symbols "$check_build" -g --defined-only >"$check_build/defined"
	symbols "$check_build" -u >"$check_build/used"
	python3 -B "$here/../packaging/kernel_functions.py" "$headers/vmlinux" >"$check_build/functions" ||
		die "the functions of Debian's kernel could not be read; remove $headers and start again"
	{
		symbols "$stock_build" -u
		awk -F '\t' '$3 == "vmlinux" { print $2 }' "$headers/Module.symvers"
		cat "$check_build/functions"
	} | sort -u | comm -23 - "$check_build/stock.defined" >"$check_build/known"
	undefined=$(comm -23 "$check_build/used" "$check_build/known" | paste -s -d ' ')
	[ -z "$undefined" ] || fault "used in vmlinux and not defined: $undefined"
	lost=$(comm -23 "$check_build/stock.defined" "$check_build/defined" | paste -s -d ' ')
	[ -z "$lost" ] || fault "defined without the queue, and not with it: $lost"
	say "  $(count used) symbols that these objects of vmlinux use are defined"
	exports "$stock_build" >"$check_build/stock.exports"
	exports "$check_build" >"$check_build/exports"
	lost=$(comm -23 "$check_build/stock.exports" "$check_build/exports" | paste -s -d ' ')
	[ -z "$lost" ] || fault "exported without the queue, and not with it: $lost"
	say "  $(count stock.exports) symbols that they export are still exported, and new: $(comm -13 "$check_build/stock.exports" "$check_build/exports" | paste -s -d ' ')"
}

# Writes Debian's list of exported symbols without those of the objects and modules that were built here.
other_exports() {
	{
		sed 's/^/symbol /' "$check_build/stock.exports" "$check_build/exports"
		sed 's/^/module /; s/\.o .*//' "$check_build/modules"
	} | awk -F '[ \t]' 'NR == FNR { has[$1, $2]; next } !(($3 == "vmlinux" && ("symbol", $2) in has) || ("module", $3) in has)' \
		- "$headers/Module.symvers" >"$check_build/other.symvers"
}

# Runs modpost on the modules, with the linked object as vmlinux.
modpost() {
	(
		cd "$check_build" || exit
		sed 's/ .*//' modules >modules.order
		cp builtin .vmlinux.objs
		scripts/mod/modpost -M -m -i other.symvers -o checked.symvers -T modules.order vmlinux.o
	) >"$check_build/modpost.log" 2>&1
}

# Prints the undefined symbols in modpost's output, with their modules.
unresolved() {
	sed -n 's/^ERROR: modpost: "\(.*\)" \[\(.*\)\.ko\] undefined!$/\1 (\2)/p' "$check_build/modpost.log" | sort -u
}

check_modules() {
	other_exports
	modpost || {
		cat "$check_build/modpost.log" >>"$log"
		wrong=$(unresolved | paste -s -d ' ')
		fault "modpost fails: ${wrong:-$(grep -m 1 ERROR "$check_build/modpost.log")} (the whole log: $log)"
	}
	say "  whatever the modules use is exported"
}

# Without the objects that export what the queue adds, modpost must fail: otherwise the check would find nothing.
check_modpost() {
	# shellcheck disable=SC2046
	link_objects "$check_build" $(configured <"$check_build/new" | while read -r object; do
		nm "$check_build/$object" | grep -q ' __export_symbol_' || say "$object"
	done) $(configured <"$check_build/new" | grep -v -x -F -f - "$check_build/builtin")
	! modpost || fault "modpost does not notice that what the queue exports is missing"
	say "  without the objects that export them, modpost misses: $(unresolved | sed 's/ .*//' | sort -u | paste -s -d ' ')"
}

check_queue() {
	check_build=$place/tree/check-$flavour stock_build=$place/stock/check-$flavour
	[ -d "$place/stock" ] || {
		link_tree stock
		mv "$place/stock.part" "$place/stock"
	}
	debian=$queue/config/debian.config fragment=$place/no-debug.config
	# Debug information changes no code, and it takes half of the time and most of the disk.
	printf '%s\n' CONFIG_DEBUG_INFO_NONE=y '# CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT is not set' >"$fragment"
	say "Configuring and preparing"
	configure tree "check-$flavour" "$debian" "$fragment" "$queue_config"
	must_make "the preparation" tree "check-$flavour" prepare modules_prepare
	configure stock "check-$flavour" "$debian" "$fragment"
	must_make "the preparation" stock "check-$flavour" prepare
	say "Building under the configuration of Debian's $flavour"
	list_objects
	print_lists
	# shellcheck disable=SC2046
	must_make "the build" tree "check-$flavour" $(cat "$check_build/builtin") \
		$(sed 's/^\([^ ]*\)\.o .*/\1.o \1.mod/' "$check_build/modules")
	say "Building the same objects of vmlinux without the queue"
	# shellcheck disable=SC2046
	must_make "the build" stock "check-$flavour" $(stock_objects)
	say "Checking"
	# shellcheck disable=SC2046
	link_objects "$check_build" $(cat "$check_build/builtin")
	# shellcheck disable=SC2046
	link_objects "$stock_build" $(stock_objects)
	check_link
	check_modules
	check_modpost
}

# Prints the built-in objects that exist without the queue.
stock_objects() {
	configured <"$check_build/new" | grep -v -x -F -f - "$check_build/builtin"
}
