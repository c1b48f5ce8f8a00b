// SPDX-License-Identifier: MIT OR Apache-2.0
//! Begins a variant's build as a copy of another one's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::make::BUILD;
use crate::error::LabError;
use crate::{files, output};

/// Makes `directory` a copy of another variant's tree with its build, so that make compiles only what
/// depends on a difference. Does nothing if `directory` exists, or if the other tree has no build;
/// waits for a call that is building it.
///
/// # Errors
/// Errors of creating files.
pub fn tree_with_build(other: &Path, directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let _lock = files::lock(&files::with_suffix(other, ".lock"))?;
    let tools = Path::new(BUILD).join("tools");
    if !other.join(&tools).is_dir() {
        return Ok(());
    }
    let _bar = output::progress("copying a source tree and its build");
    let part = files::with_suffix(directory, ".part");
    files::empty_directory(&part)?;
    files::link_tree(other, &part)?;
    // The compiler and the linker may write a file in place: the build must not be links.
    let build = part.join(BUILD);
    fs::remove_dir_all(&build).with_context(|| build.display().to_string())?;
    copy_with_times(&other.join(BUILD), &build)?;
    name_in_commands(&part.join(tools), other, directory)?;
    if let Some(changed) = files::read(&files::with_suffix(other, ".changed"))? {
        files::write(&files::with_suffix(directory, ".changed"), &changed)?;
    }
    fs::rename(&part, directory).with_context(|| directory.display().to_string())
}

/// Replaces the path of a tree in the commands that make has recorded below a directory. Only tools
/// are compiled with absolute paths; with another path make would compile them again, and then every
/// object that objtool checks.
fn name_in_commands(directory: &Path, old: &Path, new: &Path) -> Result<()> {
    let is_command = |path: &PathBuf| path.extension().is_some_and(|it| it == "cmd");
    for path in files::below(directory)?.into_iter().filter(is_command) {
        let path = directory.join(path);
        let text = files::read_text(&path)?;
        let (old, new) = (format!("{}/", old.display()), format!("{}/", new.display()));
        files::write(&path, text.replace(&old, &new).as_bytes())?;
    }
    Ok(())
}

fn copy_with_times(from: &Path, to: &Path) -> Result<()> {
    let output = Command::new("cp")
        .args(["--archive", "--reflink=auto", "--"])
        .args([from, to])
        .output()
        .map_err(|error| LabError::Missing(format!("cp: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    bail!("{}: not copied: {}", from.display(), why.trim_end())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::thread;
    use std::time::SystemTime;

    use super::*;

    const COMMAND: &str = "build/tools/objtool/.check.o.cmd";

    /// A tree `old` with a build, and what its copy `new` would be.
    struct Fixture {
        directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let fixture = Fixture {
                directory: tempfile::tempdir().unwrap(),
            };
            let old = fixture.path("old");
            let command = format!("gcc {0}/build/tools/check.c; {0}er\n", old.display());
            for (name, content) in [
                ("old/mm/a.c", "a\n"),
                ("old/build/mm/a.o", "object\n"),
                ("old.changed", "mm/a.c\n"),
                (&format!("old/{COMMAND}"), command.as_str()),
            ] {
                files::write(&fixture.path(name), content.as_bytes()).unwrap();
            }
            fixture
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn text(&self, name: &str) -> String {
            files::read_text(&self.path(name)).unwrap()
        }

        fn time(&self, name: &str) -> SystemTime {
            fs::metadata(self.path(name)).unwrap().modified().unwrap()
        }

        fn copy(&self) {
            tree_with_build(&self.path("old"), &self.path("new")).unwrap();
        }
    }

    #[test]
    fn sources_and_objects_keep_their_times() {
        let fixture = Fixture::new();
        fixture.copy();
        for (name, content) in [("mm/a.c", "a\n"), ("build/mm/a.o", "object\n")] {
            let (old, new) = (format!("old/{name}"), format!("new/{name}"));
            assert_eq!(fixture.text(&new), content);
            assert_eq!(fixture.time(&new), fixture.time(&old), "{name}");
        }
        assert_eq!(fixture.text("new.changed"), "mm/a.c\n");
        assert!(!fixture.path("new.part").exists());
    }

    #[test]
    fn an_object_that_is_written_in_place_does_not_change_the_other() {
        let fixture = Fixture::new();
        fixture.copy();
        fs::write(fixture.path("new/build/mm/a.o"), "other\n").unwrap();
        assert_eq!(fixture.text("old/build/mm/a.o"), "object\n");
    }

    #[test]
    fn commands_name_the_new_tree_and_no_longer_the_old_one() {
        let fixture = Fixture::new();
        fixture.copy();
        let (old, new) = (fixture.path("old"), fixture.path("new"));
        let wanted = format!(
            "gcc {}/build/tools/check.c; {}er\n",
            new.display(),
            old.display()
        );
        assert_eq!(fixture.text(&format!("new/{COMMAND}")), wanted);
    }

    #[test]
    fn a_build_that_is_not_complete_is_waited_for() {
        let fixture = Fixture::new();
        let (tools, hidden) = (fixture.path("old/build/tools"), fixture.path("hidden"));
        fs::rename(&tools, &hidden).unwrap();
        let building = files::lock(&fixture.path("old.lock")).unwrap();
        thread::scope(|scope| {
            let copying = scope.spawn(|| fixture.copy());
            while !copying.is_finished() && !is_waited_for(&fixture.path("old.lock")) {
                thread::yield_now();
            }
            fs::rename(&hidden, &tools).unwrap();
            drop(building);
        });
        assert_eq!(fixture.text("new/build/mm/a.o"), "object\n");
    }

    /// Whether a process waits for a lock: `1: -> FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE ...`.
    fn is_waited_for(lock: &Path) -> bool {
        let inode = format!(":{} ", fs::metadata(lock).unwrap().ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let waits = |line: &str| line.contains("->") && line.contains(&inode);
        locks.lines().any(waits)
    }

    #[test]
    fn what_exists_stays_and_without_a_build_nothing_is_copied() {
        let fixture = Fixture::new();
        files::write(&fixture.path("new/mm/a.c"), b"mine\n").unwrap();
        fixture.copy();
        assert_eq!(fixture.text("new/mm/a.c"), "mine\n");
        tree_with_build(&fixture.path("new"), &fixture.path("third")).unwrap();
        assert!(!fixture.path("third").exists());
    }
}
