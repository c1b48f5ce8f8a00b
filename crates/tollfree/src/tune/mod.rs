// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: finds out whether and where huge pages pay, and what to do about it.
//!
//! | file | holds |
//! |---|---|
//! | [`decide`] | the five steps and their early ends (pure, behind a trait) |
//! | [`budget`] | the division of the time limit (pure) |
//! | [`findings`] | the answer, as `tune --json` prints it |
//! | [`experiment`] | the machine behind the trait |
//! | [`live`] | `--pid`: a running process |
//! | [`directory`] | the directory of the results |
//! | [`resume`] | `--resume`: the state of an earlier tune |
//! | [`text`] | the answer as text |
//! | [`page`] | the answer as report.html |

pub mod budget;
pub mod decide;
pub mod directory;
pub mod experiment;
pub mod findings;
pub mod live;
pub mod page;
pub mod resume;
pub mod text;
pub mod today;

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
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_many_pairs_is_narrowed_and_one_of_few_is_widened() {
        let interval = Interval {
            median: 1.2,
            low: 1.1,
            high: 1.4,
        };
        let of = |pairs| narrowed(&interval, pairs).unwrap();
        assert!(narrowed(&interval, 1).is_none());
        let many = of(20);
        assert_eq!(many.median, 1.2);
        assert!(1.1 < many.low && many.low < 1.2 && 1.2 < many.high && many.high < 1.4);
        let few = of(2);
        assert_eq!(few.median, 1.2);
        assert!(few.low < 1.1 && few.high > 1.4);
        let widths = [2, 3, 4, 5, 6].map(|pairs| of(pairs).high - of(pairs).low);
        assert!(widths.is_sorted_by(|a, b| a > b), "{widths:?}");
    }
}
