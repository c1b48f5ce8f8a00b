// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles of Student's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Returns the t with probability `p` above it, for `pairs` pairs; infinite below two. Beyond 200
/// degrees of freedom it changes by less than 1 %.
pub(super) fn student_t(p: f64, pairs: u32) -> f64 {
    match pairs {
        0 | 1 => f64::INFINITY,
        _ => student_t_upper(p, f64::from(pairs - 1).min(200.0)),
    }
}

/// Returns the t with probability `p` above it, for at least one degree of freedom.
pub(super) fn student_t_upper(p: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    -student.inverse_cdf(p)
}

/// Returns the share to cut off at each end for `n` runs so that the interval is as wide as with
/// Student's t and n - 1 degrees of freedom: Phi(-t * sqrt(n / (n - 1))).
pub(super) fn expanded_tail(miss: f64, n: usize) -> f64 {
    let n = n as f64;
    Normal::standard().cdf(-student_t_upper(miss / 2.0, n - 1.0) * (n / (n - 1.0)).sqrt())
}
