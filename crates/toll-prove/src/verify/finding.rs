// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the runs say about a claim.

use serde::Serialize;
use toll_model::stats::Interval;

use super::claim::Claim;
use crate::compare::Comparison;
use crate::compare::result::VariantResult;

/// A line of the plan, and its result.
#[derive(Debug, Serialize)]
pub struct Verified {
    pub memory: String,
    pub offset: u64,
    pub length: u64,
    /// Benefit less cost, CPU time.
    pub predicted_ns: f64,
    /// CPU time of a run without the line, minus that with it; absent with fewer than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_ns: Option<Interval>,
    pub verdict: Finding,
}

/// What a measured saving says about the predicted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The line saves time.
    Confirmed,
    /// The line saves no measurable time, although half of the prediction would have been
    /// measurable.
    Contradicted,
    CannotTell,
}

impl Finding {
    pub fn words(self) -> &'static str {
        match self {
            Finding::Confirmed => "confirmed",
            Finding::Contradicted => "contradicted",
            Finding::CannotTell => "cannot tell",
        }
    }
}

/// The result of each claim.
pub fn verified(claims: &[Claim], comparison: &Comparison) -> Vec<Verified> {
    let run_ns = run_ns(comparison);
    let one = |(claim, variant): (&Claim, &VariantResult)| {
        let saved = variant
            .speedup
            .zip(run_ns)
            .and_then(|(speedup, run_ns)| saved(speedup, run_ns));
        Verified {
            memory: claim.memory.clone(),
            offset: claim.offset,
            length: claim.length,
            predicted_ns: claim.predicted_ns,
            verdict: finding(saved.as_ref(), claim.predicted_ns),
            saved_ns: saved,
        }
    };
    claims
        .iter()
        .zip(&comparison.variants[1..])
        .map(one)
        .collect()
}

/// CPU time of a run under the whole plan.
pub fn run_ns(comparison: &Comparison) -> Option<f64> {
    Some(comparison.variants[0].median.as_ref()?.cpu * 1e9)
}

/// Converts the speed-up without a line (below 1: slower) into the time that the line saves.
pub(super) fn saved(without: Interval, run_ns: f64) -> Option<Interval> {
    let longer = |speedup: f64| run_ns * (1.0 / speedup - 1.0);
    (without.low > 0.0).then(|| Interval {
        median: longer(without.median),
        low: longer(without.high),
        high: longer(without.low),
    })
}

pub(super) fn finding(saved: Option<&Interval>, predicted_ns: f64) -> Finding {
    match saved {
        Some(saved) if saved.low > 0.0 => Finding::Confirmed,
        Some(saved) if saved.high < predicted_ns.max(0.0) / 2.0 => Finding::Contradicted,
        _ => Finding::CannotTell,
    }
}
