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

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Resamples of one bootstrap.
const RESAMPLES: usize = 4000;
/// All pairs are used up to twice this number of rounds.
const REACH: usize = 16;
/// Seed of every bootstrap (any fixed number).
const SEED: u64 = 0x746f_6c6c_6672_6565;

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
fn verdict_quantile(pairs: u32) -> f64 {
    student_t(0.025, pairs)
}

/// Returns Student's t for a one-sided probability of [`POWER`].
fn power_quantile(pairs: u32) -> f64 {
    student_t(1.0 - POWER, pairs)
}

/// Returns the t with probability `p` above it, for `pairs` pairs; infinite below two. Beyond 200
/// degrees of freedom it changes by less than 1 %.
fn student_t(p: f64, pairs: u32) -> f64 {
    match pairs {
        0 | 1 => f64::INFINITY,
        _ => student_t_upper(p, f64::from(pairs - 1).min(200.0)),
    }
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

/// Returns the median; `None` for an empty slice. Values must not be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_in_place(&mut sorted)
}

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

/// Returns Spearman's rank correlation; ties share their mean rank. `None` if the lengths differ,
/// fewer than two values are given, or one side is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    pearson(&ranks(a), &ranks(b))
}

/// Rounds are resampled as a whole; the noise is that of the log ratio within a round.
fn resample_rounds(logs: &[f64]) -> Drawn {
    let n = logs.len();
    let noise = spread(logs) / (n as f64).sqrt();
    let error = deviation(logs) / (n as f64).sqrt();
    let mut random = Random(SEED);
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
    let mut random = Random(SEED);
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

/// Returns the median of the means of all pairs of values, including each with itself; for many
/// values, of pairs at most [`REACH`] places apart, which is as precise and not quadratic. `None`
/// for an empty slice. `means` is a scratch buffer.
fn pseudo_median(values: &[f64], means: &mut Vec<f64>) -> Option<f64> {
    let n = values.len();
    means.clear();
    for apart in 0..=(n / 2).min(REACH) {
        // At a distance of half the circle, a full turn would meet each pair twice.
        let firsts = if 2 * apart == n { apart } else { n };
        means.extend((0..firsts).map(|i| (values[i] + values[(i + apart) % n]) / 2.0));
    }
    median_in_place(means)
}

fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, &mut middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    Some(match n % 2 {
        1 => middle,
        _ => (below.iter().copied().fold(f64::MIN, f64::max) + middle) / 2.0,
    })
}

/// Returns the value below which a share `p` of the sorted values lies (linear interpolation).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Returns a robust standard deviation: the smaller of the sample's and the one derived from the
/// quartiles (as in kernel density estimation).
fn spread(values: &[f64]) -> f64 {
    let deviation = deviation(values);
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let quartiles = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 1.349;
    if quartiles > 0.0 {
        deviation.min(quartiles)
    } else {
        deviation
    }
}

/// Returns the standard deviation of a sample; not finite for a single value.
fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// Returns the share to cut off at each end for `n` runs so that the interval is as wide as with
/// Student's t and n - 1 degrees of freedom: Phi(-t * sqrt(n / (n - 1))).
fn expanded_tail(miss: f64, n: usize) -> f64 {
    let n = n as f64;
    Normal::standard().cdf(-student_t_upper(miss / 2.0, n - 1.0) * (n / (n - 1.0)).sqrt())
}

/// Returns the t with probability `p` above it, for at least one degree of freedom.
fn student_t_upper(p: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    -student.inverse_cdf(p)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = |&&i: &&usize| values[i] == values[order[first]];
        let count = order[first..].iter().take_while(same).count().max(1);
        for &i in &order[first..first + count] {
            ranks[i] = first as f64 + (count - 1) as f64 / 2.0;
        }
        first += count;
    }
    ranks
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (dx, dy) = (x - mean_a, y - mean_b);
        ab += dx * dy;
        aa += dx * dx;
        bb += dy * dy;
    }
    (aa > 0.0 && bb > 0.0).then(|| (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0))
}

/// SplitMix64: small, fast, and sufficient for resampling.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..n`.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Returns a number in `0..1`, never 0.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns two independent normal numbers (Box and Muller).
    fn normals(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.unit()).sin_cos();
        (radius * cosine, radius * sine)
    }
}

#[cfg(test)]
mod tests;
