// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interval as text: a block of lines, or a page of a terminal.

use toll_model::numbers::{count, of, percent};
use toll_model::units::{format_ns, format_size};

use super::columns::Line;
use super::document::{Document, GroupRow, ProcessRow, descending};
use super::rows::Figures;
use super::table::{Table, short_path};
use super::view::{Input, KEYS, View};
use crate::output::push_wrapped;
use crate::terminal::plain;

/// Rows of each table in a block; `--json` lists all.
const ROWS: usize = 20;

/// Both tables. The reasons for gaps follow unless they were `explained`.
pub fn block(document: &Document, columns: usize, explained: bool) -> String {
    let mut text = if explained { "\n" } else { "" }.to_owned();
    text += &heading(document, columns);
    for is_groups in [false, true] {
        let mut used = lines(document, is_groups);
        used.retain(is_used);
        text.push('\n');
        let table = Table::new(&used, document, columns, is_groups).lines();
        text.extend(table.iter().take(ROWS + 1).map(|line| format!("{line}\n")));
        let more = used.len().saturating_sub(ROWS);
        if more > 0 {
            text += &format!("and {more} more (--json has every one)\n");
        }
    }
    if !explained {
        explain(&mut text, document, columns);
    }
    text
}

fn is_used(line: &Line) -> bool {
    let figures = line.figures;
    let is_some = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    is_some(figures.cpu_ns) || is_some(figures.faults)
}

/// A page of a terminal. Notes in the view how many rows there are.
pub fn page(
    document: &Document,
    view: &mut View,
    rows: usize,
    columns: usize,
    attributes: bool,
) -> String {
    if view.shows_help {
        return help(document, view, rows, columns);
    }
    let mut text = heading(document, columns);
    text += &format!("{}\n", state(view));
    let mut lines = lines(document, view.shows_groups);
    lines.retain(|line| matches(line, &view.filter));
    lines.sort_by(|one, other| descending(view.sort.value(one), view.sort.value(other)));
    view.rows = lines.len();
    view.page = rows.saturating_sub(text.lines().count() + 1).max(1);
    view.first = view.first.min(view.rows.saturating_sub(view.page));
    let shown: Vec<Line> = lines.into_iter().skip(view.first).take(view.page).collect();
    let table = Table::new(&shown, document, columns, view.shows_groups).lines();
    for (number, line) in table.iter().enumerate() {
        text += &match attributes && number == 0 {
            true => format!("\x1b[7m{line:<columns$}\x1b[0m\n"),
            false => format!("{line}\n"),
        };
    }
    text
}

fn matches(line: &Line, filter: &str) -> bool {
    let cgroup = line.cgroup.unwrap_or_default();
    line.name.contains(filter) || cgroup.contains(filter) || line.id == filter
}

fn help(document: &Document, view: &mut View, rows: usize, columns: usize) -> String {
    let mut text = KEYS.to_owned();
    let note =
        "LOST% and CPU% are shares of one CPU, SHARE% is the loss by the CPU time that was used.";
    text.push('\n');
    push_wrapped(&mut text, "", note, columns);
    explain(&mut text, document, columns);
    view.rows = text.lines().count();
    view.page = rows;
    view.first = view.first.min(view.rows.saturating_sub(rows));
    let shown = text.lines().skip(view.first).take(rows);
    shown.map(|line| format!("{line}\n")).collect()
}

/// What the machine did.
fn heading(document: &Document, columns: usize) -> String {
    let seconds = document.interval_ns as f64 / 1e9;
    let machine = &document.machine;
    let rate = |number: f64| count((number / seconds).round());
    let mut parts = vec![format!(
        "{}: {}, {}, {}",
        format_ns(document.interval_ns as f64),
        of(document.cpus as usize, "CPU"),
        processes(document.processes.len()),
        of(document.cgroups.len(), "cgroup")
    )];
    parts.extend(
        machine
            .cpu_ns
            .map(|ns| format!("used {}", share(ns, seconds))),
    );
    parts.extend(lost(machine, seconds));
    parts.extend(machine.faults.map(|it| format!("{} faults/s", rate(it))));
    let received = machine.shootdowns_received;
    parts.extend(received.map(|it| format!("{} TLB shootdowns/s", rate(it))));
    let huge = machine.huge_bytes;
    parts.extend(huge.map(|it| format!("{} in huge pages", format_size(it as u64))));
    let mut text = String::new();
    push_wrapped(&mut text, "", &parts.join(", "), columns);
    text
}

fn processes(number: usize) -> String {
    match number {
        1 => "1 process".to_owned(),
        more => format!("{} processes", count(more as f64)),
    }
}

fn share(ns: f64, seconds: f64) -> String {
    format!("{} of a CPU", percent(ns / 1e9 / seconds))
}

fn lost(machine: &Figures, seconds: f64) -> Option<String> {
    let bounds = machine
        .loss_interval_ns?
        .map(|ns| percent(ns / 1e9 / seconds));
    let lost = share(machine.loss_ns?, seconds);
    Some(format!("lost {lost} ({} to {})", bounds[0], bounds[1]))
}

fn state(view: &View) -> String {
    match &view.input {
        Some(Input::Filter(text)) => return format!("rows with: {}_", plain(text)),
        Some(Input::Interval(text)) => return format!("time between updates: {}_", plain(text)),
        None => {}
    }
    let mut parts = vec![format!("by {}", view.sort.title())];
    if !view.filter.is_empty() {
        parts.push(format!("with \"{}\"", plain(&view.filter)));
    }
    if view.is_paused {
        parts.push("paused".to_owned());
    }
    format!("{}; h help, q quit", parts.join(", "))
}

/// The rows of cgroups, or of processes.
fn lines(document: &Document, is_groups: bool) -> Vec<Line<'_>> {
    match is_groups {
        true => document.cgroups.iter().map(group_line).collect(),
        false => document.processes.iter().map(process_line).collect(),
    }
}

fn process_line(row: &ProcessRow) -> Line<'_> {
    Line {
        id: row.pid.to_string(),
        name: plain(&row.command),
        cgroup: row.cgroup.as_deref(),
        resident: Some(row.resident_bytes),
        figures: &row.figures,
    }
}

fn group_line(row: &GroupRow) -> Line<'_> {
    Line {
        id: row.processes.to_string(),
        name: short_path(&row.cgroup),
        cgroup: None,
        resident: None,
        figures: &row.figures,
    }
}

/// What is missing, by reason, and which costs are not this machine's.
fn explain(text: &mut String, document: &Document, columns: usize) {
    text.push_str("\nnot measurable here\n");
    for gap in document.missing.all() {
        let fields: Vec<String> = gap.fields.iter().map(|it| it.replace('_', " ")).collect();
        let rows = format!("{:?}", gap.rows).to_lowercase();
        let fix = gap.fix.as_ref().map(|fix| format!("; {fix}"));
        let line = format!(
            "{rows}, {}: {}{}",
            fields.join(", "),
            gap.reason,
            fix.unwrap_or_default()
        );
        push_wrapped(text, "  ", &plain(&line), columns);
    }
    if !document.default_costs.is_empty() {
        let costs = document.default_costs.join(", ");
        let note = format!(
            "costs with default values, not this machine's: {costs} (`tollfree calibrate` measures them, but for compaction)"
        );
        text.push('\n');
        push_wrapped(text, "", &note, columns);
    }
}

#[cfg(test)]
mod tests;
