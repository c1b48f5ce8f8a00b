// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer as text, at the end of `tollfree tune`.

mod live;

use std::time::Duration;

use toll_act::permanent::Permanent;

use super::budget::{spent_words, words};
use super::findings::{Advice, Answer, Findings, PLAN_FILE, text_file};
use super::kinds::Kind;
use crate::compare::table;
use crate::ratio::{self, with_interval};

/// Maximum number of lines of memory.
const MEMORY_SHOWN: usize = 5;

/// The closing text.
pub fn render(found: &Findings) -> String {
    let mut text = String::new();
    let compared = found.comparison.as_ref().or(found.upper_bound.as_ref());
    let alternated = found.live.as_ref();
    if let Some(live) = alternated {
        text += &live::render(found, live);
    } else if let Some(comparison) = compared.filter(|it| it.pairs > 0) {
        text += &format!("{}\n", table::render(comparison, table::More::Within));
    }
    // Some reasons include it already.
    let today = found.today.as_ref();
    if let Some(today) = today.filter(|today| !found.reason.contains(&today.text())) {
        text += &format!("As it is: {}.\n", today.now());
    }
    // The headline already contains "Interrupted".
    let reason = match found.complete {
        true => found.reason.as_str(),
        false => found
            .reason
            .trim_start_matches("interrupted")
            .trim_start_matches([' ', ';']),
    };
    text += &format!("{}: {reason}.\n", headline(found));
    if let Some(predicted) = &found.predicted_speedup {
        text += &format!(
            "  predicted  {} (80 % interval)\n",
            ratio::estimate(predicted)
        );
    }
    text += &alternated.map_or_else(String::new, |live| live::now(found, live));
    let proven = proven(found);
    if found.advice == Advice::Apply {
        if proven {
            text += &memory(found);
            text += &now(found);
        }
        text += &changes(&found.permanent);
    }
    text += &settle(found);
    if let Some(warming) = &found.warming {
        text += &format!("  warming    {}\n", warming.text());
    }
    if let Some(process) = &found.process {
        text += &format!("  process    {process}\n");
    }
    let spent = spent_words(&found.spent);
    if !spent.is_empty() {
        text += &format!("  time       {spent}\n");
    }
    text += &kinds(found);
    for note in &found.notes {
        text += &format!("  note       {note}\n");
    }
    if let Some(report) = &found.report {
        text += &format!("  report     {}\n", report.display());
    }
    text
}

/// Whether the plan itself is proved to gain, within the memory limit.
fn proven(found: &Findings) -> bool {
    if found.best.is_some() {
        return true;
    }
    let plan = found.comparison.as_ref().and_then(|c| c.variant("plan"));
    match plan.filter(|variant| variant.proven.is_some()) {
        Some(variant) => variant.gains(),
        None => found.speedup.is_some_and(|interval| interval.is_gain()),
    }
}

/// `Apply it`, `Do nothing`, or the state otherwise.
pub fn headline(found: &Findings) -> &'static str {
    match (found.complete, found.answer) {
        (false, _) => "Interrupted",
        (true, Answer::Apply) => "Apply it",
        (true, Answer::Undecided) => "Undecided",
        (true, Answer::DoNothing) => "Do nothing",
    }
}

/// The time and the command that would settle it.
fn settle(found: &Findings) -> String {
    let Some(settle) = &found.settle else {
        return String::new();
    };
    let time = words(Duration::from_secs_f64(settle.seconds));
    format!(
        "  to settle  about {time} more: {} -- ...\n",
        settle.command
    )
}

fn memory(found: &Findings) -> String {
    let shown = found.memory.iter().take(MEMORY_SHOWN);
    shown.map(|line| format!("  memory     {line}\n")).collect()
}

/// The kinds of large pages that the variants have, and why not the others.
fn kinds(found: &Findings) -> String {
    let line = |kind: &Kind| {
        let tried = if kind.tried { "tried" } else { "not tried" };
        format!("  pages      {}: {tried}: {}\n", kind.pages, kind.reason)
    };
    found.kinds.iter().map(line).collect()
}

/// Each change by name and number; the best with its text, the others are in the report.
fn changes(permanent: &[Permanent]) -> String {
    let line = |change: &Permanent| {
        let number = match &change.measured {
            Some(interval) => format!("measured {} times as fast", with_interval(interval)),
            None => "not measured".to_owned(),
        };
        format!("  permanent  {} ({number})\n", change.change)
    };
    permanent.iter().map(line).collect()
}

fn now(found: &Findings) -> String {
    let file = match found.best.as_deref() {
        Some("plan") | None => found
            .planned_bytes
            .filter(|bytes| *bytes > 0)
            .map(|_| PLAN_FILE),
        Some(other) => Some(text_file(other)),
    };
    match (&found.directory, file) {
        (Some(directory), Some(file)) => format!(
            "  right now  tollfree run --plan {} -- ...\n",
            directory.join(file).display()
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
