// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source `refs`: Referenced bits of the page tables, at native speed, on every
//! kernel and without privilege.
//!
//! Every now and then the bits of the whole process are cleared, and counted again a
//! little later. A count says how many pages of a *mapping* were touched in between;
//! which of them, and how often, it does not say. So the counts of this source are
//! (page, look) pairs, spread evenly over the pages of a mapping that are in memory.

mod anchors;
mod looks;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_linux::events::EventFile;
use toll_model::builder::Meta;
use toll_model::profile::{Profile, Program, Source};

use super::{RecordOptions, Recorded};
use crate::executable::Executable;
use looks::Looks;

/// Room for events of one run. The space is taken at once, in a temporary folder.
const EVENTS_MAX: u32 = 1 << 18;
/// How long a target may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Records a run of a program.
///
/// # Errors
/// As `Launch::spawn`; no temporary file for events.
pub fn record(options: &RecordOptions) -> Result<Recorded> {
    let executable = Executable::of(&options.command)?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let path = folder.path().join("events");
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
        command: options
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        complete: !cut && outcome.interrupted.is_none(),
        wall: outcome.wall,
        obstacle: executable.obstacle.map(|obstacle| obstacle.to_string()),
    };
    Ok(Recorded {
        profile: profile(looks, about),
        status: outcome.status,
    })
}

/// What a profile says besides its counts.
struct About {
    program: Program,
    command: Vec<String>,
    complete: bool,
    wall: Duration,
    /// Why allocations have no names, if they have none.
    obstacle: Option<String>,
}

fn profile(looks: Looks, about: About) -> Profile {
    let mut warnings = looks.warnings();
    warnings.extend(
        about
            .obstacle
            .map(|why| format!("allocations are not told apart: {why}")),
    );
    let meta = Meta {
        source: Source::Refs,
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
    looks.finish(meta)
}
