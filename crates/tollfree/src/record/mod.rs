// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of profiles: one file each, and the choice between them.

pub mod perf;
pub mod refs;
pub mod sim;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_linux::perf::{PerfAbility, probe};
use toll_model::anchor::AnchorKind;
use toll_model::profile::Profile;

use crate::actuate::{Acting, Actuator};
use crate::error::UserError;
use crate::executable::{Executable, Obstacle};
use crate::target::{Child, Launch};
use crate::{install, output, signals};

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceChoice {
    /// The simulator if it is quick enough, else perf if this CPU gives data addresses, else refs
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
    /// How long the target takes natively, if that is known: `auto` then tells beforehand
    /// how much of a run the simulator sees within `limit`.
    pub native: Option<Duration>,
    /// Makes memory huge as a plan says, while it is recorded.
    pub actuator: Option<Actuator>,
    /// stdin of the target; `None`: ours.
    pub stdin: Option<PathBuf>,
    /// Folder for the target's stdout and stderr; `None`: ours.
    pub capture: Option<PathBuf>,
}

impl RecordOptions {
    /// The launch that these options ask for; a source adds what it needs itself.
    pub fn launch(&self) -> Result<Launch> {
        self.launch_as(&self.command)
    }

    /// The same for the command that really runs, behind wrappers that the source looks through.
    pub fn launch_as(&self, command: &[OsString]) -> Result<Launch> {
        let mut launch = Launch::new(command);
        if let Some(file) = &self.stdin {
            launch = launch.stdin(file);
        }
        if let Some(folder) = &self.capture {
            launch = launch.capture(folder).own_group();
        }
        match &self.actuator {
            Some(actuator) => actuator.prepare(launch),
            None => Ok(launch),
        }
    }

    /// What the parent does for the plan while the target runs: call it at each tick; it
    /// returns the time until the next.
    pub fn act(&self, child: &Child) -> impl FnMut() -> Duration + use<'_> {
        let mut acting: Option<Acting> = self.actuator.as_ref().map(|a| a.act(child));
        move || acting.as_mut().map_or(Duration::MAX, Acting::tick)
    }
}

/// A profile, and how the recorded program ended.
#[derive(Debug)]
pub struct Recorded {
    pub profile: Profile,
    pub status: ExitStatus,
}

/// Leaves out memory that is there only because tollfree looks: the file of allocation
/// events, the preload library.
fn drop_own_memory(profile: &mut Profile, events: &Path) {
    profile.anchors.retain(|rows| match &rows.anchor.kind {
        AnchorKind::File { path, .. } => !is_own(path, events),
        _ => true,
    });
}

fn is_own(path: &str, events: &Path) -> bool {
    Path::new(path) == events || path.ends_with(install::PRELOAD)
}

/// The simulator's slow-down, more than the median of `benches/sim` and less than its worst.
const SLOW_DOWN: u32 = 10;
/// A simulator that takes longer for a program that does nothing is of no use.
const TRIAL: Duration = Duration::from_secs(20);

/// Records a profile.
///
/// # Errors
/// [`crate::error::UserError::Missing`] if this machine lacks what the source needs; as
/// [`Launch::spawn`] for the target. A target that fails is no error: its status is in the result.
pub fn record(choice: SourceChoice, options: &RecordOptions) -> Result<Recorded> {
    // A program that is not there is not worth a probe.
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
        SourceChoice::Refs => refs::record(options),
    }
}

/// The best source that works here; says which, and why no better one.
fn choose(executable: &Executable, options: &RecordOptions) -> SourceChoice {
    let (choice, why) = preferred(simulator_fits(executable, options), probe);
    output::note_once(why);
    choice
}

/// The order of the sources, and what is said of the choice. The simulator was compared
/// with real gains; perf has not run on a CPU with such events yet.
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
            SourceChoice::Refs,
            format!("recording with referenced bits (perf: {no_perf}; simulator: {no_sim:#})"),
        ),
    }
}

/// Whether the simulator can take the program: never by running the program itself,
/// which would happen twice then, but by trying it on one that does nothing.
fn simulator_fits(executable: &Executable, options: &RecordOptions) -> Result<()> {
    install::component(install::QEMU)?;
    install::component(install::PLUGIN)?;
    if let Some(obstacle @ (Obstacle::ThirtyTwoBit | Obstacle::Privileged)) = executable.obstacle {
        anyhow::bail!("{obstacle}");
    }
    if let (Some(native), Some(limit)) = (options.native, options.limit) {
        // Misses of half a run say more than touched pages of all of it.
        anyhow::ensure!(
            native * SLOW_DOWN / 2 <= limit,
            "it would see less than half of a run of {native:.1?} in {limit:.0?}"
        );
    }
    let folder = tempfile::tempdir()?;
    let trial = RecordOptions {
        command: vec!["true".into()],
        preset: options.preset.clone(),
        limit: Some(TRIAL),
        stdin: Some("/dev/null".into()),
        capture: Some(folder.path().to_owned()),
        ..RecordOptions::default()
    };
    let recorded = sim::record(&trial).context("its trial failed")?;
    anyhow::ensure!(
        recorded.status.success() && recorded.profile.complete,
        "its trial ended with {}",
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
        assert_eq!(choice, SourceChoice::Refs);
        assert!(why.contains("no PMU") && why.contains("no QEMU"), "{why}");
    }
}
