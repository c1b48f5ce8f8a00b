// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to record, and the result: common to all sources.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use toll_act::actuate::{Acting, Actuator};
use toll_act::install;
use toll_act::target::{Child, Launch};
use toll_model::profile::Profile;
use toll_model::site::SiteKind;

/// What to record, and how.
#[derive(Debug, Default)]
pub struct RecordOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Count only these addresses.
    pub only: Option<Range<u64>>,
    /// Record code stacks too; perf alone knows them.
    pub stacks: bool,
    /// TLB preset for the simulator; `None`: this CPU's.
    pub preset: Option<String>,
    /// Share of the run that the simulator instruments, 0..1; `None`: its default.
    pub sample: Option<f64>,
    /// Ask the target to end after this long; the profile then covers part of the run.
    pub limit: Option<Duration>,
    /// Native run time of the target, if known: `auto` then computes in advance how much of a run
    /// the simulator covers within `limit`.
    pub native: Option<Duration>,
    /// Applies a plan during the recording.
    pub actuator: Option<Actuator>,
    /// stdin of the target; `None`: inherited.
    pub stdin: Option<PathBuf>,
    /// Directory for the target's stdout and stderr; `None`: inherited.
    pub capture: Option<PathBuf>,
}

impl RecordOptions {
    /// Creates the launch for these options; a source adds its own settings.
    pub(super) fn launch(&self) -> Result<Launch> {
        self.launch_as(&self.command)
    }

    /// As `launch`, for the command without the wrappers that the source resolved.
    pub(super) fn launch_as(&self, command: &[OsString]) -> Result<Launch> {
        let mut launch = Launch::new(command);
        if let Some(file) = &self.stdin {
            launch = launch.stdin(file);
        }
        if let Some(directory) = &self.capture {
            launch = launch.capture(directory).own_group();
        }
        match &self.actuator {
            Some(actuator) => actuator.prepare(launch),
            None => Ok(launch),
        }
    }

    /// The command, as text for the profile.
    pub(super) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// The parent's work for the plan while the target runs. Call it at each tick; it returns the
    /// time until the next.
    pub(super) fn act(&self, child: &Child) -> impl FnMut() -> Duration + use<> {
        let mut acting: Option<Acting> = self.actuator.as_ref().map(|a| a.act(child));
        move || acting.as_mut().map_or(Duration::MAX, Acting::tick)
    }
}

/// A profile, and the exit status of the recorded program.
#[derive(Debug)]
pub struct Recorded {
    pub profile: Profile,
    pub status: ExitStatus,
}

/// Removes memory that tollfree itself caused: the file of allocation events, the preload library.
pub(super) fn drop_own_memory(profile: &mut Profile, events: &Path) {
    profile.sites.retain(|rows| match &rows.site.kind {
        SiteKind::File { path, .. } => !is_own(path, events),
        _ => true,
    });
}

/// Whether a mapped file is one of these.
pub(super) fn is_own(path: &str, events: &Path) -> bool {
    Path::new(path) == events || path.ends_with(install::PRELOAD)
}
