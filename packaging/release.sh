#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a release from the last commit: a commit with the new version, its files, and a tag.
#     packaging/release.sh [--dry-run] VERSION         (make release VERSION=1.2.3 [DRY_RUN=1])
# All of it is prepared in a work tree of its own, so a release that fails changes nothing. Nothing is published: the
# commands for that are printed. With --dry-run the changes are shown, and nothing is built.
# Status: 0 released, 3 it could not be.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=../setup/lib.sh
. setup/lib.sh

# Prints the newer one of two versions.
newer() {
	printf '%s\n' "$@" | sort -V | tail -n 1
}

# Prints the entries of a section of CHANGELOG.md in directory $1: "Unreleased" or a version.
section() {
	awk -v name="$2" '/^## / { inside = $2 == name; next } inside' "$1/CHANGELOG.md"
}

check_version() {
	printf '%s\n' "$version" | grep -q -x -E '(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}' ||
		die "VERSION='$version' is no version: three numbers such as 1.2.3"
	! git rev-parse --verify --quiet "refs/tags/$tag" >/dev/null || die "the tag $tag exists already"
	last=$(git tag --list 'v[0-9]*' | sed 's/^v//' | sort -V | tail -n 1)
	[ "$(newer "$version" "${last:-0}")" = "$version" ] || die "$version is not newer than $last, which has a tag"
	present=$(sed -n '/^\[workspace\.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
	[ "$(newer "$version" "$present")" = "$version" ] || die "$version is not newer than $present in Cargo.toml"
}

check_tree() {
	branch=$(git symbolic-ref --quiet --short HEAD) || die "no branch is checked out to release from"
	[ -z "$(git status --porcelain)" ] || die "the work tree has changes: commit or remove them first (git status)"
	git var GIT_COMMITTER_IDENT >/dev/null 2>&1 || die "git does not know your name: set user.name and user.email"
	grep -q '^## Unreleased$' CHANGELOG.md || die "CHANGELOG.md has no section '## Unreleased'"
	section . Unreleased | grep -q '^- ' || die "CHANGELOG.md has no entry under Unreleased"
	[ ! -e "$files" ] || die "$files exists already: remove it first"
}

# edit FILE PROGRAM: changes a file of the work tree by a program of awk, which knows the version as `version`.
edit() {
	awk -v version="$version" -v date="$(date -u +%Y-%m-%d)" "$2" "$work/$1" >"$work/$1.new"
	mv "$work/$1.new" "$work/$1"
}

# Cargo.lock has the version for the packages without a source, which are the workspace's own.
change_version() {
	edit Cargo.toml '/^\[/ { ours = $0 == "[workspace.package]" }
		ours && /^version = / { $0 = "version = \"" version "\"" }
		{ print }'
	edit Cargo.lock 'held != "" { print /^source = / ? held : "version = \"" version "\""; held = "" }
		/^version = "/ { held = $0; next }
		{ print }'
	edit CHANGELOG.md '{ print } $0 == "## Unreleased" { print "\n## " version " - " date }'
}

show() {
	git -C "$work" --no-pager diff --unified=1
	say "
Without --dry-run this is committed as \"release: tollfree $version\" on $branch, \`make release-files\` makes the packages,
the source, the bill of materials and SHA256SUMS of it in $files, and the commit is tagged as $tag."
}

# Commits in the work tree, and makes the files of that commit.
build() {
	git -C "$work" commit --quiet --all --message "release: tollfree $version"
	commit=$(git -C "$work" rev-parse HEAD)
	say "Building $tag ($commit); the log is target/release.log"
	# The variables of the calling make would be those of this one too.
	env -u MAKEFLAGS -u VERSION -u DRY_RUN -u CARGO_TARGET_DIR -u SOURCE_DATE_EPOCH \
		make --no-print-directory -C "$work" release-files >target/release.log 2>&1 || {
		tail -n 10 target/release.log >&2
		die "the build failed; nothing is released"
	}
	mkdir -p target/releases
	mv "$work/target/packages" "$files"
}

# Tags the release, and moves the branch to it. Headings of the entries are not comments.
conclude() {
	section "$work" "$version" | sed "1i tollfree $version" |
		git tag --annotate --cleanup=whitespace --file - "$tag" "$commit" || {
		rm -rf "$files"
		die "git could not make the tag; nothing is released"
	}
	git merge --quiet --ff-only "$commit" 2>/dev/null || {
		git tag --delete "$tag" >/dev/null
		rm -rf "$files"
		die "$branch or its files have changed during the build; nothing is released"
	}
}

finish() {
	say "Tagged $tag. Its files are in $files:"
	sed 's/^[^ ]* ./  /' "$files/SHA256SUMS"
	say "To test the packages in new roots:
  packaging/test.sh $files/*
To publish the commit and the tag, and then the files:
  git push origin $branch $tag
To undo it instead:
  git tag -d $tag; git reset --keep HEAD^; rm -r $files"
}

dry_run=
[ "${1:-}" != --dry-run ] || {
	dry_run=yes
	shift
}
[ $# = 1 ] && [ -n "$1" ] || die "usage: make release VERSION=1.2.3 [DRY_RUN=1], or packaging/release.sh [--dry-run] VERSION"
version=$1 tag=v$1 files=target/releases/$1
check_version
check_tree
mkdir -p target
place=$(mktemp -d "$(pwd)/target/release.XXXXXX") || die "target cannot be written"
work=$place/tollfree
trap 'rm -rf "$place"; git worktree prune' EXIT
trap 'exit 130' HUP INT TERM
git worktree add --quiet --detach "$work"
change_version
if [ -n "$dry_run" ]; then
	show
else
	build
	conclude
	finish
fi
