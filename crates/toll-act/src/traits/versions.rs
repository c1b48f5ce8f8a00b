// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versions of the programs and libraries for which permanent changes are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use super::{Version, contents};

/// The versions that the files of a process reveal, by the names that the rules use. `text` is the
/// contents of the program's file.
pub(super) fn versions(
    program: &Path,
    text: &[u8],
    files: &[PathBuf],
) -> BTreeMap<String, Version> {
    let all = [
        ("cpython", named(program, files, &["python", "libpython"])),
        ("glibc", glibc(files)),
        ("go", go(text)),
        ("mimalloc", mimalloc(text, files)),
        ("postgres", postgres(program, text)),
        ("pytorch", pytorch(files)),
    ];
    let known = |(name, version): (&str, Option<Version>)| Some((name.to_owned(), version?));
    all.into_iter().filter_map(known).collect()
}

fn name_of(file: &Path) -> &str {
    file.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

fn find<'a>(files: &'a [PathBuf], prefix: &str) -> Option<&'a PathBuf> {
    files.iter().find(|file| name_of(file).starts_with(prefix))
}

/// A version in the name of the program or a library, after one of the prefixes.
fn named(program: &Path, files: &[PathBuf], prefixes: &[&str]) -> Option<Version> {
    let all = files.iter().map(PathBuf::as_path);
    let after = |file: &Path| {
        let name = name_of(file).to_owned();
        let rest = prefixes.iter().find_map(|it| name.strip_prefix(it))?;
        rest.parse().ok()
    };
    std::iter::once(program).chain(all).find_map(after)
}

/// The first match of a pattern in a text.
fn matched(text: &[u8], pattern: &str) -> Option<Version> {
    let pattern = Regex::new(pattern).expect("valid");
    let found = pattern.captures(text)?;
    std::str::from_utf8(&found[1]).ok()?.parse().ok()
}

fn glibc(files: &[PathBuf]) -> Option<Version> {
    let library = contents(find(files, "libc.so.6")?)?;
    matched(&library, r"(?-u)release version (\d+\.\d+)")
}

fn postgres(program: &Path, text: &[u8]) -> Option<Version> {
    if !["postgres", "postmaster"].contains(&name_of(program)) {
        return None;
    }
    matched(text, r"(?-u)\x00PostgreSQL (\d+\.\d+)[^\x00]* on ")
}

/// From the library's name, or 2.1 if the program contains the option that is new in it.
fn mimalloc(program: &[u8], files: &[PathBuf]) -> Option<Version> {
    let in_name = |file: &PathBuf| {
        let rest = name_of(file).strip_prefix("libmimalloc")?;
        rest.split_once(".so.")?.1.parse().ok()
    };
    let option = Regex::new(r"(?-u)\x00allow_large_os_pages\x00").expect("valid");
    files
        .iter()
        .find_map(in_name)
        .or_else(|| option.is_match(program).then_some(Version(2, 1, 0)))
}

/// PyTorch's Python package has its version beside the libraries.
fn pytorch(files: &[PathBuf]) -> Option<Version> {
    let package = find(files, "libtorch_cpu.so")?.parent()?.parent()?;
    let text = contents(&package.join("version.py"))?;
    matched(&text, r#"(?-u)__version__ = ['"](\d+\.\d+\.\d+)"#)
}

/// From the build information that Go's linker adds since 1.18: a header of 32 bytes, then the
/// length of the version, and the version.
fn go(program: &[u8]) -> Option<Version> {
    matched(
        program,
        r"(?s-u)\xff Go buildinf:.{18}.go(\d+\.\d+(?:\.\d+)?)",
    )
}

#[cfg(test)]
mod tests;
