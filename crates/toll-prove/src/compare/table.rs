// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as text.

use comfy_table::{CellAlignment, Table};
use toll_model::numbers;
use toll_model::stats::{MOST_PAIRS, Verdict};

use super::result::{Comparison, VariantResult};
use super::sample::Resource;
use crate::ratio::{estimate, speedup};

/// The legend of the columns of [`variants`].
const COLUMNS: &str = "\
Medians of the counted runs. faults: page faults; huge: most memory in huge pages; memory: most that
was resident; bloat: resident above the first variant; speed-up: time of the first variant / time of this one.
";

/// How a user requests more pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// By number: `-n`.
    Pairs,
    /// Only by a longer time limit.
    Within,
}

/// The whole text: a table, the verdict, the notes.
pub fn render(comparison: &Comparison, more: More) -> String {
    let mut text = format!(
        "{}{COLUMNS}\n{}\n\n{}\n",
        commands(comparison),
        variants(comparison),
        verdict(comparison, more)
    );
    if let Some(predicted) = &comparison.predicted_speedup {
        let measured = comparison.speedup.as_ref().map_or("-".to_owned(), speedup);
        text += &format!(
            "predicted {} (80 %), measured {measured}\n",
            estimate(predicted)
        );
    }
    if let Some(line) = warmed(comparison) {
        text += &format!("{line}\n");
    }
    if let Some(warming) = &comparison.warming {
        text += &format!("{}\n", warming.text());
    }
    for note in &comparison.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// What the two variants are, if they are commands.
fn commands(comparison: &Comparison) -> String {
    let commands = comparison.variants.iter().filter(|it| it.command.is_some());
    let mut text: String = commands
        .map(|it| format!("{}: {}\n", it.name, it.meaning))
        .collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// How memory was warmed before each run, if it was.
pub fn warmed(comparison: &Comparison) -> Option<String> {
    let bytes = comparison.warmed_bytes;
    (bytes > 0).then(|| {
        format!(
            "before each run {} were touched, and freed as the program grew, so that no variant waits for blocks that the host \
             must provide first (--cold disables this)",
            numbers::bytes(bytes)
        )
    })
}

/// One sentence: faster, slower, or what would settle the comparison.
pub fn verdict(comparison: &Comparison, more: More) -> String {
    let what = comparison
        .variants
        .get(1)
        .map_or("", |variant| variant.name.as_str());
    let resource = comparison.resource.name();
    let confidence = comparison.confidence * 100.0;
    let Some(interval) = comparison.main() else {
        return format!(
            "cannot tell: {} pair(s) are too few for an interval",
            comparison.pairs
        );
    };
    let pairs = comparison.pairs;
    let measured = format!(
        "{} in {resource}, {confidence:.0} % interval, {pairs} pairs",
        speedup(&interval)
    );
    match comparison.verdict {
        Verdict::Faster => format!("{what} is faster: {measured}"),
        Verdict::Slower => format!("{what} is SLOWER: {measured}"),
        Verdict::NoDifference => format!("no difference of 2 % or more: {what} {measured}"),
        Verdict::CannotTell if !interval.holds_one() => format!(
            "cannot tell whether the difference reaches 2 %: {what} {measured}{}",
            settle(comparison, more)
        ),
        Verdict::CannotTell => format!(
            "cannot tell: {what} {measured}; such runs detect an effect of {} with a probability of 80 %{}",
            numbers::percent(interval.smallest_visible_effect(pairs)),
            settle(comparison, more)
        ),
    }
}

fn settle(comparison: &Comparison, more: More) -> String {
    match comparison.pairs_to_settle {
        Some(MOST_PAIRS) => "; it is too close to 2 % to be settled by more pairs".to_owned(),
        Some(pairs) if pairs > comparison.pairs => {
            let option = match more {
                More::Pairs => format!(" (-n {pairs})"),
                More::Within => String::new(),
            };
            format!("; about {pairs} pairs{option} would settle it with a probability of 80 %")
        }
        _ => String::new(),
    }
}

fn variants(comparison: &Comparison) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let mut header = vec![
        "variant", "elapsed", "user", "sys", "faults", "huge", "memory", "bloat", "speed-up",
    ];
    let metric = matches!(
        comparison.resource,
        Resource::MetricRate | Resource::MetricTime
    );
    if metric {
        header.insert(1, "metric");
    }
    table.set_header(header);
    for variant in &comparison.variants {
        table.add_row(row(variant, metric));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(variant: &VariantResult, metric: bool) -> Vec<String> {
    let mut row = vec![variant.name.clone()];
    let Some(median) = &variant.median else {
        row.push("no complete run".to_owned());
        return row;
    };
    if metric {
        row.push(
            median
                .metric
                .map_or("-".to_owned(), |value| format!("{value:.3}")),
        );
    }
    let seconds = |value: f64| format!("{value:.3} s");
    row.extend([
        seconds(median.elapsed),
        seconds(median.user),
        seconds(median.sys),
    ]);
    row.push(numbers::count(median.minor_faults + median.major_faults));
    row.push(match median.huge_samples {
        0 => "-".to_owned(),
        _ => numbers::bytes(median.huge_peak as u64),
    });
    row.push(numbers::bytes(median.max_rss as u64));
    row.push(bloat(variant.bloat.unwrap_or(0)));
    row.push(variant.speedup.as_ref().map_or("-".to_owned(), speedup));
    row
}

fn bloat(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "+" };
    format!("{sign}{}", numbers::bytes(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests;
