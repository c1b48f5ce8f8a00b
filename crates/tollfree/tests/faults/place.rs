// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of one test, with the compiled test program, and shared queries.

use std::env;
use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use toll_linux::calibrate::cache_directory;
use toll_testkit::compiler::compile_where_possible;
use toll_testkit::output::stderr;
use toll_testkit::process::{Running, wait_until};
use toll_testkit::{Directory, tool};

/// The directory of one test.
pub struct Place(Directory);

impl Place {
    /// With `./faulty` (tests/data/faulty.c), and a list that makes nothing huge.
    pub fn new() -> Place {
        tool::library();
        let place = Place(Directory::with(&[("none.txt", "")]));
        assert!(place.compile("faulty", &["-g"]));
        place
    }

    /// Compiles tests/data/faulty.c as `name`; false if the compiler fails.
    pub fn compile(&self, name: &str, options: &[&str]) -> bool {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/faulty.c");
        let options = [&["-O1"], options].concat();
        compile_where_possible(&source, &self.path(name), &options)
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

    /// Starts ./faulty as a server.
    pub fn serve(&self, how: &str) -> Running {
        let mut command = Command::new(self.path("faulty"));
        command.args([how, "ready"]).current_dir(self.as_path());
        let server = Running::start(command.stderr(Stdio::null()));
        wait_until("the server", || !self.read("ready").is_empty());
        server
    }
}

impl Deref for Place {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

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
