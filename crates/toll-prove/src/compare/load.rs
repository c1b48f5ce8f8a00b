// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load on a server: what drives it, and what is read from its output.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::{NO_DIRECTORY, UserError};
use toll_act::target::{Child, Launch, Outcome};

use super::last_words::last_words;
use super::metric::Metric;
use super::runner::{sample, supervise};
use super::sample::{Resource, Sample};
use super::schedule::Ran;

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
    /// The compared quantity; the direction of a metric is known after its first value.
    pub(crate) fn resource(&self) -> Resource {
        match (&self.workload, &self.metric) {
            (None, _) => Resource::Cpu,
            (Some(_), None) => Resource::Elapsed,
            (Some(_), Some(_)) => Resource::MetricRate,
        }
    }

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

/// Runs the workload once, without starting a server. Returns its measurements, and what of them is
/// compared.
pub(crate) fn run_workload(load: &Load, limit: Duration) -> Result<Ran<(Sample, Resource)>> {
    let workload = load.workload.as_deref().unwrap_or("true");
    let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
    let mut child = shell(workload, directory.path())?;
    supervise(&mut child, limit, || Duration::MAX)?.and_then(|outcome| {
        check_workload(workload, &outcome, directory.path(), None)?;
        let mut sample = sample(&outcome);
        let mut resource = Resource::Elapsed;
        if let Some((value, direction)) = load.captured(directory.path())? {
            (sample.metric, resource) = (Some(value), direction);
        }
        Ok(Ran::Done((sample, resource)))
    })
}

/// Starts a shell command with its output in `directory`.
pub(super) fn shell(command: &str, directory: &Path) -> Result<Child> {
    let arguments = ["sh".into(), "-c".into(), OsString::from(command)];
    let launch = Launch::new(&arguments).stdin(Path::new("/dev/null"));
    launch.capture(directory).own_group().spawn()
}

/// Returns an error if the workload failed; `variant` names the server, if it has variants.
pub(super) fn check_workload(
    workload: &str,
    outcome: &Outcome,
    directory: &Path,
    variant: Option<&str>,
) -> Result<(), UserError> {
    if outcome.status.success() {
        return Ok(());
    }
    let which = variant.map_or_else(String::new, |name| format!(" (variant {name})"));
    Err(UserError::Target(format!(
        "the workload `{workload}` ended with {}{which}{}",
        outcome.status,
        last_words(&read_lossy(&directory.join("stderr")))
    )))
}

pub(super) fn read_lossy(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
