// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of profiles, one file per source, and the choice between them.

mod accessed;
mod options;
pub(crate) mod perf;
mod sim;

use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::executable::{Executable, Obstacle};
use toll_act::{messages, signals};
use toll_linux::perf::{PerfAbility, probe};

pub use accessed::record_pid;
pub use options::{RecordOptions, Recorded};
pub use sim::Simulator;

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceChoice {
    /// The simulator if it is fast enough, else perf if this CPU reports data addresses, else
    /// accessed bits
    Auto,
    /// Samples of memory accesses by the CPU (perf mem)
    Perf,
    /// The simulator (qemu-user with the TLB plugin)
    Sim,
    /// Accessed bits of the page tables
    Accessed,
}

/// The simulator's slow-down: above the median of `benches/sim` and below its maximum.
const SLOW_DOWN: u32 = 10;
/// Time limit of the trial. A simulator that takes longer for an empty program is unusable.
const TRIAL: Duration = Duration::from_secs(20);

/// Records a profile.
///
/// # Errors
/// [`UserError::Missing`] if this machine lacks what the source needs; as
/// [`toll_act::target::Launch::spawn`] for the target. A failing target is not an error: its status
/// is in the result.
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
    Simulator::find()?;
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
mod tests;
