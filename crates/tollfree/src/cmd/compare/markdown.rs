// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as Markdown, for a pull request.

use std::fmt::Write;
use std::thread::available_parallelism;

use toll_linux::sys::{self, Thp};
use toll_linux::{Root, cpu};
use toll_model::numbers;
use toll_prove::compare::Comparison;
use toll_prove::compare::result::{Medians, VariantResult};
use toll_prove::compare::table::{More, verdict};
use toll_prove::ratio::speedup;

/// The whole text: the verdict, a table, the conditions.
pub fn render(comparison: &Comparison, machine: &str) -> String {
    let mut text = format!("**{}**\n", prose(&verdict(comparison, More::Pairs)));
    if let Some(line) = threshold(comparison) {
        let _ = write!(text, "\n{line}\n");
    }
    let _ = write!(
        text,
        "\n{}\n{}\n",
        table(comparison),
        legend(comparison, machine)
    );
    for note in &comparison.notes {
        let _ = write!(text, "\n- {}", prose(note));
    }
    if !comparison.notes.is_empty() {
        text.push('\n');
    }
    text
}

/// The machine in one line, without its name.
pub fn machine(root: &Root) -> String {
    let cpus = available_parallelism().map_or(1, usize::from);
    let thp = Thp::read(root).map_or("none".to_owned(), |thp| thp.mode.to_string());
    format!(
        "{}, {}, Linux {}, transparent huge pages: {thp}",
        cpu::model(root),
        numbers::of(cpus, "CPU"),
        sys::kernel_release(root)
    )
}

fn table(comparison: &Comparison) -> String {
    let has_metric = |it: &VariantResult| it.median.as_ref().is_some_and(|m| m.metric.is_some());
    let metric = comparison.variants.iter().any(has_metric);
    let mut columns = vec!["elapsed", "CPU time", "memory", "speed-up (95 % interval)"];
    if metric {
        columns.insert(0, "metric");
    }
    let mut text = format!("| variant | {} |\n", columns.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(columns.len()));
    for variant in &comparison.variants {
        let cells = match &variant.median {
            Some(median) => cells(variant, median, metric),
            None => vec!["no complete run".to_owned(); 1],
        };
        let _ = writeln!(text, "| {} | {} |", name(variant), cells.join(" | "));
    }
    text
}

fn cells(variant: &VariantResult, median: &Medians, metric: bool) -> Vec<String> {
    let value = |value: f64| format!("{value:.3}");
    let captured = metric.then(|| median.metric.map_or("-".to_owned(), value));
    let ratio = variant.speedup.as_ref().map_or("-".to_owned(), speedup);
    let measured = [
        format!("{:.3} s", median.elapsed),
        format!("{:.3} s", median.cpu),
        numbers::bytes(median.max_rss as u64),
        ratio,
    ];
    captured.into_iter().chain(measured).collect()
}

/// The name of a variant, and what it is.
fn name(variant: &VariantResult) -> String {
    match variant.command {
        Some(_) => format!("{}: {}", variant.name, code(&variant.meaning)),
        None => format!("{}: {}", prose(&variant.name), prose(&variant.meaning)),
    }
}

fn threshold(comparison: &Comparison) -> Option<String> {
    let allowed = comparison.allowed_slowdown_percent?;
    let found = match comparison.too_slow? {
        true => "**Slower than allowed**",
        false => "Not proved to be slower than allowed",
    };
    Some(format!("{found} (`--fail-if-slower {allowed}%`)."))
}

fn legend(comparison: &Comparison, machine: &str) -> String {
    let first = comparison
        .variants
        .first()
        .map_or("", |it| it.name.as_str());
    format!(
        "Medians of {}, run in turn; speed-up: time of {first} / time of the variant. {}.",
        numbers::of(comparison.pairs as usize, "pair"),
        prose(machine)
    )
}

/// A code span in a cell of a table: its fence is longer than each row of backticks in it.
fn code(text: &str) -> String {
    let rows = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(rows.max().unwrap_or(0) + 1);
    let pad = if text.contains('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

/// Text without markup: the characters with a meaning in Markdown are escaped.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
