// SPDX-License-Identifier: MIT OR Apache-2.0
//! The speed-up of one variant over another, with a percentile bootstrap.

use super::interval::Interval;
use super::order::{deviation, median, median_in_place, pseudo_median, quantile, spread};
use super::students_t::{expanded_tail, student_t_upper};
use crate::random::Random;

/// Resamples of one bootstrap.
const RESAMPLES: usize = 4000;
/// Seed of every bootstrap (any fixed number).
const SEED: u64 = 0x746f_6c6c_6672_6565;

/// Returns the speed-up of `plan` over `none` in interleaved rounds, with its bootstrap interval:
/// above 1, the plan takes less time. Entry i of both belongs to round i.
///
/// `confidence` is the probability that such an interval contains the true ratio (0.95, for
/// example). `None` if there is no round, the lengths differ, or a value is not a positive finite
/// number. A single round gives no information about noise: its interval is `0 ..= infinity`.
pub fn ratio_of_rounds(none: &[f64], plan: &[f64], confidence: f64) -> Option<Interval> {
    if !are_times(none) || !are_times(plan) || none.len() != plan.len() {
        return None;
    }
    let logs: Vec<f64> = none.iter().zip(plan).map(|(a, b)| (a / b).ln()).collect();
    let center = pseudo_median(&logs, &mut Vec::new())?.exp();
    Some(interval(center, resample_rounds(&logs), confidence))
}

/// Returns `median(none) / median(plan)` of runs that were not interleaved, with its bootstrap
/// interval; otherwise as [`ratio_of_rounds`].
pub fn ratio_of_medians(none: &[f64], plan: &[f64], confidence: f64) -> Option<Interval> {
    if !are_times(none) || !are_times(plan) {
        return None;
    }
    let center = median(none)? / median(plan)?;
    Some(interval(center, resample_apart(none, plan), confidence))
}

fn are_times(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite() && *v > 0.0)
}

/// Resampled ratios, the number of runs, and the standard error of their logarithm's mean.
struct Drawn {
    ratios: Vec<f64>,
    runs: usize,
    error: f64,
}

fn interval(center: f64, mut drawn: Drawn, confidence: f64) -> Interval {
    if drawn.runs < 2 {
        return Interval {
            median: center,
            low: 0.0,
            high: f64::INFINITY,
        };
    }
    drawn.ratios.sort_unstable_by(f64::total_cmp);
    let miss = 1.0 - confidence;
    let tail = expanded_tail(miss, drawn.runs);
    let mut got = Interval {
        median: center,
        low: quantile(&drawn.ratios, tail).min(center),
        high: quantile(&drawn.ratios, 1.0 - tail).max(center),
    };
    // Outside the range of the resamples: use Student's interval.
    if tail * (RESAMPLES as f64) < 1.0 {
        let reach = (student_t_upper(miss / 2.0, drawn.runs as f64 - 1.0) * drawn.error).exp();
        got.low = got.low.min(center / reach);
        got.high = got.high.max(center * reach);
    }
    got
}

/// Rounds are resampled as a whole; the noise is that of the log ratio within a round.
fn resample_rounds(logs: &[f64]) -> Drawn {
    let n = logs.len();
    let noise = spread(logs) / (n as f64).sqrt();
    let error = deviation(logs) / (n as f64).sqrt();
    let mut random = Random::new(SEED);
    let (mut draw, mut means) = (vec![0.0; n], Vec::new());
    let mut one = || {
        for slot in &mut draw {
            *slot = logs[random.below(n)] + noise * random.normals().0;
        }
        pseudo_median(&draw, &mut means).unwrap_or(0.0).exp()
    };
    Drawn {
        ratios: (0..RESAMPLES).map(|_| one()).collect(),
        runs: n,
        error,
    }
}

/// Each variant is resampled separately, with its own noise.
fn resample_apart(none: &[f64], plan: &[f64]) -> Drawn {
    let mut random = Random::new(SEED);
    let mut variant = |values: &[f64]| -> Vec<f64> {
        let n = values.len();
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let noise = spread(&logs) / (n as f64).sqrt();
        let mut draw = vec![0.0; n];
        let mut one = || {
            for slot in &mut draw {
                *slot = values[random.below(n)] * (noise * random.normals().0).exp();
            }
            median_in_place(&mut draw).unwrap_or(1.0)
        };
        (0..RESAMPLES).map(|_| one()).collect()
    };
    let before = variant(none);
    let after = variant(plan);
    let error = |values: &[f64]| {
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        deviation(&logs) / (logs.len() as f64).sqrt()
    };
    Drawn {
        ratios: before.iter().zip(&after).map(|(a, b)| a / b).collect(),
        runs: none.len().min(plan.len()),
        error: error(none).hypot(error(plan)),
    }
}
