// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as text.

use comfy_table::{CellAlignment, Table};
use toll_model::units::{format_ns, format_size};

use super::finding::{Verified, run_ns};
use crate::compare::{Comparison, table};

/// A table of the lines, the time of a run, and notes.
pub fn render(comparison: &Comparison, lines: &[Verified]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["memory", "from", "size", "predicted", "saves", "verdict"]);
    for line in lines {
        table.add_row([
            line.memory.clone(),
            format!("{:#x}", line.offset),
            format_size(line.length),
            format_ns(line.predicted_ns),
            line.saved_ns.as_ref().map_or("-".to_owned(), |saved| {
                let [median, low, high] = [saved.median, saved.low, saved.high].map(format_ns);
                format!("{median} ({low} to {high})")
            }),
            line.verdict.words().to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{table}\n\n");
    if let Some(run_ns) = run_ns(comparison) {
        text += &format!(
            "CPU time, {:.0} % intervals, {} pairs; a run under the whole plan takes {}\n",
            comparison.confidence * 100.0,
            comparison.pairs,
            format_ns(run_ns)
        );
    }
    let warmed = table::warmed(comparison).map(|line| format!("{line}\n"));
    text += &warmed.unwrap_or_default();
    let notes = comparison
        .notes
        .iter()
        .map(|note| format!("note: {note}\n"));
    text + &notes.collect::<String>()
}
