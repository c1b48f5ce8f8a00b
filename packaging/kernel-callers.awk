# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the functions and macros of headers that use a word of the first file in their bodies:
#     awk -f kernel-callers.awk WORDS HEADER...
# It relies on the kernel's style: a function begins and ends in the first column.

FNR == NR {
	wanted[$1]
	next
}

FNR == 1 {
	inside = ""
}

function uses(text,    word) {
	while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
		word = substr(text, RSTART, RLENGTH)
		if (word in wanted)
			return 1
		text = substr(text, RSTART + RLENGTH)
	}
	return 0
}

# Prints the function or macro once.
function found() {
	if (!(inside in printed))
		print inside
	printed[inside]
}

/^#[ \t]*define[ \t]/ {
	text = $0
	sub(/^#[ \t]*define[ \t]+/, "", text)
	match(text, /^[A-Za-z_0-9]+/)
	inside = substr(text, 1, RLENGTH)
	is_macro = 1
	$0 = substr(text, RLENGTH + 1)
}

inside != "" && is_macro {
	if (uses($0))
		found()
	if (!/\\$/)
		inside = ""
	next
}

/^[A-Za-z_].*\(/ && !/;[ \t]*$/ {
	inside = $0
	sub(/\(.*/, "", inside)
	sub(/.*[ \t*]/, "", inside)
	is_macro = 0
	next
}

/^}/ {
	inside = ""
}

inside != "" && /^[ \t]/ && uses($0) {
	found()
}
