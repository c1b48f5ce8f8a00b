// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of one test. It is removed with the value.

use std::fs::{self, DirEntry, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use toll_linux::Root;

use crate::machine::is_root;
use crate::output::stderr;
use crate::tool::tollfree;

/// The exit code of a line of [`Directory::in_own_mounts`] if mounting is not allowed.
pub const UNABLE: i32 = 99;

pub struct Directory(TempDir);

impl Directory {
    pub fn empty() -> Directory {
        Directory(tempfile::tempdir().unwrap())
    }

    /// Creates a directory with these files, by path.
    pub fn with(files: &[(&str, &str)]) -> Directory {
        let directory = Directory::empty();
        for (name, content) in files {
            directory.write(name, content);
        }
        directory
    }

    pub fn as_path(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// The directory in place of `/`.
    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    /// Writes a file, and creates the directories above it.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Replaces a file atomically, so that a reader never sees half of it.
    pub fn replace(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        let new = self.write(path.with_extension("new"), content);
        fs::rename(new, path).unwrap();
    }

    /// Writes an executable file.
    pub fn executable(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, content);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Returns the text of a file; empty if the file does not exist.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns a JSON file; `null` if it does not exist.
    pub fn json(&self, name: impl AsRef<Path>) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_default()
    }

    /// Returns the names in this directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Returns `tollfree ARGUMENTS` in this directory, with piped output.
    pub fn tollfree(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tollfree());
        command.args(arguments).current_dir(&self.0);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns `tollfree ARGUMENTS --root DIRECTORY`.
    pub fn as_machine(&self, arguments: &[&str]) -> Command {
        let mut command = self.tollfree(arguments);
        command.arg("--root").arg(self.as_path());
        command
    }

    /// Runs `tollfree ARGUMENTS` in this directory to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.tollfree(arguments).output().unwrap()
    }

    /// Runs a shell line in this directory, with `$TOLLFREE`.
    pub fn shell(&self, line: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("TOLLFREE", tollfree());
        command.current_dir(&self.0).output().unwrap()
    }

    /// Runs a shell line in this directory as root in a private mount namespace, with `$TOLLFREE`.
    /// Returns `None`, with a message, if that is not possible.
    pub fn in_own_mounts(&self, line: &str) -> Option<Output> {
        if !is_root() {
            eprintln!("skipped: not root");
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", line]);
        command.env("TOLLFREE", tollfree()).current_dir(&self.0);
        let output = command.stdin(Stdio::null()).output().unwrap();
        if output.status.code() == Some(UNABLE) || stderr(&output).starts_with("unshare:") {
            eprintln!("skipped: {}", stderr(&output));
            return None;
        }
        Some(output)
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}
