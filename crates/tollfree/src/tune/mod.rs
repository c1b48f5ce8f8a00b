// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main job: does it pay, where, and what is to be done?
//!
//! | file | holds |
//! |---|---|
//! | [`decide`] | the five steps and their early ends (pure, behind a trait) |
//! | [`budget`] | how the time limit is shared out (pure) |
//! | [`findings`] | the answer, as `tune --json` prints it |
//! | [`bench`] | the machine behind the trait |
//! | [`live`] | `--pid`: a process that runs already |
//! | [`folder`] | where results are written |
//! | [`text`] | the answer for people |
//! | [`page`] | the answer as report.html |

pub mod bench;
pub mod budget;
pub mod decide;
pub mod findings;
pub mod folder;
pub mod live;
pub mod page;
pub mod text;

use toll_model::plan::Estimate;
use toll_model::stats::Interval;

/// A measured 95 % interval as the 80 % interval that the model works with: of a normal
/// distribution it is 1.2816 / 1.96 as wide, on the scale of ratios.
pub fn narrowed(interval: &Interval) -> Estimate {
    const SHARE: f64 = 1.2816 / 1.96;
    let end = |end: f64| interval.median * (end / interval.median).powf(SHARE);
    Estimate {
        median: interval.median,
        low: end(interval.low),
        high: end(interval.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_interval_lies_within_the_wider() {
        let got = narrowed(&Interval {
            median: 1.2,
            low: 1.1,
            high: 1.4,
        });
        assert_eq!(got.median, 1.2);
        assert!(1.1 < got.low && got.low < 1.2 && 1.2 < got.high && got.high < 1.4);
    }
}
