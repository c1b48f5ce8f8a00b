// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as Markdown tables that are readable as plain text.

use toll_model::plan::Estimate;

use super::{Entry, Results};
use crate::counters::CRASHES;

/// Counters shown by default, in this order; the others need --all.
const SHOWN: [&str; 32] = [
    "shootdown_irqs",
    "shootdown_irqs_eligible",
    "shootdown_irqs_mixed",
    "shootdown_irqs_other",
    "dtlb_load_misses",
    "dtlb_load_misses_flush_induced",
    "dtlb_store_misses",
    "dtlb_store_misses_flush_induced",
    "itlb_misses",
    "itlb_misses_flush_induced",
    "walks",
    "page_faults",
    "pages_reclaimed",
    "pages_migrated",
    "unmapped_ro",
    "unmapped_rw",
    "instructions_user",
    "instructions_kernel",
    "modelled_ns",
    "fault_instr_p99",
    "fault_instr_p9999",
    "fault_instr_tail",
    "fault_instr_max",
    "fault_instr_total",
    "allocs",
    "alloc_failures",
    "alloc_instr_total",
    "alloc_instr_p99",
    "alloc_instr_p9999",
    "alloc_instr_max",
    "invlpgs",
    "full_flushes",
];

/// Formats one table per section, with a column for each variant and policy.
pub fn table(results: &Results, is_all: bool) -> String {
    let tables = sections(results).into_iter().map(|section| {
        let entries: Vec<&Entry> = of_section(results, section).collect();
        plain(results, &entries, is_all)
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// A column for each entry of a section.
fn plain(results: &Results, entries: &[&Entry], is_all: bool) -> String {
    let mut head = vec!["counter".to_owned()];
    head.extend(entries.iter().map(|entry| column(results, entry)));
    let row = |name: &String| {
        let mut cells = vec![name.clone()];
        cells.extend(entries.iter().map(|entry| value(entry.counters.get(name))));
        cells
    };
    let rows = names(entries, is_all).iter().map(row).collect();
    titled(results, &entries[0].section, &head, rows)
}

/// Compares each other variant with the first: the difference with its 95 % interval. What the
/// first variant does not have is shown without a comparison.
pub fn compared(results: &Results, is_all: bool) -> String {
    let variants = results.variants();
    let Some((first, others)) = variants.split_first() else {
        return String::new();
    };
    let mut text = Vec::new();
    for section in sections(results) {
        let (bases, rest): (Vec<&Entry>, Vec<&Entry>) =
            of_section(results, section).partition(|entry| entry.variant == *first);
        for base in bases {
            text.push(changes(results, base, others, is_all));
        }
        let is_alone = |entry: &&&Entry| results.counterpart(entry, first).is_none();
        let alone: Vec<&Entry> = rest.iter().filter(is_alone).copied().collect();
        if !alone.is_empty() {
            text.push(plain(results, &alone, is_all));
        }
    }
    text.join("\n")
}

/// A column for the base, and two for each other variant.
fn changes(results: &Results, base: &Entry, others: &[&str], is_all: bool) -> String {
    let others: Vec<&Entry> = others
        .iter()
        .filter_map(|variant| results.counterpart(base, variant))
        .collect();
    let mut head = vec!["counter".to_owned(), column(results, base)];
    for other in &others {
        head.extend([column(results, other), "change".to_owned()]);
    }
    let row = |name: &String| {
        let mut cells = vec![name.clone(), value(base.counters.get(name))];
        for other in &others {
            cells.extend([value(other.counters.get(name)), change(base, other, name)]);
        }
        cells
    };
    let rows = names(&[base], is_all).iter().map(row).collect();
    titled(results, &base.section, &head, rows)
}

fn sections(results: &Results) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for entry in &results.results {
        if !found.contains(&entry.section.as_str()) {
            found.push(&entry.section);
        }
    }
    found
}

fn of_section<'a>(results: &'a Results, section: &'a str) -> impl Iterator<Item = &'a Entry> {
    results
        .results
        .iter()
        .filter(move |entry| entry.section == section)
}

/// Names a variant, with the policy if there are several.
fn column(results: &Results, entry: &Entry) -> String {
    let is_only = results
        .results
        .iter()
        .all(|other| other.policy == entry.policy);
    let cached = if entry.cached { " (cached)" } else { "" };
    match is_only {
        true => format!("{}{cached}", entry.variant),
        false => format!("{} {}{cached}", entry.variant, entry.policy),
    }
}

/// Lists the counters of a table: those above that are not 0 everywhere, and the programs' own
/// values.
fn names(entries: &[&Entry], is_all: bool) -> Vec<String> {
    let is_nonzero = |name: &str| {
        let counters = entries.iter().filter_map(|entry| entry.counters.get(name));
        counters
            .into_iter()
            .any(|it| it.low != 0.0 || it.high != 0.0)
    };
    let mut found: Vec<String> = SHOWN.iter().map(|name| (*name).to_owned()).collect();
    for entry in entries {
        for name in entry.counters.keys() {
            if (is_all || is_shown(name)) && !found.contains(name) {
                found.push(name.clone());
            }
        }
    }
    found.retain(|name| is_nonzero(name));
    found
}

/// Whether a table shows a counter by default.
pub fn is_shown(counter: &str) -> bool {
    SHOWN.contains(&counter) || CRASHES.contains(&counter) || counter.starts_with("note_")
}

fn value(estimate: Option<&Estimate>) -> String {
    let Some(estimate) = estimate else {
        return "-".to_owned();
    };
    match estimate.low == estimate.high {
        true => number(estimate.median),
        false => format!(
            "{} [{}, {}]",
            number(estimate.median),
            number(estimate.low),
            number(estimate.high)
        ),
    }
}

/// Formats a number: groups thousands; three significant digits for values that are not counts.
pub fn number(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 1e4 {
        return format!("{value:.3}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 {
        format!("-{text}")
    } else {
        text
    }
}

fn change(base: &Entry, other: &Entry, name: &str) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    match other.relative_to(base, name) {
        Some(ratio) if ratio.high.is_finite() => format!(
            "{} [{}, {}]",
            percent(ratio.median),
            percent(ratio.low),
            percent(ratio.high)
        ),
        Some(ratio) => percent(ratio.median),
        None => "-".to_owned(),
    }
}

fn titled(results: &Results, section: &str, head: &[String], rows: Vec<Vec<String>>) -> String {
    let title = match sections(results).len() {
        1 => String::new(),
        _ => format!("{section}\n\n"),
    };
    title + &markdown(head, &rows)
}

/// Formats a Markdown table with aligned columns; all but the first are aligned to the right.
pub fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..head.len())
        .map(|column| all().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let cell = |(column, text): (usize, &String)| match column {
            0 => format!("{text:width$}", width = widths[column]),
            _ => format!("{text:>width$}", width = widths[column]),
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |(column, width): (usize, &usize)| match column {
        0 => "-".repeat(width + 2),
        _ => format!("{}:", "-".repeat(width + 1)),
    };
    let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{}|\n{body}", line(head), rules.join("|"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_table_has_a_column_a_variant() {
        let text = table(&example(&[1234.0], &[5.0]), false);
        let expected = "\
| counter        | vanilla | tollfree |
|----------------|--------:|---------:|
| shootdown_irqs |   1,234 |        5 |
| walks          |       7 |        7 |
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_comparison_says_by_how_much() {
        let text = compared(&example(&[100.0; 5], &[2.0; 5]), false);
        assert!(text.contains("-98.0 % [-98.0 %, -98.0 %]"), "{text}");
        // With one run the noise is unknown.
        let text = compared(&example(&[100.0], &[2.0]), false);
        assert!(
            text.contains("|             -98.0 %") || text.contains("| -98.0 % |"),
            "{text}"
        );
    }

    #[test]
    fn what_the_first_variant_lacks_is_shown_without_a_change() {
        let mut results = example(&[100.0], &[2.0]);
        results.results[1].section = "other".to_owned();
        let text = compared(&results, false);
        assert!(text.contains("other") && !text.contains('%'), "{text}");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(-1234.0), "-1,234");
        assert_eq!(number(999.0), "999");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(1.5), "1.500");
    }
}
