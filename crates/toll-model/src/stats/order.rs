// SPDX-License-Identifier: MIT OR Apache-2.0
//! Medians, quantiles and spread.

/// All pairs are used up to twice this number of rounds.
const REACH: usize = 16;

/// Returns the median; `None` for an empty slice. Values must not be NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_in_place(&mut sorted)
}

pub(super) fn median_in_place(values: &mut [f64]) -> Option<f64> {
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
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Returns the median of the means of all pairs of values, including each with itself; for many
/// values, of pairs at most [`REACH`] places apart, which is as precise and not quadratic. `None`
/// for an empty slice. `means` is a scratch buffer.
pub(super) fn pseudo_median(values: &[f64], means: &mut Vec<f64>) -> Option<f64> {
    let n = values.len();
    means.clear();
    for apart in 0..=(n / 2).min(REACH) {
        // At a distance of half the circle, a full turn would meet each pair twice.
        let firsts = if 2 * apart == n { apart } else { n };
        means.extend((0..firsts).map(|i| (values[i] + values[(i + apart) % n]) / 2.0));
    }
    median_in_place(means)
}

/// Returns a robust standard deviation: the smaller of the sample's and the one derived from the
/// quartiles (as in kernel density estimation).
pub(super) fn spread(values: &[f64]) -> f64 {
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
pub(super) fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}
