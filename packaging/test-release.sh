#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of packaging/release.sh, release-files.sh and check-reproducible.sh in a repository of their own, in which
# `make packages` makes small files instead of the packages.
set -eu
cd "$(dirname "$0")/.."
origin=$(pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
repository=$place/repository
present=$(sed -n '/^\[workspace\.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)

# Nothing of the user's settings matters.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
export HOME="$place" GIT_CONFIG_NOSYSTEM=1
unset XDG_CONFIG_HOME SOURCE_DATE_EPOCH

# fresh [COMMAND]: a repository with one entry in the changelog; COMMAND is what `make packages` runs.
fresh() {
	rm -rf "$repository"
	mkdir "$repository"
	cp -R "$origin/Cargo.toml" "$origin/Cargo.lock" "$origin/packaging" "$origin/setup" "$repository"
	cd "$repository"
	# The packages of the workspace without their code: cargo reads no more to resolve what they need.
	for file in "$origin"/crates/*/Cargo.toml "$origin"/crates/*/src/main.rs "$origin"/crates/*/src/lib.rs; do
		[ -e "$file" ] || continue
		copy=${file#"$origin/"}
		mkdir -p "${copy%/*}"
		case $file in
		*.toml) cp "$file" "$copy" ;;
		*) : >"$copy" ;;
		esac
	done
	printf '# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n' >CHANGELOG.md
	printf '/target/\n' >.gitignore
	{
		sed '/^packages:/,/^$/d' "$origin/Makefile"
		printf 'packages:\n\tmkdir -p target/packages\n\t%s\n' "${1:-echo a package >target/packages/a.deb}"
	} >Makefile
	git init --quiet --initial-branch main .
	git config user.name tester
	git config user.email tester@localhost
	git add --all
	git commit --quiet --message start
}

# run COMMAND...: sets $said and $status.
run() {
	status=0
	said=$("$@" 2>&1) || status=$?
}

wrong() {
	printf '%s\nThe status was %s, and the output:\n%s\n' "$1" "$status" "$said"
	exit 1
}

# state: what a release could have changed.
state() {
	git rev-parse HEAD
	git status --porcelain
	git tag --list
	git worktree list
	find target -mindepth 1 ! -name release.log 2>/dev/null || true
}

# refuses TEXT COMMAND...: the command ends with status 3 and one line with the text, and changes nothing.
refuses() {
	expected=$1
	shift
	state >"$place/before"
	run "$@"
	state >"$place/after"
	[ "$status" = 3 ] || wrong "expected status 3"
	[ "$(printf '%s\n' "$said" | wc -l)" = 1 ] || wrong "expected one line"
	reads "$expected"
	cmp -s "$place/before" "$place/after" || wrong "it changed something: $(diff "$place/before" "$place/after")"
}

# reads TEXT...: the output contains each text.
reads() {
	for text; do
		case $said in
		*"$text"*) ;;
		*) wrong "expected to read: $text" ;;
		esac
	done
}

release=packaging/release.sh

# Bad input.
fresh
refuses "usage: make release VERSION=1.2.3" $release
refuses "usage: make release VERSION=1.2.3" $release ''
for bad in 1 1.2 1.2.3.4 01.2.3 1.2.3-rc1 v1.2.3 one; do
	refuses "VERSION='$bad' is no version" $release $bad
done
refuses "0.0.9 is not newer than $present in Cargo.toml" $release 0.0.9
git tag v7.0.0
refuses "the tag v7.0.0 exists already" $release 7.0.0
refuses "6.10.0 is not newer than 7.0.0" $release 6.10.0
echo more >>CHANGELOG.md
refuses "the work tree has changes" $release 7.0.1
git checkout --quiet CHANGELOG.md
echo new >untracked
refuses "the work tree has changes" $release 7.0.1
rm untracked
git checkout --quiet --detach
refuses "no branch is checked out" $release 7.0.1
git checkout --quiet main
sed -i 's/^- A thing.//' CHANGELOG.md && git commit --quiet --all --message empty
refuses "CHANGELOG.md has no entry under Unreleased" $release 7.0.1
sed -i '/^## Unreleased/d' CHANGELOG.md && git commit --quiet --all --message none
refuses "CHANGELOG.md has no section" $release 7.0.1

# A dry run shows the changes, and makes none.
fresh
state >"$place/before"
run make --no-print-directory release VERSION=8.0.0 DRY_RUN=1
[ "$status" = 0 ] || wrong "expected a dry run"
reads '+version = "8.0.0"' "-version = \"$present\"" "+## 8.0.0 - $(date -u +%Y-)" 'release: tollfree 8.0.0'
state >"$place/after"
cmp -s "$place/before" "$place/after" || wrong "the dry run changed something"

# A release: the version in all places, the entries under it, the tag, the files, and nothing else.
run make --no-print-directory release VERSION=8.0.0
[ "$status" = 0 ] || wrong "expected a release"
reads 'git push origin main v8.0.0' 'target/releases/8.0.0/*' 'tollfree-8.0.0.spdx.json'
[ -z "$(git status --porcelain)" ] || wrong "the work tree is not clean"
[ "$(git log -1 --format=%s)" = "release: tollfree 8.0.0" ] || wrong "the commit is missing"
[ "$(git rev-parse 'v8.0.0^{commit}')" = "$(git rev-parse HEAD)" ] || wrong "the tag is elsewhere"
[ "$(git cat-file -t v8.0.0)" = tag ] || wrong "the tag is not annotated"
git tag --list --format='%(contents)' v8.0.0 | tr '\n' '|' | grep -q -F 'tollfree 8.0.0||### Added||- A thing.' ||
	wrong "the tag has another message"
[ "$(git worktree list | wc -l)" = 1 ] || wrong "a work tree is left"
[ "$(ls target)" = "release.log
releases" ] || wrong "something is left in target"
printf '# Changelog\n\n## Unreleased\n\n## 8.0.0 - %s\n\n### Added\n\n- A thing.\n' "$(date -u +%Y-%m-%d)" |
	cmp -s - CHANGELOG.md || wrong "CHANGELOG.md is wrong: $(cat CHANGELOG.md)"
# Only versions of the workspace have changed, and cargo accepts the lock.
[ "$(git diff --numstat HEAD^ Cargo.toml | cut -f 1,2)" = "1	1" ] || wrong "Cargo.toml has other changes"
members=$(find crates -mindepth 2 -maxdepth 2 -name Cargo.toml | wc -l)
[ "$(git diff --numstat HEAD^ Cargo.lock | cut -f 1,2)" = "$members	$members" ] || wrong "Cargo.lock has other changes"
[ "$(git diff --name-only HEAD^ | wc -l)" = 3 ] || wrong "another file has changed"
cargo metadata --locked --format-version 1 >/dev/null 2>"$place/log" || wrong "cargo refuses the lock: $(cat "$place/log")"

# The files: the source is the commit, the checksums are of all files.
cd target/releases/8.0.0
[ "$(ls)" = "SHA256SUMS
a.deb
tollfree-8.0.0.spdx.json
tollfree-8.0.0.tar.xz" ] || wrong "unexpected files: $(ls)"
sha256sum --quiet --strict -c SHA256SUMS || wrong "the checksums are wrong"
[ "$(wc -l <SHA256SUMS)" = 3 ] || wrong "a checksum is missing"
mkdir "$place/unpacked"
tar -C "$place/unpacked" -xf tollfree-8.0.0.tar.xz
(cd "$place/unpacked/tollfree-8.0.0" && find . -type f | sed 's|^\./||' | sort) >"$place/after"
cd "$repository"
git ls-files | sort | cmp -s - "$place/after" || wrong "the archive has other files"
rm -rf "$place/unpacked"
refuses "CHANGELOG.md has no entry under Unreleased" $release 8.0.1

# A build that fails, and a branch that moves during it.
fresh 'echo no compiler >&2; exit 1'
refuses_after_build() {
	state >"$place/before"
	run $release 8.0.0
	[ "$status" = 3 ] || wrong "expected status 3"
	reads "$1" "nothing is released"
	state >"$place/after"
	cmp -s "$place/before" "$place/after" || wrong "it changed something: $(diff "$place/before" "$place/after")"
}
refuses_after_build "no compiler"
fresh 'echo a >target/packages/a; echo changed >>../../../CHANGELOG.md'
state >"$place/before"
run $release 8.0.0
git checkout --quiet CHANGELOG.md
state >"$place/after"
[ "$status" = 3 ] || wrong "expected status 3"
reads "have changed during the build"
[ ! -e target/releases/8.0.0 ] && [ -z "$(git tag --list)" ] || wrong "it released something"

# Two builds: equal, or different by the directory, the time zone, the modes, or a missing file.
compares() {
	fresh "$2"
	run packaging/check-reproducible.sh
	[ "$status" = "$1" ] || wrong "expected status $1 with: $2"
}
compares 0 'echo a package >target/packages/a.deb'
reads "a.deb" "tollfree-$present.tar.xz" "tollfree-$present.spdx.json" SHA256SUMS equal
case $said in *differ*) wrong "nothing differs" ;; esac
[ -z "$(ls target)" ] || wrong "something is left in target"
in_second='case $$(pwd) in *second) echo a >target/packages/more ;; esac'
compares 1 "pwd >target/packages/directory; date -d @0 +%H >target/packages/hour; umask >target/packages/modes; \
	echo \$\$CARGO_HOME >target/packages/cargo; $in_second"
reads "both builds are in target/reproducible"
for name in directory hour modes cargo more; do
	printf '%s\n' "$said" | grep -q "^$name .*differ: " || wrong "$name does not differ"
done
printf '%s\n' "$said" | grep -q "^tollfree-$present.tar.xz .* equal$" || wrong "the source differs"
[ "$(ls target/reproducible)" = "first.files
second.files" ] || wrong "the builds are not kept"
compares 3 'false'
reads "failed"
refuses "nowhere: no such revision" packaging/check-reproducible.sh nowhere
