// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary of one run, as `run --summary` writes it.

use std::os::unix::process::ExitStatusExt;

use serde::Serialize;
use toll_linux::events::EventFile;
use toll_linux::watch::Counters;
use toll_model::actions::Actions;
use toll_model::wire::{ANY, Event, EventKind};

use super::Actuator;
use super::acting::Acting;
use super::heap::Heap;
use crate::serve::ServedFile;
use crate::target::Outcome;

/// The summary of one run. Times are nanoseconds, sizes bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// `none`, `never`, `all`, `plan` or `regions`.
    pub policy: &'static str,
    /// The first ELF file that was executed.
    pub program: String,
    /// Exit code; absent if a signal ended the program.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub elapsed_ns: u64,
    pub user_ns: u64,
    pub sys_ns: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub max_rss: u64,
    /// Huge-page-backed memory at the highest sample.
    pub huge_peak: u64,
    /// Huge-page-backed memory over time, byte seconds.
    pub huge_byte_seconds: f64,
    /// Samples of huge-page-backed memory. A short run of a large program has none: one would cost
    /// more than 1 % of its time. The two fields above are then 0 and meaningless.
    pub huge_samples: u64,
    /// What made the heap huge: `allocator` (glibc's tunable), `watcher` (collapsed as it grew),
    /// `left` (nothing).
    pub heap: Heap,
    /// Why the preload library was not used although it was needed.
    pub not_entered: Option<String>,
    /// What the preload library recorded; absent without a record of events.
    pub blocks: Option<Blocks>,
    pub parent: Parent,
    /// Files to be served from morsels; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub morsels: Vec<ServedFile>,
    /// Sites of the plan that were not found in this build of the program.
    pub lost: Vec<String>,
    pub notes: Vec<String>,
}

/// Allocations of at least 1 MiB, by how they match the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// The exact event of the plan: site, length class, ordinal, thread.
    pub exact: u64,
    /// Another event of the same site and length class.
    pub class: u64,
    /// An action for any event, or for all of them.
    pub kind: u64,
    /// Not in the plan.
    pub other: u64,
    /// Bytes advised before their first touch.
    pub advised: u64,
    /// Events that did not fit in the event file, not counted above.
    pub lost: u64,
}

/// What the watching parent did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// Regions collapsed.
    pub collapsed: u64,
    /// Ranges advised.
    pub advised: u64,
    /// Regions that failed permanently.
    pub failed: u64,
    /// CPU time of the parent, ns.
    pub spent_ns: u64,
    /// The first permanent failure, as text.
    pub failure: Option<String>,
}

impl Summary {
    /// What `actuator` and `acting` did in a run that ended with `outcome`.
    pub fn new(actuator: &Actuator, acting: &Acting, outcome: &Outcome) -> Summary {
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let wanted = actuator.actions.is_some();
        let obstacle = actuator.executable.obstacle.filter(|_| wanted);
        Summary {
            policy: actuator.policy,
            program: actuator.executable.path.to_string_lossy().into_owned(),
            exit_code: outcome.status.code(),
            signal: outcome.status.signal(),
            elapsed_ns: nanoseconds(outcome.wall),
            user_ns: nanoseconds(outcome.user),
            sys_ns: nanoseconds(outcome.sys),
            minor_faults: outcome.minor_faults,
            major_faults: outcome.major_faults,
            max_rss: outcome.max_rss,
            huge_peak: outcome.huge.peak,
            huge_byte_seconds: outcome.huge.byte_seconds,
            huge_samples: outcome.huge.samples,
            heap: actuator.heap,
            not_entered: obstacle.map(|obstacle| obstacle.to_string()),
            blocks: blocks(actuator),
            parent: parent(acting),
            morsels: Vec::new(),
            lost: actuator.lost.clone(),
            notes: actuator.notes.clone(),
        }
    }
}

fn parent(acting: &Acting) -> Parent {
    let counters = acting
        .watcher
        .as_ref()
        .map(|watcher| watcher.counters().clone());
    let Counters {
        collapsed,
        advised,
        failed,
        spent_ns,
        ..
    } = counters.unwrap_or_default();
    Parent {
        collapsed,
        advised,
        failed,
        spent_ns,
        failure: acting.failure().map(str::to_owned),
    }
}

/// Reads the events of the run, if they were recorded.
fn blocks(actuator: &Actuator) -> Option<Blocks> {
    if !actuator.settings.events {
        return None;
    }
    let file = EventFile::open(&actuator.events_file()).ok()?;
    let mut blocks = count(&file.events(), actuator.actions.as_ref());
    blocks.lost = u64::from(file.lost());
    Some(blocks)
}

fn count(events: &[Event], actions: Option<&Actions>) -> Blocks {
    let born = [EventKind::Malloc, EventKind::Mmap, EventKind::Shared].map(|kind| kind as u32);
    let mut blocks = Blocks::default();
    for event in events {
        blocks.advised += event.advised;
        if born.contains(&event.kind) {
            let rule = actions.and_then(|actions| actions.rules.get(event.rule as usize));
            let counter = match rule {
                Some(rule) if rule.frames_used == 0 => &mut blocks.kind,
                Some(rule) if rule.ordinal == ANY => &mut blocks.class,
                Some(_) => &mut blocks.exact,
                None if event.advised > 0 => &mut blocks.kind,
                None => &mut blocks.other,
            };
            *counter += 1;
        }
    }
    blocks
}
