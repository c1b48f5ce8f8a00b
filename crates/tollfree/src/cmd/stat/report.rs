// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report: what `--json` prints, and what the table shows.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::{Serialize, Serializer};
use toll_linux::proc::Place;
use toll_model::losses::{self, Counter, EventCosts, Kind, Loss, Scope, Snapshot, Unit};

/// What is watched.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Machine,
    Pid(u32),
    Cgroup(String),
    Command(Vec<String>),
}

impl Subject {
    pub fn command(command: &[OsString]) -> Subject {
        let words = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        Subject::Command(words.collect())
    }

    pub fn cgroup(name: &Path) -> Subject {
        Subject::Cgroup(name.display().to_string())
    }
}

/// The counters of an interval.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    format: &'static str,
    version: u32,
    pub subject: &'a Subject,
    /// That of a process; empty for other subjects.
    #[serde(flatten)]
    pub place: &'a Place,
    pub scope: Scope,
    /// Length of the interval, and time since the start, ns.
    pub interval_ns: u64,
    pub elapsed_ns: u64,
    /// CPU time of the subject in the interval.
    pub cpu_ns: Option<f64>,
    /// Sum of the losses of the subject's own counters.
    pub loss_ns: Option<f64>,
    pub loss_interval_ns: Option<[f64; 2]>,
    /// Costs that were not measured on this machine.
    pub default_costs: &'a [&'static str],
    #[serde(serialize_with = "lines")]
    pub counters: Vec<Counter>,
}

impl<'a> Report<'a> {
    pub fn new(
        (subject, place): (&'a Subject, &'a Place),
        scope: Scope,
        (before, after): (&Snapshot, &Snapshot),
        costs: &'a EventCosts,
        interval: Duration,
        elapsed: Duration,
    ) -> Report<'a> {
        let counters = losses::counters(before, after, costs);
        let total = losses::total(&counters, scope);
        let value = |name: &str| {
            let of_scope = |counter: &&Counter| counter.scope == scope && counter.name == name;
            counters.iter().find(of_scope)?.value
        };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Report {
            format: "tollfree-stat",
            version: 1,
            subject,
            place,
            scope,
            interval_ns: ns(interval),
            elapsed_ns: ns(elapsed),
            cpu_ns: value("cpu_user")
                .zip(value("cpu_system"))
                .map(|(user, system)| user + system),
            loss_ns: total.map(|loss| loss.ns),
            loss_interval_ns: total.map(bounds),
            default_costs: &costs.defaults,
            counters,
        }
    }

    pub fn loss(&self) -> Option<Loss> {
        losses::total(&self.counters, self.scope)
    }
}

fn bounds(loss: Loss) -> [f64; 2] {
    [loss.low, loss.high]
}

/// A counter as `--json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    value: Option<f64>,
    unit: Unit,
    scope: Scope,
    kind: Kind,
    loss_ns: Option<f64>,
    loss_interval_ns: Option<[f64; 2]>,
    part_of: Option<&'static str>,
    why_missing: Option<&'a str>,
    fix: Option<&'a str>,
    /// Share of the time in which a multiplexed event was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    by_cpu: &'a [u64],
}

impl<'a> Line<'a> {
    fn new(counter: &'a Counter) -> Line<'a> {
        let missing = counter.missing.as_ref();
        Line {
            name: &counter.name,
            value: counter.value,
            unit: counter.definition.unit,
            scope: counter.scope,
            kind: counter.definition.kind,
            loss_ns: counter.loss.map(|loss| loss.ns),
            loss_interval_ns: counter.loss.map(bounds),
            part_of: counter.definition.part_of,
            why_missing: missing.map(|missing| missing.reason.as_str()),
            fix: missing.and_then(|missing| missing.fix.as_deref()),
            counted: counter.counted,
            source: counter.source,
            by_cpu: &counter.by_cpu,
        }
    }
}

fn lines<S: Serializer>(counters: &[Counter], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(counters.iter().map(Line::new))
}
