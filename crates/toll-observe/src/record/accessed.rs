// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source `accessed`: accessed bits of the page tables, at native speed, on every kernel and
//! without privileges.
//!
//! The bits of the whole process are cleared periodically and counted shortly afterwards. A count
//! is the number of pages of a *mapping* that were touched in between, but not which pages, nor how
//! often. The counts of this source are therefore (page, scan) pairs, spread evenly over the
//! resident pages of a mapping.

mod looks;
mod sites;

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_act::error::{NO_DIRECTORY, OF_OTHERS, UserError};
use toll_act::executable::{Executable, program_of};
use toll_act::signals;
use toll_linux::accessed::clear;
use toll_linux::events::EventFile;
use toll_linux::{Root, proc};
use toll_model::builder::Meta;
use toll_model::profile::{Profile, Program, Source};

use super::options::{RecordOptions, Recorded};
use looks::Looks;

/// Maximum number of events per run. The space is allocated at once, in a temporary directory.
const EVENTS_MAX: u32 = 1 << 18;
/// How long a target may take to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time until an interrupt is noticed.
const ALERT: Duration = Duration::from_millis(100);

/// Records a run of a program.
///
/// # Errors
/// Those of `Launch::spawn`; no temporary file for events.
pub fn record(options: &RecordOptions) -> Result<Recorded> {
    let executable = Executable::of(&options.command)?;
    let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
    let path = directory.path().join("events");
    let events = EventFile::create(&path, EVENTS_MAX)?;
    let began = Instant::now();
    let mut child = options.launch()?.events(&path).spawn()?;
    let mut looks = Looks::new(child.pid(), events, options.only.clone());
    let mut act = options.act(&child);
    let mut tick = || looks.tick().min(act());
    let mut cut = false;
    let outcome = match options.limit {
        None => child.wait(&mut tick)?,
        Some(limit) => loop {
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                cut = true;
                break child.stop(GRACE)?;
            }
            let pause = tick().min(left);
            if let Some(outcome) = child.wait_for(pause)? {
                break outcome;
            }
        },
    };
    let about = About {
        program: executable.program(),
        command: options.words(),
        complete: !cut && outcome.interrupted.is_none(),
        wall: outcome.wall,
        cpu: Some(outcome.cpu()),
        obstacle: executable.obstacle.map(|obstacle| obstacle.to_string()),
    };
    Ok(Recorded {
        profile: profile(looks, about),
        status: outcome.status,
    })
}

/// Records a running process for `window`, or until it ends. The process continues unchanged.
///
/// # Errors
/// [`UserError::Usage`] if there is no such process, [`UserError::Missing`] if it may not be
/// observed; no temporary file.
pub fn record_pid(pid: u32, window: Duration, only: Option<Range<u64>>) -> Result<Profile> {
    let said = |error| UserError::Usage(format!("--pid {pid}: {error}"));
    let root = Root::system();
    let status = proc::status(&root, pid).map_err(said)?;
    // Root of a container may clear the bits of a process that it may not read.
    let readable = proc::maps(&root, pid).and_then(|_| clear(pid));
    readable.map_err(|error| unseen(pid, &status.name, &error))?;
    let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
    // Without the preload library there are no events.
    let events = EventFile::create(&directory.path().join("events"), 1)?;
    let program = program_of(&root, pid).unwrap_or_default();
    let command = command_of(&root, pid);
    let began = Instant::now();
    let mut looks = Looks::new(pid, events, only);
    while began.elapsed() < window && !looks.ended() && signals::interrupted().is_none() {
        let left = window.saturating_sub(began.elapsed());
        std::thread::sleep(looks.tick().min(left).min(ALERT));
    }
    let about = About {
        program,
        command,
        complete: false,
        wall: began.elapsed(),
        cpu: None,
        obstacle: Some("tollfree did not start the process".to_owned()),
    };
    Ok(profile(looks, about))
}

fn unseen(pid: u32, name: &str, error: &io::Error) -> UserError {
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {OF_OTHERS}"),
        _ => String::new(),
    };
    UserError::Missing(format!(
        "--pid {pid}: {name} cannot be observed: {error}{fix}"
    ))
}

/// Returns the command line of a process; empty if it cannot be read.
fn command_of(root: &Root, pid: u32) -> Vec<String> {
    let line = root
        .read(format!("/proc/{pid}/cmdline"))
        .unwrap_or_default();
    let words = line.split('\0').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Metadata of a profile besides its counts.
struct About {
    program: Program,
    command: Vec<String>,
    complete: bool,
    wall: Duration,
    /// CPU time of the whole run.
    cpu: Option<Duration>,
    /// Why allocations have no names, if so.
    obstacle: Option<String>,
}

fn profile(looks: Looks, about: About) -> Profile {
    let mut warnings = looks.warnings();
    warnings.extend(
        about
            .obstacle
            .map(|why| format!("allocations cannot be distinguished: {why}")),
    );
    let meta = Meta {
        source: Source::Accessed,
        source_detail: looks.detail(),
        program: about.program,
        command: about.command,
        complete: about.complete,
        sampled: 1.0,
        observations: looks.observations(),
        instructions: None,
        native_ns: Some(about.wall.as_nanos() as u64),
        footprint: None,
        warnings,
    };
    Profile {
        native_cpu_ns: about.cpu.map(|cpu| cpu.as_nanos() as u64),
        ..looks.finish(meta)
    }
}
