// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use toll_act::actuate::{Actuator, Policy, Settings, Summary};
use toll_act::error::UserError;
use toll_act::serve::{self, Serving};
use toll_act::target::{self, Launch, Outcome, Sampling};
use toll_act::{files, messages};
use toll_linux::econ::{self, GiveError};

use crate::output;

/// Run a program under a plan, or with large files served from memory
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan, a profile for the kernel (kernel profile), or a list of decimal base addresses
    #[arg(long, value_name = "PLAN", required_unless_present = "morsel")]
    pub plan: Option<PathBuf>,
    /// Serve the program's read-only mappings of this file from a morsel (may be repeated)
    ///
    /// The file is copied into a morsel before the program starts, unless the copy exists. If it
    /// cannot be copied, a message says why, and the program runs with the file itself.
    #[arg(long, value_name = "FILE")]
    pub morsel: Vec<PathBuf>,
    /// The directory of morsels (default: /run/morsels, or the one in TOLLFREE_MORSELS)
    #[arg(long, value_name = "MOUNT", requires = "morsel")]
    pub morsels: Option<PathBuf>,
    /// Back fixed addresses from the hugetlb pool (largepages.txt only)
    ///
    /// Not for a program that forks and continues to write there: the child's copies need pages of
    /// the pool too, and the kernel kills a child that gets none.
    #[arg(long)]
    pub hugetlb: bool,
    /// Make the whole heap huge, by glibc's tunable where it has one
    ///
    /// The tunable is an environment variable (GLIBC_TUNABLES): child processes inherit it.
    #[arg(long)]
    pub whole_heap: bool,
    /// Write a summary of what was done to this file, as JSON
    ///
    /// A file or an open descriptor: /dev/fd/3. Without it, --json writes to stderr, mixed with the
    /// program's own output.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let reports = json || args.summary.is_some();
    if let Some(file) = &args.summary {
        files::check_writable(file, true)?;
    }
    let settings = Settings {
        hugetlb: args.hugetlb,
        whole_heap: args.whole_heap,
        events: reports,
        ..Settings::default()
    };
    let policy = match &args.plan {
        Some(plan) if is_for_kernel(plan) => {
            give(plan, json)?;
            Policy::None
        }
        Some(plan) => Policy::read(plan)?,
        None => Policy::None,
    };
    let actuator = Actuator::new(&policy, &args.command, settings)?;
    let serving = Serving::new(&args.morsel, args.morsels.as_deref(), &args.command)?;
    if !json {
        actuator.say_notes();
        serving.say_notes();
    }
    let mut launch = serving.prepare(actuator.prepare(Launch::new(&args.command))?);
    if reports {
        launch = launch.sample_huge(Sampling::Sparing);
    }
    let (outcome, mut summary) = act(&actuator, &launch, json)?;
    summary.morsels = serving.summary();
    if !json {
        serve::say_unused(&summary.morsels);
    }
    let written = match reports {
        true => output::json_for(args.summary.as_deref(), &summary),
        false => Ok(()),
    };
    // Remove temporary files before exiting as the target did.
    drop((actuator, serving));
    if let Err(error) = written {
        messages::note(format_args!("{error:#}"));
    }
    Ok(target::end_like(outcome.status))
}

/// Whether a file is a profile for the kernel. A read error is reported later.
fn is_for_kernel(path: &Path) -> bool {
    let mut head = [0; econ::MAGIC.len()];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut head))
        .is_ok_and(|()| head == econ::MAGIC)
}

/// Gives the profile to this process; the program inherits it. On a kernel without profiles, the
/// program runs without it: not an error.
fn give(path: &Path, quiet: bool) -> Result<()> {
    let profile = fs::read(path).with_context(|| format!("{}", path.display()))?;
    match econ::give(&profile) {
        Err(error @ GiveError::Missing) if !quiet => messages::note(format_args!(
            "{error}; the program runs without the profile"
        )),
        Ok(()) | Err(GiveError::Missing) => {}
        Err(GiveError::Refused(why)) => {
            return Err(UserError::UnfitFile(format!("{}: {why}", path.display())).into());
        }
        Err(GiveError::Failed(error)) => return Err(error.into()),
    }
    Ok(())
}

/// Runs the target to its end, acting on it meanwhile.
fn act(actuator: &Actuator, launch: &Launch, quiet: bool) -> Result<(Outcome, Summary)> {
    let mut child = launch.spawn()?;
    let mut acting = actuator.act(&child);
    let outcome = child.wait(|| acting.tick())?;
    if let Some(failure) = acting.failure().filter(|_| !quiet) {
        messages::note(format_args!("the parent could not act: {failure}"));
    }
    let summary = Summary::new(actuator, &acting, &outcome);
    Ok((outcome, summary))
}
