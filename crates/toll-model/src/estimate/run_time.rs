// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a run, and the speed-up that a saved time gives.

use super::options::Options;
use crate::plan::Estimate;
use crate::profile::Profile;

/// Upper bound of the share of a run that huge pages save.
pub(super) const MAX_SHARE: f64 = 0.9;
/// Time of one instruction without walks, for runs that were not timed (low, median, high), ns:
/// 2.8, 1.1 and 0.3 instructions per cycle at 3 GHz.
const INSTRUCTION_NS: [f64; 3] = [0.12, 0.3, 1.1];
/// Share of a run in walks if the run's time is unknown: CBMM's five programs have 3, 7, 11, 18 and
/// 41 %.
const WALK_SHARE: [f64; 3] = [0.03, 0.11, 0.41];
/// One timed run predicts another within this share.
const ONE_RUN: f64 = 0.05;
/// Minimum run-to-run uncertainty of a measured speed-up. An assumption, from comparisons of equal
/// runs on virtual machines.
const RUN_TO_RUN: f64 = 0.015;
/// The largest speed-up that is predicted.
const MAX_SPEEDUP: f64 = 1.0 / (1.0 - MAX_SHARE);

/// Returns the time of one run without the plan, from the best available source;
/// `overhead` is its time in walks.
pub(super) fn baseline(
    profile: &Profile,
    options: Options,
    overhead: Estimate,
) -> Option<Estimate> {
    let positive = |ns: &f64| ns.is_finite() && *ns > 0.0;
    if let Some(ns) = options.baseline_ns.filter(positive) {
        return Some(Estimate::exact(ns));
    }
    if let Some(ns) = profile.native_ns.map(|ns| ns as f64).filter(positive) {
        return Some(Estimate {
            median: ns,
            low: ns * (1.0 - ONE_RUN),
            high: ns * (1.0 + ONE_RUN),
        });
    }
    let instructions = profile.instructions.filter(|&count| count > 0)? as f64;
    let [low, median, high] = INSTRUCTION_NS.map(|ns| ns * instructions + overhead.median);
    Some(Estimate { median, low, high })
}

/// Returns the time before / after for a saved time and a baseline. Without a baseline, it is
/// derived from `share`, the share of the full benefit.
pub(super) fn speedup(
    saved: Estimate,
    baseline: Option<Estimate>,
    share: f64,
    repeats: f64,
) -> Estimate {
    let part = match baseline {
        Some(run) => Estimate {
            median: saved.median / run.median,
            low: (saved.low / run.high).min(saved.low / run.low),
            high: (saved.high / run.low).max(saved.high / run.high),
        },
        None => Estimate {
            median: WALK_SHARE[1] * share,
            low: 0.0,
            high: WALK_SHARE[2] * share,
        },
    };
    let ratio = |part: f64| 1.0 / (1.0 - part.clamp(-9.0, MAX_SHARE));
    let median = ratio(part.median);
    // Ratios of times have multiplicative errors.
    let doubt = |end: f64| (end / median).ln().hypot(repeats.max(RUN_TO_RUN)).exp();
    Estimate {
        median,
        low: median / doubt(ratio(part.low)),
        high: (median * doubt(ratio(part.high))).min(MAX_SPEEDUP.max(median)),
    }
}
