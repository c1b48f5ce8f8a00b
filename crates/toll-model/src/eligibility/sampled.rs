// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows from a sample of huge pages, and the pace of khugepaged.

use crate::PAGE;

/// Bytes with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub bytes: f64,
    pub low: f64,
    pub high: f64,
}

/// Extrapolates from the bytes found in some of `regions` to all of them; the regions were chosen at
/// random, without replacement. The interval is that of a mean (normal distribution) with the
/// correction for a finite population; a sample of all has none.
pub fn extrapolate(regions: usize, sample: &[u64]) -> Option<Estimate> {
    const NORMAL: f64 = 1.96;
    let (all, read) = (regions as f64, sample.len() as f64);
    let found: f64 = sample.iter().map(|bytes| *bytes as f64).sum();
    if sample.is_empty() {
        return None;
    }
    let mean = found / read;
    let squares: f64 = sample.iter().map(|it| (*it as f64 - mean).powi(2)).sum();
    let deviation = (squares / (read - 1.0).max(1.0)).sqrt();
    let finite = (1.0 - read / all).max(0.0);
    let margin = NORMAL * all * deviation / read.sqrt() * finite.sqrt();
    let bytes = mean * all;
    Some(Estimate {
        bytes,
        low: (bytes - margin).max(found),
        high: bytes + margin,
    })
}

/// Bytes that khugepaged looks at per second, without the time of the work itself; `None` if it
/// does not sleep between its looks, or looks at nothing.
pub fn scan_rate(pages_to_scan: u64, sleep_ms: u64) -> Option<f64> {
    let seconds = sleep_ms as f64 / 1e3;
    (pages_to_scan > 0 && sleep_ms > 0).then(|| (pages_to_scan * PAGE) as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_all_is_exact() {
        let all = extrapolate(3, &[0, 10, 20]).unwrap();
        assert_eq!((all.bytes, all.low, all.high), (30.0, 30.0, 30.0));
        assert_eq!(extrapolate(3, &[]), None);
    }

    #[test]
    fn a_sample_has_an_interval_that_holds_the_truth() {
        let truth: Vec<u64> = (0..10_000u64).map(|n| n * 7919 % 1000).collect();
        let sum: u64 = truth.iter().sum();
        let some = extrapolate(truth.len(), &truth[..256]).unwrap();
        assert!(
            some.low < sum as f64 && (sum as f64) < some.high,
            "{some:?}"
        );
        assert!(some.high - some.low < sum as f64 * 0.2, "{some:?}");
        // What was found is there.
        let found: u64 = truth[..2].iter().sum();
        assert!(extrapolate(10_000, &truth[..2]).unwrap().low >= found as f64);
    }

    #[test]
    fn the_default_pace_is_1_6_mib_per_second() {
        assert_eq!(scan_rate(4096, 10_000), Some(16.0 * 1024.0 * 1024.0 / 10.0));
        assert_eq!(scan_rate(0, 10_000), None);
        assert_eq!(scan_rate(4096, 0), None);
    }
}
