// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of profiles, one file per source, and the choice between them.

pub mod accessed;
pub mod perf;
pub mod sim;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::actuate::{Acting, Actuator};
use toll_act::error::UserError;
use toll_act::executable::{Executable, Obstacle};
use toll_act::target::{Child, Launch};
use toll_act::{install, messages, signals};
use toll_linux::perf::{PerfAbility, probe};
use toll_model::profile::Profile;
use toll_model::site::SiteKind;

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceChoice {
    /// The simulator if it is fast enough, else perf if this CPU reports data addresses, else
    /// accessed bits
    Auto,
    /// Samples of memory accesses by the CPU (perf mem)
    Perf,
    /// The simulator (qemu-user with the TLB plugin)
    Sim,
    /// Accessed bits of the page tables
    #[value(alias = "refs")]
    Accessed,
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
    pub fn launch(&self) -> Result<Launch> {
        self.launch_as(&self.command)
    }

    /// As `launch`, for the command without the wrappers that the source resolved.
    pub fn launch_as(&self, command: &[OsString]) -> Result<Launch> {
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

    /// The parent's work for the plan while the target runs. Call it at each tick; it returns the
    /// time until the next.
    pub fn act(&self, child: &Child) -> impl FnMut() -> Duration + use<'_> {
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
fn drop_own_memory(profile: &mut Profile, events: &Path) {
    profile.sites.retain(|rows| match &rows.site.kind {
        SiteKind::File { path, .. } => !is_own(path, events),
        _ => true,
    });
}

fn is_own(path: &str, events: &Path) -> bool {
    Path::new(path) == events || path.ends_with(install::PRELOAD)
}

/// The simulator's slow-down: above the median of `benches/sim` and below its maximum.
const SLOW_DOWN: u32 = 10;
/// Time limit of the trial. A simulator that takes longer for an empty program is unusable.
const TRIAL: Duration = Duration::from_secs(20);

/// Records a profile.
///
/// # Errors
/// [`toll_act::error::UserError::Missing`] if this machine lacks what the source needs; as
/// [`Launch::spawn`] for the target. A failing target is not an error: its status is in the result.
pub fn record(choice: SourceChoice, options: &RecordOptions) -> Result<Recorded> {
    // Report a missing program before any probe.
    let executable = Executable::of(&options.command)?;
    match choice {
        SourceChoice::Auto => {
            let choice = choose(&executable, options);
            match signals::interrupted() {
                Some(_) => Err(UserError::Interrupted.into()),
                None => record(choice, options),
            }
        }
        SourceChoice::Perf => perf::record(options),
        SourceChoice::Sim => sim::record(options),
        SourceChoice::Accessed => accessed::record(options),
    }
}

/// Chooses the best source that works here. Prints which, and why no better one.
fn choose(executable: &Executable, options: &RecordOptions) -> SourceChoice {
    let (choice, why) = preferred(simulator_fits(executable, options), probe);
    messages::note_once(why);
    choice
}

/// The order of preference, and the message about the choice. The simulator was compared with
/// measured gains; perf has not run on a CPU with such events yet.
fn preferred(simulator: Result<()>, probe: impl FnOnce() -> PerfAbility) -> (SourceChoice, String) {
    let Err(no_sim) = simulator else {
        let why = "recording with the simulator, about ten times slower";
        return (SourceChoice::Sim, why.to_owned());
    };
    match probe() {
        PerfAbility::Full { event, .. } => (
            SourceChoice::Perf,
            format!(
                "recording with perf ({event}), which is not verified on hardware (simulator: {no_sim:#})"
            ),
        ),
        no_perf => (
            SourceChoice::Accessed,
            format!("recording with accessed bits (perf: {no_perf}; simulator: {no_sim:#})"),
        ),
    }
}

/// Whether the simulator supports the program. Tested with an empty program, because running the
/// target itself would execute it twice.
fn simulator_fits(executable: &Executable, options: &RecordOptions) -> Result<()> {
    install::component(install::QEMU)?;
    install::component(install::PLUGIN)?;
    if let Some(obstacle @ (Obstacle::ThirtyTwoBit | Obstacle::Privileged)) = executable.obstacle {
        anyhow::bail!("{obstacle}");
    }
    if let (Some(native), Some(limit)) = (options.native, options.limit) {
        // Misses of half a run are more useful than touched pages of a whole run.
        anyhow::ensure!(
            native * SLOW_DOWN / 2 <= limit,
            "it would cover less than half of a run of {native:.1?} in {limit:.0?}"
        );
    }
    let directory = tempfile::tempdir()?;
    let trial = RecordOptions {
        command: vec!["true".into()],
        preset: options.preset.clone(),
        limit: Some(TRIAL),
        stdin: Some("/dev/null".into()),
        capture: Some(directory.path().to_owned()),
        ..RecordOptions::default()
    };
    let recorded = sim::record(&trial).context("the trial failed")?;
    anyhow::ensure!(
        recorded.status.success() && recorded.profile.complete,
        "the trial ended with {}",
        recorded.status
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> PerfAbility {
        PerfAbility::Full {
            event: "cpu/mem-loads/P".to_owned(),
            samples: 9,
        }
    }

    fn missing() -> PerfAbility {
        PerfAbility::Missing {
            reason: "no PMU".to_owned(),
            fix: String::new(),
        }
    }

    #[test]
    fn auto_takes_the_simulator_before_the_unverified_source() {
        let (choice, _) = preferred(Ok(()), full);
        assert_eq!(choice, SourceChoice::Sim);
        let no_sim = || Err(anyhow::anyhow!("no QEMU"));
        let (choice, why) = preferred(no_sim(), full);
        assert_eq!(choice, SourceChoice::Perf);
        assert!(
            why.contains("not verified") && why.contains("no QEMU"),
            "{why}"
        );
        let (choice, why) = preferred(no_sim(), missing);
        assert_eq!(choice, SourceChoice::Accessed);
        assert!(why.contains("no PMU") && why.contains("no QEMU"), "{why}");
    }
}
