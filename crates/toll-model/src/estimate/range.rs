// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic of estimates with an 80 % interval.

use crate::cost::Measured;
use crate::plan::Estimate;

/// Half of an 80 % interval, in standard deviations of a normal distribution.
pub(super) const Z80: f64 = 1.2816;

/// Upper bound of the uncertainty factor of a ratio of benefits.
const FARTHEST: f64 = 100.0;

/// Factors by which a value may be too high or too low. Independent errors are combined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    /// Low end / median, 0..=1.
    pub low: f64,
    /// High end / median, at least 1.
    pub high: f64,
}

impl Doubt {
    /// Returns the relative uncertainty of an estimate; none if the median is 0.
    pub fn of(estimate: Estimate) -> Doubt {
        if estimate.median <= 0.0 {
            return Doubt {
                low: 1.0,
                high: 1.0,
            };
        }
        Doubt {
            low: (estimate.low / estimate.median).clamp(0.0, 1.0),
            high: (estimate.high / estimate.median).max(1.0),
        }
    }

    /// Returns the uncertainty of a value with an 80 % interval of plus or minus this share.
    pub fn of_error(error: f64) -> Doubt {
        Doubt {
            low: (1.0 - error).max(0.0),
            high: 1.0 + error,
        }
    }

    /// Returns the uncertainty of one estimate relative to another with a common error: the change
    /// of their ratio between the ends of the intervals.
    pub fn beside(one: Estimate, other: Estimate) -> Doubt {
        let at = |end: fn(&Estimate) -> f64| {
            let change = |e: &Estimate| end(e).max(0.0) / e.median;
            let ratio = change(&one) / change(&other);
            // Zero divided by zero is no information.
            if ratio.is_nan() { 1.0 } else { ratio }
        };
        let (low, high) = (at(|e| e.low), at(|e| e.high));
        Doubt {
            low: low.min(high).clamp(1.0 / FARTHEST, 1.0),
            high: low.max(high).clamp(1.0, FARTHEST),
        }
    }

    /// Returns the uncertainty of the reciprocal.
    pub fn inverse(self) -> Doubt {
        Doubt {
            low: 1.0 / self.high,
            high: (1.0 / self.low).min(FARTHEST),
        }
    }

    /// Combines several independent uncertainties.
    pub fn all(doubts: &[Doubt]) -> Doubt {
        Doubt::of(doubted(1.0, doubts))
    }
}

/// Returns `median` with several independent uncertainties: their logarithms add in quadrature. An
/// uncertainty that reaches 0 makes the low end 0.
pub(super) fn doubted(median: f64, doubts: &[Doubt]) -> Estimate {
    let sum = |end: fn(&Doubt) -> f64| doubts.iter().map(|d| end(d).ln().powi(2)).sum::<f64>();
    let down = match doubts.iter().any(|doubt| doubt.low <= 0.0) {
        true => 0.0,
        false => (-sum(|d| d.low).sqrt()).exp(),
    };
    Estimate {
        median,
        low: median * down,
        high: median * sum(|d| d.high).sqrt().exp(),
    }
}

/// Returns `a + b` for independent estimates.
pub(super) fn plus(a: Estimate, b: Estimate) -> Estimate {
    let median = a.median + b.median;
    Estimate {
        median,
        low: median - (a.median - a.low).hypot(b.median - b.low),
        high: median + (a.high - a.median).hypot(b.high - b.median),
    }
}

/// Returns `a - b` for independent estimates.
pub(super) fn minus(a: Estimate, b: Estimate) -> Estimate {
    plus(a, negative(b))
}

pub(super) fn negative(estimate: Estimate) -> Estimate {
    Estimate {
        median: -estimate.median,
        low: -estimate.high,
        high: -estimate.low,
    }
}

/// Returns the sum of fully correlated estimates.
pub(super) fn sum(estimates: impl Iterator<Item = Estimate>) -> Estimate {
    estimates.fold(Estimate::exact(0.0), |a, b| Estimate {
        median: a.median + b.median,
        low: a.low + b.low,
        high: a.high + b.high,
    })
}

/// Multiplies an estimate by a constant of at least 0.
pub(super) fn times(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        median: estimate.median * factor,
        low: estimate.low * factor,
        high: estimate.high * factor,
    }
}

pub(super) fn measured(value: Measured) -> Estimate {
    Estimate {
        median: value.median,
        low: value.low,
        high: value.high,
    }
}

/// Combines two independent estimates of one quantity, weighted by inverse variance; on a
/// logarithmic scale if both are surely positive. If they disagree by more than their intervals
/// allow, the variance of `weaker` is increased until they agree.
pub(super) fn combined(weaker: Estimate, stronger: Estimate) -> Estimate {
    if weaker.low > 0.0 && stronger.low > 0.0 {
        let log = |e: Estimate| map(e, f64::ln);
        return map(combined_linear(log(weaker), log(stronger)), f64::exp);
    }
    combined_linear(weaker, stronger)
}

fn combined_linear(weaker: Estimate, stronger: Estimate) -> Estimate {
    let variance = |e: Estimate| ((e.high - e.low) / (2.0 * Z80)).powi(2).max(1e-18);
    let (mut v1, v2) = (variance(weaker), variance(stronger));
    let apart = (weaker.median - stronger.median).powi(2);
    // Increases v1 until the distance is one standard deviation of the difference.
    v1 = v1.max(apart - v2);
    let (w1, w2) = (1.0 / v1, 1.0 / v2);
    let median = (weaker.median * w1 + stronger.median * w2) / (w1 + w2);
    let half = Z80 / (w1 + w2).sqrt();
    Estimate {
        median,
        low: median - half,
        high: median + half,
    }
}

fn map(estimate: Estimate, f: fn(f64) -> f64) -> Estimate {
    Estimate {
        median: f(estimate.median),
        low: f(estimate.low),
        high: f(estimate.high),
    }
}

/// Returns `a / b`, and 0 if `b` is 0.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

#[cfg(test)]
mod tests;
