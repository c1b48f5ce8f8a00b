// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement as evidence for the model.

use toll_model::plan::Estimate;
use toll_model::stats::Interval;

/// The measurement of `pairs` pairs of runs, with the 80 % interval that the model uses. On the
/// scale of ratios, the ends are taken for quantiles of a normal distribution: those of a 95 %
/// interval. With few pairs, no interval covers more than the range, which contains the median with
/// probability 1 - 2^(1 - pairs) only. `None` below two pairs.
pub fn narrowed(interval: &Interval, pairs: u32) -> Option<Estimate> {
    const Z80: f64 = 1.2816;
    // Two-sided quantiles of 50, 75, 87.5, 93.75 and 95 %.
    let z = match pairs {
        0 | 1 => return None,
        2 => 0.6745,
        3 => 1.1503,
        4 => 1.5341,
        5 => 1.8627,
        _ => 1.9600,
    };
    let end = |end: f64| interval.median * (end / interval.median).powf(Z80 / z);
    Some(Estimate {
        median: interval.median,
        low: end(interval.low),
        high: end(interval.high),
    })
}

#[cfg(test)]
mod tests;
