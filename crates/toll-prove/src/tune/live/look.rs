// SPDX-License-Identifier: MIT OR Apache-2.0
//! The observation of a running process before anything is changed.

use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::error::{OF_OTHERS, UserError};
use toll_act::signals;
use toll_act::switch::Selection;
use toll_linux::{Root, accessed, proc};
use toll_model::REGION;
use toll_observe::observation::{Observation, is_mostly_huge};
use toll_observe::observer::Observer;

use super::Request;
use crate::compare::driver::Driver;
use crate::compare::load::Load;

/// How long the process is observed without --for.
const LOOK: Duration = Duration::from_secs(10);
/// How long touches of mappings are counted: memory that is not touched within it has no
/// significant overhead.
const TOUCHES: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Debug)]
pub(super) struct Look {
    pub observation: Observation,
    /// Number of CPUs that the process and its children kept busy.
    pub busy: f64,
    /// The same of the process alone.
    pub own_busy: f64,
    /// Calls of read and write by the process, per second.
    pub calls: f64,
    pub selection: Selection,
}

impl Look {
    /// Whether most of the selected memory is huge already.
    pub fn is_mostly_huge(&self) -> bool {
        let selected = self.selection.regions.len() as u64 * REGION;
        is_mostly_huge(self.selection.huge(), selected)
    }

    /// Says that another process does the work.
    pub fn children_note(&self) -> Option<String> {
        let works = self.busy > 0.0 && self.own_busy >= self.busy / 2.0;
        (!works && self.busy >= super::IDLE).then(|| {
            "its children use most of the CPU time, and only the process itself is changed: name \
             the one that does the work"
                .to_owned()
        })
    }
}

/// How long a running process is observed, within a time limit.
pub(super) fn time(load: &Load, within: Duration) -> Duration {
    load.window.unwrap_or(LOOK).min(within.mul_f64(0.2))
}

/// Observes the process and its children, under the load if there is one: an idle server touches
/// nothing.
///
/// # Errors
/// [`UserError::Missing`] if it cannot be observed.
pub(super) fn at(request: &Request, time: Duration) -> Result<Look> {
    let loaded = request.load.workload.is_some() && request.progress.is_none();
    let _driver = loaded.then(|| Driver::start(request.load.clone()));
    let before = Used::now(request.pid);
    let touches = TOUCHES.min(time / 3);
    let observation = observe(request.pid, time - touches);
    if observation.windows == 0 && signals::interrupted().is_none() {
        let why = format!("it ended, or is not yours: {OF_OTHERS}");
        return Err(unseen(request.pid, &why).into());
    }
    let selection = match signals::interrupted() {
        Some(_) => Selection::default(),
        None => select(request.pid, touches)?,
    };
    let after = Used::now(request.pid);
    let seconds = (after.at - before.at).as_secs_f64();
    Ok(Look {
        observation,
        busy: (after.tree - before.tree) / seconds,
        own_busy: (after.own - before.own) / seconds,
        calls: (after.calls - before.calls) / seconds,
        selection,
    })
}

fn observe(pid: u32, time: Duration) -> Observation {
    let end = Instant::now() + time;
    let mut observer = Observer::default();
    while Instant::now() < end && signals::interrupted().is_none() {
        let pause = observer.tick(pid).min(Duration::from_millis(100));
        std::thread::sleep(pause);
    }
    observer.look()
}

/// Selects the memory that the process touches within a window.
fn select(pid: u32, window: Duration) -> Result<Selection, UserError> {
    let unseen = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENOTTY) => unseen(pid, "its page sizes need PAGEMAP_SCAN (Linux 6.7)"),
        _ => unseen(pid, &error.to_string()),
    };
    accessed::clear(pid).map_err(unseen)?;
    std::thread::sleep(window);
    Selection::of(pid).map_err(unseen)
}

fn unseen(pid: u32, why: &str) -> UserError {
    UserError::Missing(format!("--pid {pid}: it cannot be observed ({why})"))
}

/// What the process has used and done so far.
struct Used {
    at: Instant,
    /// CPU time of the process and its children, of the process alone, in seconds.
    tree: f64,
    own: f64,
    calls: f64,
}

impl Used {
    fn now(pid: u32) -> Used {
        let root = Root::system();
        Used {
            at: Instant::now(),
            tree: ticks(&root, &proc::tree(&root, pid)),
            own: ticks(&root, &[pid]),
            calls: proc::calls(&root, pid).unwrap_or(0) as f64,
        }
    }
}

/// CPU time of processes so far, seconds.
fn ticks(root: &Root, pids: &[u32]) -> f64 {
    let stats = pids.iter().filter_map(|pid| proc::stat(root, *pid).ok());
    let ticks: u64 = stats.map(|stat| stat.user_ticks + stat.system_ticks).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
