// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval of a speed-up, its verdict, and the number of runs for one.

use serde::{Deserialize, Serialize};

use super::students_t::student_t;

/// Smallest relevant effect. A chosen threshold, not a measurement.
pub const SMALLEST_EFFECT: f64 = 0.02;

/// Power: the probability of detecting an effect that is called visible, and of reaching a verdict
/// with the suggested number of pairs. The usual choice.
pub const POWER: f64 = 0.8;
/// Upper bound of the suggested number of pairs.
pub const MOST_PAIRS: u32 = 1_000_000;

/// A measured ratio with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Returns the distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Returns the |speedup - 1| that such runs would have detected with a probability of
    /// [`POWER`]. `self` is the 95 % interval of `pairs` pairs; infinite below two.
    pub fn smallest_visible_effect(&self, pairs: u32) -> f64 {
        self.half() * (1.0 + power_quantile(pairs) / verdict_quantile(pairs))
    }

    /// Returns the longer side.
    fn half(&self) -> f64 {
        (self.median - self.low).max(self.high - self.median)
    }

    /// Whether the whole interval lies within `1 - band ..= 1 + band`.
    pub fn inside(&self, band: f64) -> bool {
        self.low >= 1.0 - band && self.high <= 1.0 + band
    }

    /// Whether the interval includes no difference.
    pub fn holds_one(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }

    /// Whether the interval is narrower than the effect.
    pub fn resolves_effect(&self) -> bool {
        matches!(self.verdict(), Verdict::Faster | Verdict::Slower)
            && self.width() < (self.median - 1.0).abs()
    }

    /// Returns the verdict for this interval of a speed-up. An effect below [`SMALLEST_EFFECT`] is
    /// neither faster nor slower, even if it is significant.
    pub fn verdict(&self) -> Verdict {
        if self.inside(SMALLEST_EFFECT) {
            Verdict::NoDifference
        } else if self.low > 1.0 && self.median >= 1.0 + SMALLEST_EFFECT {
            Verdict::Faster
        } else if self.high < 1.0 && self.median <= 1.0 - SMALLEST_EFFECT {
            Verdict::Slower
        } else {
            Verdict::CannotTell
        }
    }

    /// Whether it shows a relevant gain: [`Verdict::Faster`].
    pub fn is_gain(&self) -> bool {
        self.verdict() == Verdict::Faster
    }

    /// Returns the number of pairs, including those already run, with which the 95 % interval gives
    /// a verdict with a probability of [`POWER`], if the true speed-up is this one's median and the
    /// noise does not change. Less than [`SMALLEST_EFFECT`] from 1 the verdict is
    /// [`Verdict::NoDifference`]. An effect near that threshold needs very many; the result is at
    /// most [`MOST_PAIRS`]. `self` is the interval of `pairs` pairs.
    pub fn pairs_to_settle(&self, pairs: u32) -> u32 {
        let pairs = pairs.max(2);
        // Standard deviation of a pair's ratio.
        let noise = self.half() / verdict_quantile(pairs) * f64::from(pairs).sqrt();
        let effect = (self.median - 1.0).abs();
        let settled = |pairs: u32| {
            let error = noise / f64::from(pairs).sqrt();
            let verdict = verdict_quantile(pairs) * error;
            if effect < SMALLEST_EFFECT {
                // Either end may cross the threshold.
                verdict + student_t(0.5 - POWER / 2.0, pairs) * error <= SMALLEST_EFFECT - effect
            } else {
                let luck = power_quantile(pairs) * error;
                verdict + luck <= effect && luck <= effect - SMALLEST_EFFECT
            }
        };
        let (mut few, mut enough) = (pairs, MOST_PAIRS);
        if settled(few) {
            return few;
        }
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            match settled(middle) {
                true => enough = middle,
                false => few = middle,
            }
        }
        enough
    }
}

/// Returns Student's t for a two-sided 95 % interval of `pairs` pairs.
pub(super) fn verdict_quantile(pairs: u32) -> f64 {
    student_t(0.025, pairs)
}

/// Returns Student's t for a one-sided probability of [`POWER`].
fn power_quantile(pairs: u32) -> f64 {
    student_t(1.0 - POWER, pairs)
}

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Faster,
    Slower,
    /// The whole interval lies within 1 +/- [`SMALLEST_EFFECT`].
    NoDifference,
    CannotTell,
}
