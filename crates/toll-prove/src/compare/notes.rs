// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes for the reader of a result.

use toll_model::stats::Verdict;

use super::outputs::OutputCheck;
use super::result::Comparison;
use super::sample::Resource;
use super::schedule::{Runs, Stopped};
use crate::ratio;

/// The notes on a result.
pub fn notes(result: &Comparison, runs: &Runs) -> Vec<String> {
    let mut notes = Vec::new();
    match result.stopped {
        Stopped::TooLong => notes.push(
            "one round of all variants takes longer than the time limit; raise it with --within"
                .to_owned(),
        ),
        Stopped::Time if result.pairs < 2 => notes.push(format!(
            "the time limit sufficed for {} counted round(s); raise it with --within",
            result.pairs
        )),
        Stopped::Interrupted => notes.push("interrupted: the runs so far are kept".to_owned()),
        _ => {}
    }
    if runs.rounds() == 1 {
        notes.push("only one round: it is not warmed up, and the noise is unknown".to_owned());
    }
    match &result.output {
        OutputCheck::Varies { variant, difference } => notes.push(format!(
            "the program's output varies between runs (variant {variant}: {difference}), so whether \
             the variants print the same was not checked"
        )),
        OutputCheck::DiffersBetweenVariants { variant, difference } => notes.push(format!(
            "THE OUTPUT OF VARIANT {variant} DIFFERS FROM THAT OF VARIANT {}: {difference}",
            result.variants[0].name
        )),
        OutputCheck::Same | OutputCheck::NotChecked { .. } => {}
    }
    if let Some(status) = result.status.filter(|status| *status != 0) {
        notes.push(format!("the program ends with status {status} in each run"));
    }
    let unseen = matches!(result.verdict, Verdict::CannotTell | Verdict::NoDifference);
    if unseen && result.cpu_verdict() == Verdict::Faster {
        if let Some(cpu) = result
            .cpu_speedup
            .filter(|_| result.resource == Resource::Elapsed)
        {
            notes.push(format!(
                "it uses less CPU time ({}), but no gain in elapsed time is measurable",
                ratio::speedup(&cpu)
            ));
        }
    }
    notes
}
