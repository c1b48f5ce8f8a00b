// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin found, with the names of the kernel's functions.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::symbols::Symbols;
use crate::error::LabError;
use crate::files;

/// The plugin's file.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Findings {
    #[serde(flatten)]
    pub counts: Counts,
    /// Seconds from the first section to the first finding; `None` without one.
    pub found_after: Option<f64>,
    pub reports: Vec<Report>,
}

/// Numbers of events.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Accesses that were checked.
    pub checked: u64,
    /// Accesses that met an older translation that hardware could still use.
    pub stale_capable: u64,
    /// Those of them that were legal: an unchanged page that is not in use.
    pub legal: u64,
    /// Page table entries that were cleared.
    pub unmaps: u64,
    /// Instructions that invalidated translations.
    pub flushes: u64,
    /// Drains of LUF's pools, in runs without a planted bug. The kernel counts them.
    #[serde(default)]
    pub drains: u64,
    pub frames_taken: u64,
    pub frames_freed: u64,
    /// Flushes that a planted bug left out or changed.
    pub planted: u64,
    /// Events that could not be followed.
    pub lost: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.checked += other.checked;
        self.stale_capable += other.stale_capable;
        self.legal += other.legal;
        self.unmaps += other.unmaps;
        self.flushes += other.flushes;
        self.drains += other.drains;
        self.frames_taken += other.frames_taken;
        self.frames_freed += other.frames_freed;
        self.planted += other.planted;
        self.lost += other.lost;
    }

    /// Why these counts show nothing about a kernel; `None` if they do.
    pub fn problem(&self) -> Option<String> {
        let what = match self {
            Counts { lost: 1.., .. } => format!("{} events were lost", self.lost),
            Counts { checked: 0, .. } => "no access was checked".to_owned(),
            Counts {
                frames_taken: 0, ..
            } => "the kernel announced no frames".to_owned(),
            Counts { unmaps: 0, .. } => "nothing was unmapped".to_owned(),
            _ => return None,
        };
        Some(what)
    }
}

/// Findings of one cause.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub finding: String,
    pub count: u64,
    pub access: String,
    /// No access has used the old translation, but user mode could have done it.
    pub possible_only: bool,
    /// The operation that made the translation old had not ended: its task was still in the kernel.
    pub pending: bool,
    pub address: String,
    pub cpu: u32,
    pub pcid: u32,
    pub frame: String,
    pub frame_now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_after: Option<String>,
    pub seen: Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmapped: Option<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Event>,
}

/// Where something happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    pub cpu: u32,
    pub instruction: u64,
    pub tgid: u32,
    pub pid: u32,
    pub task: String,
    /// Functions, the innermost first; in the plugin's file return addresses.
    pub calls: Vec<String>,
}

impl Findings {
    /// Reads the plugin's file, and replaces addresses by names. Findings that differ only in
    /// their addresses become one.
    ///
    /// # Errors
    /// [`LabError::Test`] if the guest wrote none: nothing was checked.
    pub fn read(path: &Path, symbols: &Symbols) -> Result<Findings> {
        let content = files::read(path)?
            .ok_or_else(|| LabError::Test(format!("{}: nothing was checked", path.display())))?;
        let mut findings: Findings = serde_json::from_slice(&content)
            .map_err(|error| LabError::Input(format!("{}: {error}", path.display())))?;
        findings.name_all(symbols);
        Ok(findings)
    }

    fn name_all(&mut self, symbols: &Symbols) {
        let mut merged: Vec<Report> = Vec::new();
        for mut report in self.reports.drain(..) {
            for event in report.events_mut() {
                event.name(symbols);
            }
            merge(&mut merged, report);
        }
        self.reports = merged;
    }
}

/// Adds a report to others: to the count of the one with the same cause, if there is one.
pub fn merge(reports: &mut Vec<Report>, report: Report) {
    match reports.iter_mut().find(|it| it.has_cause_of(&report)) {
        Some(known) => known.count += report.count,
        None => reports.push(report),
    }
}

/// Outermost functions that make a cause, without the entry of the system call.
const CAUSE: usize = 4;

impl Report {
    fn events_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        [
            Some(&mut self.seen),
            self.cached.as_mut(),
            self.unmapped.as_mut(),
            self.freed.as_mut(),
            self.taken.as_mut(),
        ]
        .into_iter()
        .flatten()
    }

    /// The event that explains most: what unmapped, or what freed.
    fn culprit(&self) -> &Event {
        let known = self.unmapped.as_ref().or(self.freed.as_ref());
        known.unwrap_or(&self.seen)
    }

    /// Whether both have the same cause.
    pub fn has_cause_of(&self, other: &Report) -> bool {
        self.cause() == other.cause()
    }

    fn cause(&self) -> (&str, bool, &[String]) {
        let calls = &self.culprit().calls;
        let outermost = &calls[calls.len().saturating_sub(CAUSE)..];
        (&self.finding, self.pending, outermost)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.possible_only {
            true => "could have used it",
            false => "used the page",
        };
        let times = self.count;
        let when = match self.pending {
            true => ", before the call that unmapped has returned",
            false => "",
        };
        writeln!(
            f,
            "{}, {times} times{when}: a {} of",
            self.finding, self.access
        )?;
        writeln!(
            f,
            "  {} on CPU {}, PCID {}, {how}; frame {}",
            self.address, self.cpu, self.pcid, self.frame
        )?;
        let events = [
            ("cached", &self.cached),
            ("unmapped", &self.unmapped),
            ("freed", &self.freed),
            ("taken", &self.taken),
        ];
        for (name, event) in events {
            if let Some(event) = event {
                writeln!(f, "  {name:9} {event}")?;
            }
        }
        write!(f, "  {:9} {}", "seen", self.seen)
    }
}

impl Event {
    fn name(&mut self, symbols: &Symbols) {
        let name = |text: &String| {
            let address = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
            symbols.name(address).map(str::to_owned)
        };
        self.calls = self.calls.iter().filter_map(name).collect();
        self.calls.dedup();
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {}, {}[{}]", self.cpu, self.task, self.pid)?;
        match self.calls.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.calls.join(" < ")),
        }
    }
}

#[cfg(test)]
mod tests;
