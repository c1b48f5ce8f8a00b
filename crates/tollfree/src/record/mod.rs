// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of profiles: one file each, and the choice between them.

pub mod perf;
pub mod refs;
pub mod sim;

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use toll_model::profile::Profile;

use crate::target::Launch;

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceChoice {
    /// perf if this CPU gives data addresses, else the simulator if it is quick enough, else refs
    Auto,
    /// Samples of memory accesses by the CPU (perf mem)
    Perf,
    /// The simulator (qemu-user with the TLB plugin)
    Sim,
    /// Referenced bits of the page tables
    Refs,
}

/// What to record, and how.
#[derive(Debug, Default)]
pub struct RecordOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Count only these addresses.
    pub only: Option<Range<u64>>,
    /// TLB preset for the simulator; `None`: this CPU's.
    pub preset: Option<String>,
    /// Share of the run that the simulator instruments, 0..1; `None`: its default.
    pub sample: Option<f64>,
    /// Ask the target to end after this long; the profile is then a part of the run.
    pub limit: Option<Duration>,
    /// stdin of the target; `None`: ours.
    pub stdin: Option<PathBuf>,
    /// Folder for the target's stdout and stderr; `None`: ours.
    pub capture: Option<PathBuf>,
}

impl RecordOptions {
    /// The launch that these options ask for; a source adds what it needs itself.
    pub fn launch(&self) -> Launch {
        let mut launch = Launch::new(&self.command);
        if let Some(file) = &self.stdin {
            launch = launch.stdin(file);
        }
        if let Some(folder) = &self.capture {
            launch = launch.capture(folder).own_group();
        }
        launch
    }
}

/// A profile, and how the recorded program ended.
#[derive(Debug)]
pub struct Recorded {
    pub profile: Profile,
    pub status: ExitStatus,
}
