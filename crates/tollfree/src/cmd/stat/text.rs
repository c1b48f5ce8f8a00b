// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report as a table.

use toll_model::losses::{Counter, Group, Loss, Scope, Unit};
use toll_model::units::{format_count, format_ns, format_size};

use super::report::{Report, Subject};
use crate::output::{cut, push_wrapped};
use crate::terminal::plain;

/// Columns of the value and of the time lost.
const VALUE: usize = 11;
const LOST: usize = 9;
/// Longest name of a subject.
const NAME: usize = 60;

/// The table, in lines of at most `columns`. An interval's counters that are 0 are left out, and so
/// are the reasons for missing ones once they were `explained`.
pub fn table(report: &Report, columns: usize, is_part: bool, explained: bool) -> String {
    let mut text = if explained {
        "\n".to_owned()
    } else {
        String::new()
    };
    push_wrapped(&mut text, "", &heading(report, is_part), columns);
    let shown: Vec<&Counter> = report
        .counters
        .iter()
        .filter(|counter| is_shown(counter, report.scope, is_part))
        .collect();
    let layout = Layout::new(&shown, columns);
    for scope in [Scope::Tree, Scope::Cgroup, Scope::Machine] {
        let of_scope = shown.iter().filter(|counter| counter.scope == scope);
        let lines: Vec<String> = of_scope.map(|counter| layout.line(counter)).collect();
        if lines.is_empty() {
            continue;
        }
        let meanwhile = if scope == report.scope {
            ""
        } else {
            ", meanwhile"
        };
        text += &layout.head(&format!("{scope}{meanwhile}"));
        text.extend(lines);
        if scope == report.scope {
            text += &layout.total(report.loss(), report.cpu_ns);
        }
    }
    if !explained {
        explain(&mut text, report, columns);
    }
    text
}

/// What was watched, and how long.
fn heading(report: &Report, is_part: bool) -> String {
    let subject = match report.subject {
        Subject::Machine => "the machine".to_owned(),
        Subject::Pid(pid) => format!("process {pid}{}, and its children", report.place),
        Subject::Cgroup(name) => format!("cgroup {}", short(name)),
        Subject::Command(words) => short(&words.join(" ")),
    };
    let time = match is_part {
        false => format_ns(report.elapsed_ns as f64),
        true => format!(
            "{} to {}",
            format_ns(report.elapsed_ns.saturating_sub(report.interval_ns) as f64),
            format_ns(report.elapsed_ns as f64)
        ),
    };
    let cpu = report
        .cpu_ns
        .map(|ns| format!(", {} of CPU time", format_ns(ns)));
    format!("{subject}: {time}{}", cpu.unwrap_or_default())
}

/// A name that its owner chose: plain, and not too long.
fn short(name: &str) -> String {
    let mut short: String = plain(name).chars().take(NAME).collect();
    if name.chars().count() > NAME {
        short += "...";
    }
    short
}

fn is_shown(counter: &Counter, scope: Scope, is_part: bool) -> bool {
    let Some(value) = counter.value else {
        return false;
    };
    let group = counter.definition.group;
    let is_zero = value == 0.0;
    if counter.scope != scope {
        // What the machine does for all programs; --json has the rest.
        let is_common = matches!(
            group,
            Group::Shootdowns | Group::Reclaim | Group::HugePages | Group::Threads
        );
        return is_common && !is_zero;
    }
    !(is_zero && (is_part || group == Group::Sizes))
}

/// Widths of the columns.
struct Layout {
    title: usize,
    columns: usize,
}

impl Layout {
    fn new(shown: &[&Counter], columns: usize) -> Layout {
        let widths = shown.iter().map(|counter| title(counter).chars().count());
        Layout {
            title: widths
                .max()
                .unwrap_or(0)
                .max("process tree, meanwhile".len()),
            columns,
        }
    }

    /// Whether a whole line fits.
    fn is_wide(&self) -> bool {
        const BOUNDS: usize = "  999 ms to 999 ms".len();
        self.title + 1 + VALUE + 1 + LOST + BOUNDS <= self.columns
    }

    fn head(&self, scope: &str) -> String {
        match self.is_wide() {
            true => format!(
                "\n{scope:<title$} {:>VALUE$} {:>LOST$}  interval\n",
                "value",
                "CPU lost",
                title = self.title
            ),
            false => format!(
                "\n{}\n",
                cut(&format!("{scope}: value, CPU lost"), self.columns)
            ),
        }
    }

    fn line(&self, counter: &Counter) -> String {
        let value = value(counter);
        let counted = match counter.counted {
            Some(share) if share < 0.995 => format!("  counted {:.0} %", share * 100.0),
            _ => String::new(),
        };
        self.row(&title(counter), &value, counter.loss, &counted)
    }

    fn total(&self, loss: Option<Loss>, cpu: Option<f64>) -> String {
        let Some(loss) = loss else {
            return String::new();
        };
        let share = cpu
            .filter(|cpu| *cpu > 0.0)
            .map(|cpu| loss.ns / cpu * 100.0);
        let share = share
            .map(|share| format!("{share:.1} %"))
            .unwrap_or_default();
        self.row("CPU time lost", &share, Some(loss), "")
    }

    fn row(&self, title: &str, value: &str, loss: Option<Loss>, more: &str) -> String {
        let lost = loss.map(|loss| format_ns(loss.ns)).unwrap_or_default();
        let bounds =
            loss.map(|loss| format!("  {} to {}", format_ns(loss.low), format_ns(loss.high)));
        let bounds = bounds.unwrap_or_default();
        let line = match self.is_wide() {
            true => format!(
                "{title:<width$} {value:>VALUE$} {lost:>LOST$}{bounds}{more}",
                width = self.title
            ),
            false => {
                let title = cut(title, self.columns);
                let numbers = format!("{value:>VALUE$} {lost:>LOST$}{bounds}{more}");
                format!("{title}\n{}", cut(&numbers, self.columns))
            }
        };
        let lines = line.lines().map(str::trim_end);
        lines.map(|line| format!("{line}\n")).collect()
    }
}

fn title(counter: &Counter) -> String {
    let indent = if counter.definition.part_of.is_some() {
        "  "
    } else {
        ""
    };
    format!("{indent}{}", counter.definition.title)
}

fn value(counter: &Counter) -> String {
    let Some(value) = counter.value else {
        return "-".to_owned();
    };
    match counter.definition.unit {
        Unit::Count | Unit::Pages | Unit::PerThousandInstructions => format_count(value),
        Unit::Bytes => format_size(value as u64),
        Unit::Ns => format_ns(value),
        Unit::Ratio => format!("{:.1} %", value * 100.0),
    }
}

/// What is missing, by reason, and which costs are not this machine's.
fn explain(text: &mut String, report: &Report, columns: usize) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for counter in &report.counters {
        let Some(missing) = &counter.missing else {
            continue;
        };
        if counter.scope != report.scope && counter.definition.group == Group::Walks {
            continue;
        }
        let fix = missing.fix.as_ref().map(|fix| format!("; {fix}"));
        let reason = plain(&format!("{}{}", missing.reason, fix.unwrap_or_default()));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&counter.definition.title),
            None => reasons.push((reason, vec![&counter.definition.title])),
        }
    }
    if !reasons.is_empty() {
        text.push_str("\nnot measurable here\n");
    }
    for (reason, names) in reasons {
        push_wrapped(
            text,
            "  ",
            &format!("{}: {reason}", names.join(", ")),
            columns,
        );
    }
    if report.loss().is_some() && !report.default_costs.is_empty() {
        let costs = report.default_costs.join(", ");
        let note = format!(
            "costs with default values, not this machine's: {costs} (`tollfree calibrate` measures them, but for compaction)"
        );
        text.push('\n');
        push_wrapped(text, "", &note, columns);
    }
}
