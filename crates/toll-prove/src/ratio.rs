// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ratios with their intervals, as text.

use toll_model::plan::Estimate;
use toll_model::stats::Interval;

/// `1.312x (1.291 to 1.334)`.
pub fn speedup(interval: &Interval) -> String {
    format!(
        "{:.3}x ({:.3} to {:.3})",
        interval.median, interval.low, interval.high
    )
}

/// A prediction in the same format.
pub fn estimate(estimate: &Estimate) -> String {
    format!(
        "{:.3}x ({:.3} to {:.3})",
        estimate.median, estimate.low, estimate.high
    )
}

/// `1.312 (1.291 to 1.334)`.
pub(crate) fn with_interval(interval: &Interval) -> String {
    format!(
        "{:.3} ({:.3} to {:.3})",
        interval.median, interval.low, interval.high
    )
}
