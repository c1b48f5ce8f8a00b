// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions as text.

use toll_model::numbers::count;
use toll_model::units::format_ns;

use super::change::{Change, Decided, Number};
use crate::cmd::kernel::decisions::{cells, what};
use crate::output;

/// Maximum number of processes; `--json` lists all.
const PROCESSES: usize = 20;

/// Maximum width of a line of numbers, in columns.
const WIDTH: usize = 79;

const HEADER: [&str; 6] = ["decision", "asked", "done", "cost", "saves", "left"];

/// The legend of the columns.
const COLUMNS: &str = "cost, saves: estimates for what was done; left: for what was not";

/// One block of output.
pub fn whole(change: &Change) -> String {
    let since = match change.interval_ns {
        None => "since boot".to_owned(),
        Some(ns) => format!("in {}", format_ns(ns as f64)),
    };
    let mut text = format!("econ is {}; {since}\n{COLUMNS}\n\n", change.mode);
    let mut table = output::table(HEADER);
    for one in &change.decisions {
        table.add_row(cells(what(&one.model).to_owned(), one));
    }
    text += &format!("{table}\n");
    let kept = if change.frozen { ", frozen" } else { "" };
    text += &line(&format!("costs{kept}"), &change.costs, |ns| {
        format_ns(ns as f64)
    });
    text += &line("zeroed blocks", &change.zeroed_blocks, |number| {
        count(number as f64)
    });
    text + &processes(&change.processes)
}

/// Numbers with their changes; empty if there are none.
fn line(name: &str, numbers: &[Number], show: fn(u64) -> String) -> String {
    let one = |number: &Number| {
        let mut said = format!("{} {}", number.name.replace('_', " "), show(number.value));
        if number.change != 0 {
            let sign = if number.change < 0 { '-' } else { '+' };
            said += &format!(" ({sign}{})", show(number.change.unsigned_abs()));
        }
        said
    };
    match numbers {
        [] => String::new(),
        some => wrapped(&format!("{name}:"), some.iter().map(one).collect()),
    }
}

/// A name and its values, wrapped into lines.
fn wrapped(name: &str, words: Vec<String>) -> String {
    let mut text = format!("\n{name}");
    let mut column = name.chars().count();
    let last = words.len().saturating_sub(1);
    for (number, word) in words.into_iter().enumerate() {
        let comma = if number < last { "," } else { "" };
        let length = word.chars().count() + 1 + comma.len();
        if column + length > WIDTH {
            text += "\n ";
            column = 1;
        }
        text += &format!(" {word}{comma}");
        column += length;
    }
    text + "\n"
}

fn processes(all: &[Decided]) -> String {
    if all.is_empty() {
        return "\nno readable process has a profile\n".to_owned();
    }
    let mut table = output::table(HEADER);
    table.set_header(["process"].iter().chain(&HEADER[1..]));
    for process in all.iter().take(PROCESSES) {
        let own = match process.mode.as_str() {
            "default" => String::new(),
            own => format!(", {own}"),
        };
        let name = format!("{} {}{own}", process.pid, process.name);
        table.add_row(cells(name, &process.all()));
    }
    let more = match all.len().saturating_sub(PROCESSES) {
        0 => String::new(),
        more => format!("and {more} more (--json has every one)\n"),
    };
    format!("\n{table}\n{more}")
}

#[cfg(test)]
mod tests;
