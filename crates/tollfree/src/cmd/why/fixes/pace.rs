// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long khugepaged takes to come to all memory.

use std::time::Duration;

use serde::Serialize;
use toll_linux::Root;
use toll_linux::mappings::{Machine, span};
use toll_model::eligibility::{Mode, scan_rate};
use toll_model::numbers;
use toll_model::units::{format_ns, format_size};

use super::super::reading::Reading;

/// Longest time to read the other processes.
const TIME: Duration = Duration::from_millis(500);

/// The pace of khugepaged. It looks at all eligible memory of all processes in turn, so a region
/// waits for one pass at most, as long as khugepaged finds a free block.
#[derive(Debug, Clone, Serialize)]
pub struct Pace {
    /// Bytes that it looks at per second; null: it does not sleep.
    pub bytes_per_second: Option<f64>,
    /// Eligible memory of this process, touched or not, and of all processes that could be read.
    pub process_bytes: u64,
    pub machine_bytes: u64,
    /// Other processes that were not read: `machine_bytes` is a lower bound.
    pub unread_processes: usize,
    /// One pass over this process alone, and over all.
    pub process_ns: Option<f64>,
    pub machine_ns: Option<f64>,
    /// Mean time of a pass since boot; null before the first.
    pub mean_ns: Option<f64>,
}

impl Pace {
    /// `None` if nothing waits for it.
    pub fn of(root: &Root, reading: &Reading, machine: &Machine) -> Option<Pace> {
        let process_bytes = reading.sum(|entry| entry.eligible);
        let thp = reading.survey.thp.as_ref()?;
        let pages = thp.khugepaged.pages_to_scan.filter(|pages| *pages > 0)?;
        if process_bytes == 0 {
            return None;
        }
        let rate = scan_rate(pages, thp.khugepaged.scan_sleep_ms?);
        let others = match reading.survey.policy.mode {
            Mode::Missing | Mode::Never => Default::default(),
            mode => span(root, reading.pid, mode, TIME),
        };
        let machine_bytes = process_bytes + others.bytes;
        let time = |bytes: u64| rate.map(|rate| bytes as f64 / rate * 1e9);
        let mean = machine.mean_pass(&thp.khugepaged);
        Some(Pace {
            bytes_per_second: rate,
            process_bytes,
            machine_bytes,
            unread_processes: others.unread,
            process_ns: time(process_bytes),
            machine_ns: time(machine_bytes),
            mean_ns: mean.map(|time| time.as_nanos() as f64),
        })
    }

    /// The pace as a sentence.
    pub fn text(&self) -> String {
        let eligible = format_size(self.machine_bytes);
        let Some((rate, pass)) = self.bytes_per_second.zip(self.machine_ns) else {
            return format!("khugepaged looks at {eligible} without a pause");
        };
        let rate = format_size(rate as u64);
        let later = match self.unread_processes {
            0 => String::new(),
            some => format!(", or later, since {} could not be read", processes(some)),
        };
        let mean = self.mean_ns.map(long);
        let mean = mean.map_or(String::new(), |mean| {
            format!("; since boot a pass took {mean}")
        });
        format!(
            "khugepaged comes within {}{later}: it looks at {rate}/s, and {eligible} are eligible on this machine{mean}",
            long(pass)
        )
    }
}

fn processes(number: usize) -> String {
    match number {
        1 => "1 process".to_owned(),
        _ => format!("{} processes", numbers::count(number as f64)),
    }
}

/// A time that may be hours.
fn long(ns: f64) -> String {
    const MINUTE: f64 = 60e9;
    match ns {
        ns if ns >= 48.0 * 60.0 * MINUTE => format!("{:.0} days", ns / (24.0 * 60.0 * MINUTE)),
        ns if ns >= 120.0 * MINUTE => format!("{:.0} h", ns / (60.0 * MINUTE)),
        ns if ns >= 2.0 * MINUTE => format!("{:.0} min", ns / MINUTE),
        ns => format_ns(ns),
    }
}
