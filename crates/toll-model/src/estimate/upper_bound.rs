// SPDX-License-Identifier: MIT OR Apache-2.0
//! Combines the model with a measured speed-up of everything huge.

use super::chunk::{Chunk, eligible};
use super::estimation::Estimation;
use super::range::{combined, doubted, minus, times};
use crate::plan::Estimate;
use crate::profile::Source;

impl Estimation<'_> {
    /// Shifts benefits and times so that everything huge saves the combined estimate of model and
    /// measurement. The shift is divided by variance: the measurement includes the walks and the
    /// faults, warm or cold as they were.
    pub fn correct(&mut self, upper_bound: Estimate) {
        let Some(run) = self.baseline.map(|run| run.median) else {
            return;
        };
        let sound = upper_bound.low > 0.0
            && upper_bound.low <= upper_bound.median
            && upper_bound.median <= upper_bound.high;
        if !sound || !upper_bound.high.is_finite() || self.everything <= 0.0 {
            return;
        }
        let saved = |speedup: f64| run * (1.0 - 1.0 / speedup);
        let measured = Estimate {
            median: saved(upper_bound.median),
            low: saved(upper_bound.low),
            high: saved(upper_bound.high),
        };
        let all: Vec<&Chunk> = eligible(&self.chunks).collect();
        let benefit = doubted(self.everything, &self.doubts(&all));
        let time = self.times();
        // Touched pages, and counts of a part of the run, give the distribution but not the amount.
        let says_how_much = self.profile.source != Source::Accessed && self.profile.complete;
        let both = match says_how_much {
            true => combined(minus(benefit, time), measured),
            false => measured,
        };
        let shift = both.median - (benefit.median - time.median);
        let (up, down) = match shift > 0.0 {
            true => (benefit.high - benefit.median, time.median - time.low),
            false => (benefit.median - benefit.low, time.high - time.median),
        };
        let share = |part: f64, rest: f64| part.powi(2) / (part.powi(2) + rest.powi(2)).max(1e-9);
        let moved = (shift * share(down, up)).abs().min(down);
        // Of the uncertainty of the times, only that of the benefit remains.
        let rest = share(up, down).sqrt();
        let time_at = |time: Estimate| moved_time(time, moved.copysign(shift) / down, rest);
        let time = match down > 0.0 {
            true => time_at(time),
            false => time,
        };
        let factor = (both.median + time.median).max(0.0) / self.everything;
        for chunk in &mut self.chunks {
            chunk.benefit = times(chunk.benefit, factor);
            if down > 0.0 {
                chunk.time = time_at(chunk.time);
            }
        }
        self.everything *= factor;
        self.overhead = times(self.overhead, factor);
        self.measured = Some(both);
        // The measurement is a ratio: the uncertainty of the run time does not apply.
        self.baseline = Some(Estimate::exact(run));
        self.units = self.units();
    }
}

/// Moves a time by `by` half intervals downwards and scales its uncertainty by `rest`.
fn moved_time(time: Estimate, by: f64, rest: f64) -> Estimate {
    let (below, above) = (time.median - time.low, time.high - time.median);
    let median = time.median - by * if by > 0.0 { below } else { above };
    Estimate {
        median,
        low: median - rest * below,
        high: median + rest * above,
    }
}
