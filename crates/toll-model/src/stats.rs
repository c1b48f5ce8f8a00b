// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of interleaved runs: speed-up, interval, and the number of runs for a verdict.
//!
//! **Rounds.** Interleaved runs are compared round by round: the speed-up is the pseudo-median of
//! the rounds' log ratios, the median of the means of all pairs of rounds (Hodges and Lehmann,
//! 1963). A drift that a round's runs share cancels out first, and the estimate is robust against a
//! few outliers and nearly as efficient as a mean under normal noise: the ratio of the variants'
//! medians needs a third to a half more rounds for the same precision (simulated: noise of 6 % a
//! run, a drift of 3 % a round, 5 to 16 rounds).
//!
//! **Interval.** A *percentile* bootstrap. Two corrections give it the right coverage for small
//! numbers of runs: each resample is smoothed (values are scaled by `exp(noise)`, noise of spread /
//! sqrt(n), so that it is not confined to the few values seen), and the percentiles are moved
//! outwards according to Student's t with n - 1 degrees of freedom (the "expanded" percentile
//! interval). With two or three runs that would exceed the range of the resamples: the interval is
//! then at least Student's own, of the logarithms. The tests simulate the coverage.
//!
//! **Deterministic.** The generator has a fixed seed.

mod bootstrap;
mod correlation;
mod interval;
mod order;
mod students_t;

pub use self::bootstrap::{ratio_of_medians, ratio_of_rounds};
pub use self::correlation::spearman;
pub use self::interval::{Interval, MOST_PAIRS, POWER, SMALLEST_EFFECT, Verdict};
pub use self::order::median;

#[cfg(test)]
mod tests;
