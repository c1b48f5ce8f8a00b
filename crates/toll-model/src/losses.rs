// SPDX-License-Identifier: MIT OR Apache-2.0
//! What virtual memory costs a program, a control group or a machine: counters between two
//! snapshots, each with an estimate of the CPU time lost.
//!
//! A [`Snapshot`] holds what was read at one moment. [`counters`] takes two of them and returns a
//! [`Counter`] for each reading, with a value, a unit and a [`Loss`]. Every formula and constant is
//! in `docs/guide/stat.md`.
//!
//! **Nothing is counted twice.** A counter that is a part of another one has no loss of its own, and
//! names that one in `part_of`. So the losses of one scope can be added ([`total`]).
//!
//! | file | holds |
//! |---|---|
//! | `catalogue` | name, title, unit and place of every counter |
//! | `costs` | the cost of each event, from a cost table or the defaults |
//! | `formulas` | the estimate for each counter |

mod catalogue;
mod costs;
mod formulas;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

pub use self::catalogue::{Definition, Group, definition};
pub use self::costs::EventCosts;

/// What a counter covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    #[serde(rename = "process tree")]
    Tree,
    #[serde(rename = "cgroup")]
    Cgroup,
    #[serde(rename = "machine")]
    Machine,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scope::Tree => "process tree",
            Scope::Cgroup => "cgroup",
            Scope::Machine => "machine",
        })
    }
}

/// Unit of a counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Count,
    Pages,
    Bytes,
    Ns,
    /// A share: 0 to 1.
    Ratio,
    /// Events per 1,000 instructions.
    PerThousandInstructions,
}

/// Whether a value is the increase between two snapshots, or the state at the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Change,
    Level,
}

/// Why something cannot be measured here, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub reason: String,
    pub fix: Option<String>,
}

impl Missing {
    pub fn new(reason: impl Into<String>, fix: impl Into<String>) -> Missing {
        Missing {
            reason: reason.into(),
            fix: Some(fix.into()),
        }
    }

    /// Something that no setting of this machine can change.
    pub fn without_fix(reason: impl Into<String>) -> Missing {
        Missing {
            reason: reason.into(),
            fix: None,
        }
    }
}

/// One value that was read, or why it could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub value: Result<u64, Missing>,
    /// Share of the time in which a multiplexed event was counted. The value is scaled by it.
    pub counted: Option<f64>,
    /// The value of each CPU, where the kernel has one.
    pub by_cpu: Vec<u64>,
    /// What counted it, where more than one source can.
    pub source: Option<&'static str>,
}

impl Reading {
    pub fn new(value: Result<u64, Missing>) -> Reading {
        Reading {
            value,
            counted: None,
            by_cpu: Vec::new(),
            source: None,
        }
    }

    /// A value that this source counted.
    pub fn of(source: &'static str, value: u64) -> Reading {
        Reading {
            source: Some(source),
            ..Reading::new(Ok(value))
        }
    }
}

/// What was read at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    readings: BTreeMap<(Scope, String), Reading>,
    /// Number of CPUs that are online; 0 if it is unknown.
    pub cpus: u64,
}

impl Snapshot {
    pub fn set(&mut self, scope: Scope, name: impl Into<String>, value: Result<u64, Missing>) {
        self.set_reading(scope, name, Reading::new(value));
    }

    pub fn set_reading(&mut self, scope: Scope, name: impl Into<String>, reading: Reading) {
        self.readings.insert((scope, name.into()), reading);
    }

    /// Sets several counters that are missing for the same reason.
    pub fn miss(&mut self, scope: Scope, names: &[&str], missing: &Missing) {
        for name in names {
            self.set(scope, *name, Err(missing.clone()));
        }
    }

    /// Takes all readings of another snapshot of the same moment.
    pub fn merge(&mut self, other: Snapshot) {
        self.readings.extend(other.readings);
        self.cpus = self.cpus.max(other.cpus);
    }

    /// Whether there is a value, or a reason why there is none.
    pub fn has(&self, scope: Scope, name: &str) -> bool {
        self.readings.contains_key(&(scope, name.to_owned()))
    }

    pub fn value(&self, scope: Scope, name: &str) -> Option<u64> {
        let reading = self.readings.get(&(scope, name.to_owned()))?;
        reading.value.as_ref().ok().copied()
    }
}

/// An estimate of CPU time lost, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    pub ns: f64,
    pub low: f64,
    pub high: f64,
}

impl Loss {
    pub const NOTHING: Loss = Loss {
        ns: 0.0,
        low: 0.0,
        high: 0.0,
    };
}

impl Add for Loss {
    type Output = Loss;

    fn add(self, other: Loss) -> Loss {
        Loss {
            ns: self.ns + other.ns,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

/// A counter between two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    pub name: String,
    pub definition: Definition,
    pub scope: Scope,
    pub value: Option<f64>,
    pub loss: Option<Loss>,
    pub missing: Option<Missing>,
    pub counted: Option<f64>,
    pub by_cpu: Vec<u64>,
    pub source: Option<&'static str>,
}

/// The readings of one scope in two snapshots.
pub(crate) struct Change<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    scope: Scope,
}

impl Change<'_> {
    /// The increase of a counter; `None` if one of the snapshots lacks it. A counter that fell (a
    /// process with a share in it has ended) has not increased.
    fn of(&self, name: &str) -> Option<f64> {
        self.of_scope(self.scope, name)
    }

    fn of_scope(&self, scope: Scope, name: &str) -> Option<f64> {
        let before = self.before.value(scope, name)?;
        Some(self.after.value(scope, name)?.saturating_sub(before) as f64)
    }
}

/// Returns the counters of both snapshots, in the order in which they are shown.
pub fn counters(before: &Snapshot, after: &Snapshot, costs: &EventCosts) -> Vec<Counter> {
    let mut found: Vec<Counter> = after
        .readings
        .iter()
        .filter_map(|((scope, name), reading)| {
            let change = Change {
                before,
                after,
                scope: *scope,
            };
            counter(&change, name, reading, costs)
        })
        .collect();
    for scope in [Scope::Tree, Scope::Cgroup, Scope::Machine] {
        let change = Change {
            before,
            after,
            scope,
        };
        found.extend(formulas::ratios(&change));
    }
    found.sort_by_cached_key(|counter| (counter.scope, counter.definition.place.clone()));
    found
}

/// A counter with its estimate; `None` for a name that the catalogue lacks.
fn counter(change: &Change, name: &str, reading: &Reading, costs: &EventCosts) -> Option<Counter> {
    let definition = definition(name)?;
    let value = match (definition.kind, &reading.value) {
        (Kind::Level, Ok(value)) => Some(*value as f64),
        (Kind::Change, Ok(_)) => change.of(name),
        (_, Err(_)) => None,
    };
    let missing = match (&reading.value, value) {
        (Err(missing), _) => Some(missing.clone()),
        (Ok(_), None) => Some(appeared(change, name)),
        _ => None,
    };
    let earlier = change.before.readings.get(&(change.scope, name.to_owned()));
    let earlier = earlier.map_or(&[][..], |reading| &reading.by_cpu);
    let by_cpu = reading.by_cpu.iter().enumerate();
    Some(Counter {
        name: name.to_owned(),
        definition,
        scope: change.scope,
        value,
        loss: value.and_then(|value| formulas::loss(change, name, value, costs)),
        missing,
        counted: reading.counted,
        source: reading.source,
        by_cpu: by_cpu
            .map(|(cpu, now)| now.saturating_sub(earlier.get(cpu).copied().unwrap_or(0)))
            .collect(),
    })
}

/// The reason for a counter that only the second snapshot has.
fn appeared(change: &Change, name: &str) -> Missing {
    let earlier = change.before.readings.get(&(change.scope, name.to_owned()));
    match earlier.map(|reading| &reading.value) {
        Some(Err(missing)) => missing.clone(),
        _ => Missing::without_fix("it appeared during the measurement"),
    }
}

/// Returns the sum of the losses of a scope; `None` if no counter of it has one.
pub fn total(counters: &[Counter], scope: Scope) -> Option<Loss> {
    let losses = counters.iter().filter(|counter| counter.scope == scope);
    losses.filter_map(|counter| counter.loss).reduce(Loss::add)
}

#[cfg(test)]
mod tests;
