// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is run: a program, or a server and its load.

use std::ffi::OsString;

use anyhow::Result;
use toll_observe::observer::Observer;

use super::input::Input;
use super::load::Load;
use super::program::Program;
use super::runner::{Clock, Progress};
use super::schedule::Executor;
use super::server::Server;
use super::warm::Warmer;

/// A program that ends by itself, or a server under load.
#[derive(Debug)]
pub enum Subject {
    Program(Box<Program>),
    Server(Box<Server>),
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
        Ok(match load {
            Some(load) => {
                let server = Server::new(command, load, clock, progress, warmer)?;
                Subject::Server(Box::new(server))
            }
            None => {
                let program = Program::new(command, Input::read()?, clock, progress, warmer)?;
                Subject::Program(Box::new(program))
            }
        })
    }

    pub fn executor(&mut self) -> &mut dyn Executor {
        match self {
            Subject::Program(program) => program.as_mut(),
            Subject::Server(server) => server.as_mut(),
        }
    }

    pub(crate) fn observer(&mut self) -> &mut Option<Observer> {
        match self {
            Subject::Program(program) => &mut program.observer,
            Subject::Server(server) => &mut server.observer,
        }
    }

    pub fn progress(&mut self) -> &mut Progress {
        match self {
            Subject::Program(program) => &mut program.progress,
            Subject::Server(server) => &mut server.progress,
        }
    }

    pub fn notes(&self) -> Vec<String> {
        match self {
            Subject::Program(program) => program.notes(),
            Subject::Server(server) => server.notes(),
        }
    }
}
