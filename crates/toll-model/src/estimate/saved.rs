// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that a set of units saves.

use super::choose::{ALONE, Unit, together};
use super::chunk::Chunk;
use super::estimation::Estimation;
use super::range::{Doubt, doubted, minus, plus, ratio, sum};
use crate::plan::Estimate;

impl Estimation<'_> {
    /// Returns the time that a set of units saves after faults and collapses, ns, and its share of
    /// the full benefit.
    pub fn saved(&self, pick: impl Fn(&Unit) -> bool) -> (Estimate, f64) {
        let picked = self.units.iter().filter(|unit| pick(unit));
        let chunks: Vec<&Chunk> = picked
            .flat_map(|unit| self.eligible(&unit.chunks))
            .collect();
        let benefit: f64 = chunks.iter().map(|chunk| chunk.benefit.median).sum();
        let time = sum(chunks.iter().map(|chunk| chunk.time));
        let share = self.share(benefit);
        let saved = match self.measured {
            Some(all) => self.part_of(all, share, time, self.odds(&chunks)),
            None => {
                let alone = ALONE.map(|alone| together(alone, share));
                let set = Doubt {
                    low: alone[0] / alone[1],
                    high: alone[2] / alone[1],
                };
                let [estimate, source, sampling] = self.doubts(&chunks);
                let doubts = [estimate, source, sampling, set];
                minus(doubted(benefit * alone[1], &doubts), time)
            }
        };
        (saved, share)
    }

    /// Returns the time that a set with `share` of all benefit and the time `time` saves, if
    /// everything saves `all`: that share of it, corrected for times that are not proportional.
    /// `odds` is the uncertainty of the set's gain relative to the rest. If the set is everything,
    /// only the uncertainty of the measurement remains.
    fn part_of(&self, all: Estimate, share: f64, time: Estimate, odds: Doubt) -> Estimate {
        let part = |share: f64, alone: usize| share * together(ALONE[alone], share);
        let kept = part(share, 1);
        let everything = self.times();
        // Times have a common error.
        let spared = |end: fn(&Estimate) -> f64| kept * end(&everything) - end(&time);
        let ends = [spared(|e| e.low), spared(|e| e.median), spared(|e| e.high)];
        let spared = Estimate {
            median: ends[1],
            low: ends.into_iter().fold(f64::INFINITY, f64::min),
            high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        };
        // Distribution of the benefit: the odds of being in the set.
        let at = |factor: f64| share * factor / (share * factor + (1.0 - share)).max(1e-12);
        let error = |shares: [f64; 2], alone: [usize; 2]| Estimate {
            median: 0.0,
            low: self.everything * (part(shares[0], alone[0]) - kept),
            high: self.everything * (part(shares[1], alone[1]) - kept),
        };
        let placed = error([at(odds.low), at(odds.high)], [1, 1]);
        let alone = error([share, share], [0, 2]);
        // The uncertainty of everything applies to a set that has its benefit or its faults.
        let carried = kept.max(ratio(time.median, everything.median).clamp(0.0, 1.0));
        let all_kept = Estimate {
            median: all.median * kept,
            low: all.median * kept - carried * (all.median - all.low),
            high: all.median * kept + carried * (all.high - all.median),
        };
        let saved = plus(plus(all_kept, spared), plus(placed, alone));
        // Times come from the model and contradict the measurement here: they must not move a set
        // beyond the maximum measured for everything, including uncertainty.
        let median = saved.median.min(all.high);
        Estimate {
            median,
            low: saved.low.min(median),
            high: saved.high.min(2.0 * all.high - all.median).max(median),
        }
    }
}
