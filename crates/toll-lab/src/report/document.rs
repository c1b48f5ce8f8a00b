// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report as Markdown.

use std::fmt::Write as _;

use super::judge::Judged;
use super::{Part, Report, kinds, select};
use crate::results::{Entry, MAIN, markdown, number, provenance, table};
use crate::scenario::{Quantity, Row, Subject, TableSpec, Verdict, captured};
use toll_model::stats;

/// Sections beyond this number have no table of counters.
const MOST_SECTIONS: usize = 2;

impl Subject {
    fn title(self) -> &'static str {
        match self {
            Subject::Luf => "Lazy unmap flush, compared with the stock kernel",
            Subject::Econ => "econ, compared with the stock kernel and CBMM",
            Subject::Morsel => "Morsels in the lab, compared with the stock kernel",
        }
    }

    fn remarks(self) -> &'static str {
        match self {
            Subject::Luf => {
                "Published for all interrupts, on real machines: -95 % (the talk of 2024) and \
                 -97.2 % (the last posting to the kernel's mailing list)."
            }
            Subject::Econ => {
                "The costs are those of hardware (`econ_default_costs` in `mm/econ/model.c`), \
                 frozen, the same for all. The profiled input is never the measured one. Published \
                 figures are those of CBMM (2022)."
            }
            Subject::Morsel => {
                "Stock configurations are measured on vanilla, morsels on tollfree, in the same \
                 call. ext4 has no large folios in Linux 6.12; xfs has. The ext4 file of 7 GiB was \
                 read ahead, and is mapped for the first time."
            }
        }
    }
}

/// What distinguishes the rows of a table.
type Property = fn(&Entry) -> &str;

/// Formats the whole report; `command` produces it.
pub fn document(report: &Report, command: &str) -> String {
    let subject = report.subject;
    let introduction = format!(
        "Made by `{command}`; the raw data is in the JSON file of the same name. Counts in an \
         emulated machine. `modelled_ns` and work are computed from them with the preset's \
         constants, and no figure is a time of real hardware. Base and ours are medians. A result \
         is the pseudo-median over the rounds, with its 95 % interval where there are several \
         rounds. A goal is met, or not met, if the whole interval is on that side of the bound. {}",
        subject.remarks()
    );
    let mut text = format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n# {}\n\n{}\n{}.\n",
        subject.title(),
        wrapped(&introduction),
        summary(report)
    );
    for part in &report.parts {
        let _ = write!(
            text,
            "\n## {}\n\n{}\n{}",
            part.scenario.name,
            wrapped(&format!("{}.", part.scenario.description)),
            wrapped(&provenance(&part.results))
        );
        text += &goals(part);
        text += &tables(part);
        for (name, _) in pictures_of(subject, part) {
            let _ = write!(text, "\n![{}]({name})\n", name.trim_end_matches(".svg"));
        }
    }
    text + &missing(report)
}

/// Breaks a paragraph into lines of at most 100 characters.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in paragraph.split_whitespace() {
        if length > 0 && length + 1 + word.len() > 100 {
            text.push('\n');
            length = 0;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text += word;
        length += word.len();
    }
    text + "\n"
}

/// Formats the goals of all scenarios.
pub fn goals_text(report: &Report) -> String {
    let mut text = String::new();
    for part in &report.parts {
        let _ = writeln!(text, "{}", provenance(&part.results));
        text += &goals(part);
        text += "\n";
    }
    let _ = writeln!(text, "{}.", summary(report));
    text + &missing(report)
}

/// Draws the pictures of a report, and names their files.
pub fn pictures(report: &Report) -> Vec<(String, String)> {
    let parts = report.parts.iter();
    parts
        .flat_map(|part| pictures_of(report.subject, part))
        .collect()
}

fn pictures_of(subject: Subject, part: &Part) -> Vec<(String, String)> {
    let named = |(end, picture)| {
        let name = format!("{}-{}{end}.svg", subject.name(), part.scenario.name);
        (name, picture)
    };
    kinds::pictures(&part.results)
        .into_iter()
        .map(named)
        .collect()
}

fn summary(report: &Report) -> String {
    let count = |verdict| report.count(verdict);
    let unmeasured = count(Verdict::NotMeasured);
    let mut text = format!(
        "Goals: {} met, {} not met, {} not shown",
        count(Verdict::Met),
        count(Verdict::NotMet),
        count(Verdict::NotShown)
    );
    if unmeasured > 0 {
        let _ = write!(text, ", {unmeasured} not measured");
    }
    text
}

fn missing(report: &Report) -> String {
    if report.missing.is_empty() {
        return String::new();
    }
    let mut text = "\n## Not measured\n\n".to_owned();
    for it in &report.missing {
        let why = it.why.lines().next().unwrap_or_default();
        let _ = writeln!(text, "- {}: {why}", it.scenario);
    }
    text
}

fn goals(part: &Part) -> String {
    let goals = &part.goals;
    if goals.is_empty() {
        return String::new();
    }
    let has_sections = goals.iter().any(|goal| goal.section != MAIN);
    let is_published = goals.iter().any(|goal| goal.published.is_some());
    let named = |is: bool, name: &str| is.then(|| name.to_owned());
    let mut head = vec!["measure".to_owned()];
    head.extend(named(has_sections, "section"));
    head.extend(named(is_published, "published"));
    head.extend(["base", "ours", "result", "goal", ""].map(str::to_owned));
    let row = |goal: &Judged| {
        let mut cells = vec![goal.goal.clone()];
        cells.extend(named(has_sections, &goal.section));
        cells.extend(named(
            is_published,
            goal.published.as_deref().unwrap_or("-"),
        ));
        cells.extend([goal.base, goal.ours].map(figure));
        cells.extend([
            result(goal),
            goal.bound.clone(),
            said(goal.verdict).to_owned(),
        ]);
        cells
    };
    let rows: Vec<Vec<String>> = goals.iter().map(row).collect();
    format!("\n{}", markdown(&head, &rows))
}

fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::NotMet => "**not met**",
        Verdict::NotShown => "not shown",
        Verdict::NotMeasured => "not measured",
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Formats a goal's quantity with its interval.
fn result(goal: &Judged) -> String {
    let show = |value: f64| match goal.quantity {
        Quantity::Value | Quantity::Difference => number(value),
        Quantity::Change => format!("{:+.1} %", value * 100.0),
        Quantity::RelativeCost => format!("{value:.3}"),
        Quantity::ReductionFactor if value >= 100.0 => format!("{} x", number(value.round())),
        Quantity::ReductionFactor => format!("{value:.1} x"),
        Quantity::SavedShare => format!("{:.1} %", value * 100.0),
    };
    let (Some(value), Some(low), Some(high)) = (goal.value, goal.low, goal.high) else {
        return "-".to_owned();
    };
    match low == high {
        true => show(value),
        false => format!("{} [{}, {}]", show(value), show(low), show(high)),
    }
}

/// Formats the scenario's tables; without any, its counters, if it has few sections.
fn tables(part: &Part) -> String {
    let mut sections: Vec<&str> = part
        .results
        .results
        .iter()
        .map(|it| it.section.as_str())
        .collect();
    sections.dedup();
    let mut text = String::new();
    if part.scenario.tables.is_empty() && sections.len() <= MOST_SECTIONS {
        let _ = write!(text, "\n{}", table(&part.results, false));
    }
    for spec in &part.scenario.tables {
        let _ = write!(text, "\n{}\n{}", wrapped(&spec.title), metrics(part, spec));
    }
    if kinds::is_measured(&part.results) {
        let _ = write!(
            text,
            "\nPage faults by kind\n\n{}",
            kinds::table(&part.results)
        );
    }
    text
}

/// Formats a table of metrics: a row for each configuration.
fn metrics(part: &Part, spec: &TableSpec) -> String {
    let entries: Vec<&Entry> = spec
        .rows
        .iter()
        .flat_map(|row| entries(part, row))
        .collect();
    let differs = |of: Property| {
        let first = entries.first().map(|entry| of(entry));
        entries.iter().any(|entry| Some(of(entry)) != first)
    };
    let all: [(&str, Property); 3] = [
        ("section", |entry| &entry.section),
        ("kernel", |entry| &entry.variant),
        ("policy", |entry| &entry.policy),
    ];
    let mut named: Vec<_> = all.into_iter().filter(|(_, of)| differs(*of)).collect();
    if named.is_empty() {
        named.push(all[1]);
    }
    let mut head: Vec<String> = named.iter().map(|(name, _)| (*name).to_owned()).collect();
    head.extend(spec.columns.iter().map(|column| column.name.clone()));
    let row = |entry: &&Entry| {
        let mut cells: Vec<String> = named.iter().map(|(_, of)| of(entry).to_owned()).collect();
        let values = spec
            .columns
            .iter()
            .map(|it| select::runs(entry, &it.metric));
        let median = values.map(|runs| stats::median(&runs).filter(|it| it.is_finite()));
        cells.extend(median.map(figure));
        cells
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    markdown(&head, &rows)
}

fn entries<'a>(part: &'a Part, row: &Row) -> Vec<&'a Entry> {
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|it| it == name);
    let is_section = |entry: &Entry| {
        let pattern = row.section.as_deref().unwrap_or("*");
        captured(pattern, &entry.section).is_some()
    };
    let all = part.results.results.iter();
    let mut found: Vec<&Entry> = all
        .filter(|it| is(&row.variant, &it.variant) && is(&row.policy, &it.policy))
        .filter(|entry| is_section(entry))
        .collect();
    found.sort_by_key(|entry| select::size_order(&entry.section));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_at_100_characters() {
        let text = wrapped(&"word ".repeat(60));
        assert_eq!(text.split_whitespace().count(), 60);
        assert!(text.ends_with("word\n"));
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [99, 99, 99]);
        let long = "x".repeat(120);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb\n"));
    }
}
