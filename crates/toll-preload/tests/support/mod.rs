// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by the tests: the library, target programs, and their runs.
#![allow(dead_code)]

use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use toll_linux::events::EventFile;
use toll_testkit::Directory;
use toll_testkit::actions::Actions;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::recorded::Recorded;

pub const MIB: u64 = 1 << 20;

/// The library as it is shipped.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let directory = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
        let target = directory.unwrap_or_else(std::env::temp_dir).join("preload");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "toll-preload"])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo starts").success());
        target.join("release/libtoll_preload.so")
    })
}

/// A directory for one test, with its compiled programs.
pub struct Fixture(Directory);

impl Fixture {
    pub fn new() -> Fixture {
        Fixture(Directory::empty())
    }

    /// Writes the action file `actions`.
    pub fn plan(&self, actions: &Actions) -> PathBuf {
        let path = self.path("actions");
        actions.write(&path);
        path
    }

    /// Creates the event file `events`.
    pub fn events(&self, capacity: u32) -> PathBuf {
        let path = self.path("events");
        EventFile::create(&path, capacity).unwrap();
        path
    }

    /// Compiles `tests/data/SOURCE` with further arguments; `to` names the result.
    pub fn compile(&self, source: &str, to: &str, arguments: &[&str]) -> PathBuf {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
        let result = self.path(to);
        let status = Command::new(compiler)
            .args(["-O1", "-g", "-fno-builtin", "-pthread", "-o"])
            .arg(&result)
            .arg(data.join(source))
            .args(arguments)
            .status();
        assert!(status.expect("a C compiler").success(), "{source}");
        result
    }

    pub fn program(&self, source: &str) -> PathBuf {
        let name = source.split('.').next().unwrap();
        self.compile(source, name, &[])
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

/// A run of a target program.
pub struct Run {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
}

impl Run {
    pub fn new(program: &Path) -> Run {
        Run {
            program: program.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Run {
        let arguments = arguments.into_iter();
        self.arguments
            .extend(arguments.map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// Preloads another library before the one under test.
    pub fn before(mut self, library: &Path) -> Run {
        self.before.push(library.to_owned());
        self
    }

    /// Preloads another library after the one under test.
    pub fn after(mut self, library: &Path) -> Run {
        self.after.push(library.to_owned());
        self
    }

    fn command(&self, ours: bool) -> Command {
        let mut preload = Vec::new();
        preload.extend(self.before.iter().map(PathBuf::as_path));
        if ours {
            preload.push(library());
        }
        preload.extend(self.after.iter().map(PathBuf::as_path));
        let preload: Vec<_> = preload.iter().map(|path| path.to_str().unwrap()).collect();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_remove("TOLLFREE_SIM")
            .env("LD_PRELOAD", preload.join(":"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs without the library.
    pub fn plain(&self) -> Output {
        self.command(false).output().unwrap()
    }

    /// Runs with the library and these files.
    pub fn with(&self, actions: Option<&Path>, events: Option<&Path>) -> Output {
        let mut command = self.command(true);
        if let Some(actions) = actions {
            command.env("TOLLFREE_ACTIONS", actions);
        }
        if let Some(events) = events {
            command.env("TOLLFREE_EVENTS", events);
        }
        command.output().unwrap()
    }

    /// Runs with the library; checks that the output equals that of a plain run.
    pub fn same(&self, actions: Option<&Path>, events: Option<&Path>) -> Output {
        let plain = self.plain();
        let output = self.with(actions, events);
        assert_eq!(plain.status, output.status, "{output:?}");
        assert_eq!(stdout(&plain), stdout(&output));
        assert_eq!(stderr(&plain), stderr(&output));
        output
    }

    /// Records the events of a run; its output must equal that of a plain one.
    pub fn record(&self) -> Recorded {
        let fixture = Fixture::new();
        let events = fixture.events(100_000);
        self.same(None, Some(&events));
        Recorded::read(&events)
    }
}
