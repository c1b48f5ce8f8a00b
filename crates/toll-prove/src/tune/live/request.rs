// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user asked for.

use std::path::PathBuf;
use std::time::Duration;

use crate::compare::load::Load;

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub pid: u32,
    pub load: Load,
    pub progress: Option<Progressing>,
    /// Length of a window.
    pub window: Option<Duration>,
    /// Leave the memory huge if that is a proved gain.
    pub keep: bool,
    pub output: Option<PathBuf>,
    pub force: bool,
}

/// What shows the progress of the process's work.
#[derive(Debug, Clone)]
pub enum Progressing {
    /// A command that prints a number that grows with the work.
    Counter(String),
    /// A command that prints a number that describes the window before.
    Gauge(String),
    /// A file with a line for each unit of work.
    Lines(PathBuf),
}
