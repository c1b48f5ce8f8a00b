// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of one test, with the compiled test program, and shared queries.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use toll_linux::calibrate::cache_directory;

use crate::{common, preload};

pub const TOLLFREE: &str = env!("CARGO_BIN_EXE_tollfree");
/// Time limit for waiting for an event that should be immediate.
const PATIENCE: Duration = Duration::from_secs(180);

/// The directory of one test.
pub struct Place(TempDir);

impl Place {
    /// With `./faulty` (tests/data/faulty.c), and a list that makes nothing huge.
    pub fn new() -> Place {
        preload::library();
        let place = Place(tempfile::tempdir().unwrap());
        assert!(place.compile("faulty", &["-g"]));
        place.write("none.txt", "");
        place
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// An executable file.
    pub fn executable(&self, name: &str, content: &[u8]) {
        let path = self.write(name, content);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Compiles tests/data/faulty.c as `name`; false if the compiler fails.
    pub fn compile(&self, name: &str, options: &[&str]) -> bool {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/faulty.c");
        let options = [&["-O1"], options].concat();
        common::compile_where_possible(&source, &self.path(name), &options)
    }

    /// `tollfree ARGUMENTS` in this directory, with piped output.
    pub fn tollfree(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOLLFREE);
        command.args(arguments).current_dir(self.directory());
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.tollfree(arguments).output().unwrap()
    }

    /// Records `command` into `profile.json`; the profile is `null` if there is none.
    pub fn record(&self, source: &str, command: &[&str]) -> (Output, Value) {
        let mut arguments = vec!["record", "--force", "--source", source];
        arguments.extend(["-o", "profile.json", "--"]);
        arguments.extend(command);
        let _ = fs::remove_file(self.path("profile.json"));
        let output = self.run(&arguments);
        (output, self.json("profile.json"))
    }

    /// A JSON file; `null` if it does not exist.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_default()
    }

    /// The names in this directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Runs a shell line in this directory as root in a private mount namespace, with `$TOLLFREE`;
    /// `None`, with a message, if that is not possible.
    pub fn in_own_mounts(&self, line: &str) -> Option<Output> {
        if !is_root() {
            eprintln!("skipped: not root");
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", line]);
        command
            .current_dir(self.directory())
            .env("TOLLFREE", TOLLFREE);
        let output = command.stdin(Stdio::null()).output().unwrap();
        if output.status.code() == Some(UNABLE) || stderr(&output).starts_with("unshare:") {
            eprintln!("skipped: {}", stderr(&output));
            return None;
        }
        Some(output)
    }
}

/// The exit code of a line of [`Place::in_own_mounts`] if mounting is not allowed.
pub const UNABLE: i32 = 99;

/// Whether programs can be simulated here; prints a message if not.
pub fn has_simulator() -> bool {
    let place = Place::new();
    let (output, _) = place.record("sim", &["true"]);
    let said = stderr(&output);
    let missing = said.contains("is missing") || said.contains("the simulator needs QEMU");
    if missing {
        eprintln!("skipped: {said}");
    }
    !missing
}

/// Sets a private cache for a command; it still finds the QEMU in the user's cache.
pub fn give_cache(command: &mut Command, cache: &Path) {
    let mut places = env::var_os("TOLLFREE_LIBDIR").unwrap_or_default();
    if let Some(users) = cache_directory() {
        if !places.is_empty() {
            places.push(":");
        }
        places.push(users.join("bin"));
    }
    command.env("XDG_CACHE_HOME", cache);
    command.env("TOLLFREE_LIBDIR", places);
}

/// Whether memory becomes huge by advice here, and only by advice.
pub fn thp_is_madvise() -> bool {
    let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is = mode.is_ok_and(|mode| mode.contains("[madvise]"));
    if !is {
        eprintln!("skipped: THP is not at madvise");
    }
    is
}

pub fn is_root() -> bool {
    // SAFETY: no argument.
    unsafe { libc::geteuid() == 0 }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What tollfree printed as JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}

/// Asserts the exit code, and that stderr contains all parts.
pub fn assert_fails(output: &Output, code: i32, says: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in says {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

pub fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < end, "waited in vain for: {what}");
        sleep(Duration::from_millis(2));
    }
}

pub fn interrupt(pid: u32) {
    // SAFETY: kill takes no pointer.
    assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGINT) }, 0);
}

/// Whether a process is running, not counting zombies.
pub fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}
