// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is run: a program, or a server and its load.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::input::Input;
use super::load::Load;
use super::prepared::Variants;
use super::program::Program;
use super::runner::{Clock, Progress, Runner};
use super::sample::Resource;
use super::schedule::{Executor, Ran};
use super::server::Server;
use super::variant::Variant;
use super::warm::Warmer;

/// A program that ends by itself, or a server under load.
#[derive(Debug)]
pub struct Subject {
    pub(crate) runner: Runner,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Program(Program),
    Server(Server),
}

impl Subject {
    /// With a load it is a server.
    ///
    /// # Errors
    /// If stdin cannot be read or a temporary directory cannot be made.
    pub fn new(
        command: &[OsString],
        load: Option<Load>,
        clock: Clock,
        progress: Progress,
        warmer: Warmer,
    ) -> Result<Subject> {
        let (input, resource, kind) = match load {
            Some(load) => (
                Input::default(),
                load.resource(),
                Kind::Server(Server::new(load)?),
            ),
            None => (
                Input::read()?,
                Resource::Elapsed,
                Kind::Program(Program::new()?),
            ),
        };
        let runner = Runner {
            variants: Variants::new(command),
            input,
            clock,
            progress,
            warmer,
            observer: None,
            resource,
        };
        Ok(Subject { runner, kind })
    }

    /// The file that each run reads as stdin.
    pub(crate) fn stdin(&self) -> PathBuf {
        self.runner.input.path()
    }

    /// Notes on how the variants were acted on.
    pub fn notes(&self) -> Vec<String> {
        self.runner.variants.notes()
    }
}

impl Executor for Subject {
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
        match &mut self.kind {
            Kind::Program(program) => program.run(&mut self.runner, variant, until),
            Kind::Server(server) => server.run(&mut self.runner, variant, until),
        }
    }

    fn now(&self) -> Duration {
        self.runner.clock.now()
    }

    fn begin_round(&mut self, round: u32) {
        self.runner.variants.begin_round(round);
    }

    fn resource(&self) -> Resource {
        self.runner.resource
    }

    fn warmed(&self) -> u64 {
        self.runner.warmer.warmed()
    }

    fn progress(&mut self, message: &str) {
        self.runner.progress.say(message);
    }
}
