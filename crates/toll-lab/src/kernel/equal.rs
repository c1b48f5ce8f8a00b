// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the code of two builds: with all its symbols off, the patch queue must not change any
//! object.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionFlags, SectionKind, elf};

use crate::files;

/// Objects that contain the release string or the configuration, which differ between variants.
const NAMED: [&str; 4] = [
    "init/version-timestamp.o",
    "init/version.o",
    "arch/x86/boot/version.o",
    "kernel/configs.o",
];

/// The section of `struct bug_entry`.
const BUGS: &str = "__bug_table";
/// Size of an entry with CONFIG_GENERIC_BUG_RELATIVE_POINTERS and CONFIG_DEBUG_BUGVERBOSE: two
/// displacements of 32 bits, the line and the flags.
const BUG_SIZE: usize = 12;
/// The number of the source line in an entry: a patch that inserts a line above changes it, and no
/// code.
const BUG_LINE: Range<usize> = 8..10;

/// Returns a message for each object that differs between two builds.
pub fn differences(one: &Path, other: &Path) -> Result<(usize, Vec<String>)> {
    let (ours, theirs) = (objects(one)?, objects(other)?);
    let mut found = Vec::new();
    for path in ours
        .keys()
        .chain(theirs.keys().filter(|path| !ours.contains_key(*path)))
    {
        match (ours.get(path), theirs.get(path)) {
            (Some(a), Some(b)) => found.extend(difference(path, &sections(a)?, &sections(b)?)),
            (Some(_), None) => found.push(format!("{}: only in {}", path.display(), one.display())),
            _ => found.push(format!("{}: only in {}", path.display(), other.display())),
        }
    }
    Ok((ours.len(), found))
}

/// Lists the compiled objects of a build by relative path. Objects that the linker combined from
/// others are left out: they contain no other code.
fn objects(build: &Path) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let is_compiled = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_own = name.ends_with(".o") && !name.starts_with("vmlinux") && !name.starts_with(".");
        is_own
            && !path.starts_with("scripts")
            && !path.starts_with("tools")
            && !path.starts_with("usr")
    };
    let found = files::below(build)?
        .into_iter()
        .filter(|path| is_compiled(path));
    Ok(found
        .filter(|path| !NAMED.iter().any(|named| path == Path::new(named)))
        .map(|path| (path.clone(), build.join(path)))
        .collect())
}

/// Returns code and data of an object by section name; sections of the same name are concatenated.
/// The line numbers of warnings are zeroed.
fn sections(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let content = fs::read(path).with_context(|| path.display().to_string())?;
    let Ok(object) = object::File::parse(content.as_slice()) else {
        // Not ELF (an LTO object, for example): compare the whole file.
        return Ok(BTreeMap::from([("whole file".to_owned(), content)]));
    };
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for section in object.sections().filter(is_loaded) {
        let name = section.name().unwrap_or_default().to_owned();
        found
            .entry(name)
            .or_default()
            .extend(section.data().unwrap_or_default());
    }
    for entry in found
        .get_mut(BUGS)
        .into_iter()
        .flat_map(|it| it.chunks_exact_mut(BUG_SIZE))
    {
        entry[BUG_LINE].fill(0);
    }
    Ok(found)
}

fn is_loaded<'a>(section: &impl ObjectSection<'a>) -> bool {
    let SectionFlags::Elf { sh_flags } = section.flags() else {
        return false;
    };
    sh_flags & u64::from(elf::SHF_ALLOC) != 0 && section.kind() != SectionKind::Note
}

fn difference(
    path: &Path,
    a: &BTreeMap<String, Vec<u8>>,
    b: &BTreeMap<String, Vec<u8>>,
) -> Option<String> {
    let differs = |name: &&String| a.get(*name) != b.get(*name);
    let names: Vec<&str> = a
        .keys()
        .chain(b.keys().filter(|name| !a.contains_key(*name)))
        .filter(differs)
        .map(String::as_str)
        .collect();
    (!names.is_empty()).then(|| format!("{}: {} differ", path.display(), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn compile(directory: &Path, name: &str, source: &str) {
        let file = directory.join("x.c");
        files::write(&file, source.as_bytes()).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-c", "-O2", "-o"])
            .arg(directory.join(name))
            .arg(&file);
        assert!(gcc.status().unwrap().success());
    }

    /// Returns the differences between the object of `source` and that of a plain function.
    fn against_plain(source: &str) -> Vec<String> {
        between("int f(int x) { return x + 1; }\n", source)
    }

    /// Returns the differences between the objects of two sources.
    fn between(first: &str, second: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        for (build, source) in [(&one, first), (&other, second)] {
            fs::create_dir(build).unwrap();
            compile(build, "x.o", source);
        }
        differences(&one, &other).unwrap().1
    }

    #[test]
    fn an_inserted_comment_changes_nothing() {
        let same = "/* a comment */\n\nint f(int x) { return x + 1; }\n";
        let found = against_plain(same);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn one_instruction_or_one_variable_does() {
        let code = against_plain("int f(int x) { return x + 2; }\n");
        assert!(code[0].starts_with("x.o: .text"), "{code:?}");
        let data = against_plain("int y = 7;\nint f(int x) { return x + 1; }\n");
        assert!(data[0].contains(".data"), "{data:?}");
    }

    #[test]
    fn the_line_of_a_warning_changes_nothing_and_its_flags_do() {
        let bug = |line: u16, flags: u16| {
            let entries = format!(".long 0, 0, 0, 0, 0; .word {line}, {flags}");
            format!("asm(\".pushsection {BUGS},\\\"aw\\\"; {entries}; .popsection\");\n")
        };
        assert_eq!(between(&bug(7, 1), &bug(8, 1)), [""; 0]);
        assert!(between(&bug(7, 1), &bug(7, 2))[0].contains(BUGS));
    }

    #[test]
    fn an_object_that_is_not_in_both_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        compile(&other, "new.o", "int y;\n");
        let found = differences(&one, &other).unwrap().1;
        assert!(found[0].starts_with("new.o: only in "), "{found:?}");
    }
}
