// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load on a server: what drives it, and what is read from its output.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::target::{Launch, Outcome};

use super::metric::Metric;
use super::runner::{Waited, sample, supervise};
use super::sample::Resource;

/// Time between the start and the load of a server without `--ready`.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);
/// Time between two attempts of `--ready`.
pub(crate) const RETRY: Duration = Duration::from_millis(100);

/// The actions on a server in each run.
#[derive(Debug, Clone, Default)]
pub struct Load {
    pub workload: Option<String>,
    pub ready: Option<String>,
    pub window: Option<Duration>,
    pub metric: Option<Metric>,
}

impl Load {
    /// The number that --metric captures from the workload's output in `directory`, and which
    /// direction is better; `None` without --metric.
    pub(super) fn captured(&self, directory: &Path) -> Result<Option<(f64, Resource)>, UserError> {
        let Some(metric) = &self.metric else {
            return Ok(None);
        };
        let read = |name: &str| read_lossy(&directory.join(name));
        metric.find(&(read("stdout") + &read("stderr"))).map(Some)
    }
}

/// The result of a workload against a running process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Timed {
    /// Its time, or the captured number as a time.
    Done(f64),
    Late,
    Interrupted,
}

/// Runs the workload once, without starting a server.
pub(crate) fn run_workload(load: &Load, limit: Duration) -> Result<Timed> {
    let workload = load.workload.as_deref().unwrap_or("true");
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let arguments = ["sh".into(), "-c".into(), OsString::from(workload)];
    let launch = Launch::new(&arguments).stdin(Path::new("/dev/null"));
    let mut child = launch.capture(directory.path()).own_group().spawn()?;
    let outcome = match supervise(&mut child, limit, || Duration::MAX)? {
        Waited::Ended(outcome) => outcome,
        Waited::Late => return Ok(Timed::Late),
        Waited::Interrupted => return Ok(Timed::Interrupted),
    };
    check_workload(workload, &outcome, directory.path())?;
    let mut sample = sample(&outcome);
    let mut resource = Resource::Elapsed;
    if let Some((value, direction)) = load.captured(directory.path())? {
        (sample.metric, resource) = (Some(value), direction);
    }
    Ok(Timed::Done(resource.time_of(&sample)))
}

/// Returns an error if the workload failed.
pub(super) fn check_workload(
    workload: &str,
    outcome: &Outcome,
    directory: &Path,
) -> Result<(), UserError> {
    if outcome.status.success() {
        return Ok(());
    }
    Err(UserError::Target(format!(
        "the workload `{workload}` ended with {}: {}",
        outcome.status,
        last_line(&directory.join("stderr"))
    )))
}

fn read_lossy(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last line with content of a file, for messages.
pub(super) fn last_line(path: &Path) -> String {
    let text = read_lossy(path);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("no output").to_owned()
}
