// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folded stacks: a line for each, as flame graphs take them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::messages;
use toll_model::numbers;
use toll_model::profile::{Profile, SiteRows, Source};
use toll_model::site::SiteKind;

use crate::output;

/// Which stacks are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Of {
    /// Those of the code, if the profile has them, else those of the allocations
    Auto,
    /// The code that misses
    Code,
    /// The calls that allocated the memory with the misses
    Allocations,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Document {
    /// `code` or `allocations`.
    of: &'static str,
    /// Of the whole profile; a stack need not be known for each.
    misses: f64,
    stacks: Vec<Folded>,
}

/// One stack.
#[derive(Debug, PartialEq, Serialize)]
struct Folded {
    /// Outermost first.
    frames: Vec<String>,
    misses: f64,
}

/// Prints the stacks of a profile, and notes on stderr.
///
/// # Errors
/// [`UserError::UnfitFile`] if the wanted stacks are not in the profile.
pub fn print(file: &Path, profile: &Profile, of: Of, json: bool) -> Result<()> {
    let is_code = match of {
        Of::Auto => !profile.stacks.is_empty(),
        Of::Code if profile.stacks.is_empty() => return Err(without_code(file).into()),
        Of::Code => true,
        Of::Allocations => false,
    };
    let (name, stacks) = match is_code {
        true => ("code", code(profile)),
        false => ("allocations", allocations(profile)),
    };
    for note in notes(profile, &stacks, of, is_code) {
        messages::note(format_args!("note: {note}"));
    }
    if json {
        return output::json(&Document {
            of: name,
            misses: profile.misses(),
            stacks,
        });
    }
    output::text(&stacks.iter().filter_map(line).collect::<String>())
}

fn without_code(file: &Path) -> UserError {
    UserError::UnfitFile(format!(
        "{}: has no code stacks: import a recording of `perf mem record -g`, or record with \
         --source perf --stacks",
        file.display()
    ))
}

/// The stacks of the code.
fn code(profile: &Profile) -> Vec<Folded> {
    let stacks = profile.stacks.iter().map(|stack| Folded {
        frames: stack.frames.iter().rev().map(ToString::to_string).collect(),
        misses: stack.misses,
    });
    stacks.filter(|stack| stack.misses > 0.0).collect()
}

/// The call stacks of the allocations, with the misses in their memory; other memory by its name.
fn allocations(profile: &Profile) -> Vec<Folded> {
    let mut sums: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for rows in &profile.sites {
        let misses: f64 = rows.rows.iter().map(|row| row.misses).sum();
        *sums.entry(frames_of(rows)).or_default() += misses;
    }
    let counted = sums.into_iter().filter(|(_, misses)| *misses > 0.0);
    let mut stacks: Vec<Folded> = counted
        .map(|(frames, misses)| Folded { frames, misses })
        .collect();
    stacks.sort_by(|a, b| b.misses.total_cmp(&a.misses));
    stacks
}

fn frames_of(rows: &SiteRows) -> Vec<String> {
    match &rows.site.kind {
        SiteKind::Alloc { frames, .. } if !frames.is_empty() => {
            frames.iter().rev().map(|frame| frame.name()).collect()
        }
        SiteKind::Alloc { .. } => vec!["[unknown]".to_owned()],
        _ => vec![format!("[{}]", rows.site)],
    }
}

/// What the reader has to know to understand the stacks.
fn notes(profile: &Profile, stacks: &[Folded], of: Of, is_code: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_code {
        let why = match of {
            Of::Auto => "the profile has no code stacks: ",
            _ => "",
        };
        notes.push(format!(
            "{why}these are the calls that allocated the memory with the misses, not the code that misses"
        ));
    }
    if profile.source == Source::Accessed {
        notes.push("counts are touches of pages, an upper bound for misses".to_owned());
    }
    if is_code && stacks.iter().all(|stack| stack.frames.len() == 1) {
        notes.push("the recording has no call chains (`perf mem record -g`): each stack is the function that accessed the memory".to_owned());
    }
    let (all, with) = (
        profile.misses(),
        stacks.iter().map(|it| it.misses).sum::<f64>(),
    );
    if is_code && with < all {
        let share = numbers::percent(1.0 - with / all);
        notes.push(format!("no stack is known for {share} of the misses"));
    }
    notes
}

/// `main;insert;grow 1234`; nothing for less than half a miss.
fn line(stack: &Folded) -> Option<String> {
    let count = stack.misses.round() as u64;
    let frames: Vec<String> = stack.frames.iter().map(|frame| escaped(frame)).collect();
    (count > 0).then(|| format!("{} {count}\n", frames.join(";")))
}

/// A frame without the characters that separate frames and counts.
fn escaped(frame: &str) -> String {
    let replaced = |c: char| match c {
        ';' => ':',
        c if c.is_whitespace() => '_',
        c if c.is_control() => '?',
        c => c,
    };
    match frame.is_empty() {
        true => "[unknown]".to_owned(),
        false => frame.chars().map(replaced).collect(),
    }
}

#[cfg(test)]
mod tests;
