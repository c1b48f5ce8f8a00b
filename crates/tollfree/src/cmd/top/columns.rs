// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of the table.

use toll_model::units::format_size;

use super::rows::Figures;

/// A row as it is shown.
pub struct Line<'a> {
    /// Process id, or number of processes.
    pub id: String,
    pub name: String,
    pub cgroup: Option<&'a str>,
    pub resident: Option<u64>,
    pub figures: &'a Figures,
}

/// A column before the name, in the order of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Id,
    Lost,
    Bounds,
    Cpu,
    Share,
    Faults,
    Major,
    Sent,
    Received,
    Huge,
    Memory,
}

use Column::*;

const ORDER: [Column; 11] = [
    Id, Lost, Bounds, Cpu, Share, Faults, Major, Sent, Received, Huge, Memory,
];
/// What a narrow terminal keeps, the most important first.
const IMPORTANCE: [Column; 11] = [
    Id, Lost, Cpu, Faults, Share, Huge, Bounds, Sent, Received, Memory, Major,
];
/// Columns by which rows can be sorted.
pub const SORTABLE: [Column; 9] = [
    Lost, Cpu, Share, Faults, Major, Sent, Received, Huge, Memory,
];
/// Least width of the name.
const NAME: usize = 9;

impl Column {
    pub fn title(self) -> &'static str {
        match self {
            Id => "PID",
            Lost => "LOST%",
            Bounds => "BOUNDS%",
            Cpu => "CPU%",
            Share => "SHARE%",
            Faults => "FAULT/S",
            Major => "MAJ/S",
            Sent => "SENT/S",
            Received => "RECV/S",
            Huge => "HUGE",
            Memory => "MEMORY",
        }
    }

    pub fn width(self) -> usize {
        match self {
            Id | Faults => 7,
            Bounds => 11,
            Huge | Memory => 8,
            _ => 6,
        }
    }

    /// The value in a row, for an interval in s.
    pub fn cell(self, line: &Line, seconds: f64) -> String {
        let percent = |ns: Option<f64>| shown(ns.map(|ns| ns / seconds / 1e7), percentage);
        let rate = |count: Option<f64>| shown(count.map(|count| count / seconds), short);
        let size = |bytes: Option<f64>| shown(bytes, |bytes| format_size(bytes as u64));
        match self {
            Id => line.id.clone(),
            Lost => percent(self.value(line)),
            Bounds => match line.figures.loss_interval_ns {
                Some([low, high]) => format!("{}-{}", percent(Some(low)), percent(Some(high))),
                None => "-".to_owned(),
            },
            Cpu => percent(self.value(line)),
            Share => shown(self.value(line).map(|share| share * 100.0), percentage),
            Faults | Major | Sent | Received => rate(self.value(line)),
            Huge | Memory => size(self.value(line)),
        }
    }

    /// What rows are sorted by.
    pub fn value(self, line: &Line) -> Option<f64> {
        let figures = line.figures;
        match self {
            Id | Bounds => None,
            Lost => figures.loss_ns,
            Cpu => figures.cpu_ns,
            Share => figures.loss_share,
            Faults => figures.faults,
            Major => figures.major_faults,
            Sent => figures.shootdowns_sent,
            Received => figures.shootdowns_received,
            Huge => figures.huge_bytes,
            Memory => line.resident.map(|bytes| bytes as f64),
        }
    }
}

fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn percentage(percent: f64) -> String {
    match percent {
        some if some >= 99.95 => format!("{some:.0}"),
        some => format!("{some:.1}"),
    }
}

/// A number in at most six characters.
fn short(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 99_999.5 => format!("{n:.0}"),
        n if n < 9_999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 9_999.5e6 => format!("{:.0}M", n / 1e6),
        n => format!("{:.0}G", n / 1e9),
    }
}

/// The columns that fit beside a name, in the order of display. Those without any value are left
/// out.
pub fn fitting(lines: &[Line], columns: usize) -> Vec<Column> {
    let has_values = |column: Column| match column {
        Sent | Received | Memory => lines.iter().any(|line| column.value(line).is_some()),
        _ => true,
    };
    let mut left = columns.saturating_sub(NAME);
    let mut kept = Vec::new();
    for column in IMPORTANCE.into_iter().filter(|it| has_values(*it)) {
        if column.width() < left {
            left -= column.width() + 1;
            kept.push(column);
        }
    }
    ORDER.into_iter().filter(|it| kept.contains(it)).collect()
}

#[cfg(test)]
mod tests;
