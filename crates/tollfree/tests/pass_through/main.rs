// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run` is invisible to the program and to its caller: streams byte for byte, status,
//! signals, descriptors, environment, terminal.
//!
//! Each test runs the program twice: with an empty plan (without the preload library) and with a
//! plan for an unmapped address (with the library).

mod inherited;
mod programs;
mod signals;
mod status;
mod streams;

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

use toll_testkit::Directory;
use toll_testkit::process::wait_until;
use toll_testkit::tool::{library, tollfree};

/// The directory of one test, with both plans.
struct Fixture(Directory);

impl Fixture {
    fn new() -> Fixture {
        library();
        let directory = Directory::with(&[("nothing.txt", ""), ("inside.txt", "17592186044416\n")]);
        // An ordinary user must be able to read it, even if root runs the tests.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        Fixture(directory)
    }

    fn run(&self, plan: &str, program: &[&str]) -> Command {
        let mut command = Command::new(tollfree());
        command.args(["run", "--plan"]).arg(self.path(plan));
        command.arg("--").args(program).current_dir(self.as_path());
        command.env("TMPDIR", self.as_path());
        command
    }

    /// The program under both plans, with the plan's name.
    fn both(&self, program: &[&str]) -> [(&'static str, Command); 2] {
        ["nothing.txt", "inside.txt"].map(|plan| (plan, self.run(plan, program)))
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

fn feed(command: &mut Command, input: Vec<u8>) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn lines(fixture: &Fixture, name: &str) -> Vec<String> {
    fixture.read(name).lines().map(str::to_owned).collect()
}

fn started(fixture: &Fixture, command: &mut Command) -> Child {
    let _ = fs::remove_file(fixture.path("ready"));
    let _ = fs::remove_file(fixture.path("got"));
    let child = command.spawn().unwrap();
    wait_until("the program to start", || !fixture.read("ready").is_empty());
    child
}
