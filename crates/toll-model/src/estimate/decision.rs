// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides on the program and on every unit.

use super::choose::{Goal, Unit, choose};
use super::chunk::{Chunk, eligible};
use super::estimation::Estimation;
use crate::plan::Why;

/// A gain with a high end below this share of the run is not worth a change: a comparison of a few
/// runs would not show it.
const MIN_SHARE: f64 = 0.02;
/// A gain with a median below this share is not worth a change either.
const MIN_MEDIAN: f64 = 0.005;

/// The decision for the whole program.
pub(super) enum Decision {
    /// Make the chosen regions huge.
    Huge,
    /// Remove huge pages where they lose (only with THP `always`).
    Less,
    /// Do nothing, for this reason.
    Nothing(NoGain),
}

/// Why a program has nothing to gain.
pub(super) enum NoGain {
    /// No region was asked for, or none can be huge.
    NoneAsked,
    /// With THP `always`: no region surely loses.
    NoLoser,
    /// The second-level TLB reaches all touched memory with 4 KiB pages; both in bytes.
    InReach { footprint: u64, reach: u64 },
    /// No TLB miss was recorded.
    NoMiss,
    /// No region can be huge, most misses for this reason.
    NoRegion(Option<Why>),
    /// No region's benefit exceeds its cost; both of everything huge.
    NoneWorth {
        benefit_ns: f64,
        cost_ns: f64,
        /// Whether sampling error is the reason for some.
        is_unclear: bool,
    },
    /// The gain of all regions together is not distinguishable from zero.
    Unclear,
    /// Everything huge saves these shares of the run.
    TooLittle { median: f64, high: f64 },
}

impl Estimation<'_> {
    /// Decides on the program and on every unit.
    pub fn decide(&mut self) -> Decision {
        let options = self.options;
        let goal = match (options.top, options.budget) {
            (Some(count), _) => Goal::Top(count),
            (None, Some(bytes)) => Goal::Budget(bytes),
            (None, None) => Goal::Enough,
        };
        if let Goal::Top(count) = goal {
            choose(&mut self.units, self.everything, goal, None);
            return match count.min(self.units.len() as u64) {
                0 => self.nothing(NoGain::NoneAsked),
                _ => Decision::Huge,
            };
        }
        if let Some(reason) = self.hopeless() {
            return self.nothing(reason);
        }
        if options.thp_always {
            return self.decide_less();
        }
        choose(&mut self.units, self.everything, goal, options.free_regions);
        match self.too_little() {
            Some(reason) => self.nothing(reason),
            None => Decision::Huge,
        }
    }

    /// With THP `always`: removes huge pages where they surely lose.
    fn decide_less(&mut self) -> Decision {
        let mut losers = 0;
        for unit in &mut self.units {
            let loses = unit.most < 0.0;
            losers += u64::from(loses);
            unit.verdict = Some(if loses {
                Why::CostsMore
            } else {
                Why::AlreadyHuge
            });
        }
        match losers {
            0 => Decision::Nothing(NoGain::NoLoser),
            _ => Decision::Less,
        }
    }

    /// Returns why nothing can be gained at all, before the choice.
    fn hopeless(&self) -> Option<NoGain> {
        let (footprint, reach) = (self.profile.footprint, self.costs.tlb.reach_4k());
        if footprint <= reach {
            return Some(NoGain::InReach { footprint, reach });
        }
        if self.misses <= 0.0 {
            return Some(NoGain::NoMiss);
        }
        if self.units.is_empty() {
            return Some(NoGain::NoRegion(self.most_barred()));
        }
        None
    }

    /// Returns why most of the misses cannot be averted.
    fn most_barred(&self) -> Option<Why> {
        let mut by_why: Vec<(Why, f64)> = Vec::new();
        for chunk in &self.chunks {
            let Some(why) = chunk.barred else { continue };
            match by_why.iter_mut().find(|(other, _)| *other == why) {
                Some((_, misses)) => *misses += chunk.misses,
                None => by_why.push((why, chunk.misses)),
            }
        }
        by_why
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(why, _)| why)
    }

    /// Returns why the chosen set is not worth a change, if it is not.
    fn too_little(&self) -> Option<NoGain> {
        let worth =
            |unit: &Unit| matches!(unit.verdict, Some(Why::Pays | Why::Spare | Why::Budget));
        if !self.units.iter().any(worth) {
            let is_unclear = |unit: &Unit| unit.verdict == Some(Why::Unclear);
            return Some(NoGain::NoneWorth {
                benefit_ns: self.everything,
                cost_ns: eligible(&self.chunks).map(Chunk::cost).sum(),
                is_unclear: self.units.iter().any(is_unclear),
            });
        }
        let (saved, _) = self.saved(worth);
        let sure = match self.options.is_proved_next {
            true => saved.median,
            false => saved.low,
        };
        if sure <= 0.0 {
            return Some(NoGain::Unclear);
        }
        let run = self.baseline?;
        let (median, high) = (saved.median / run.median, saved.high / run.median);
        (high < MIN_SHARE || median < MIN_MEDIAN).then_some(NoGain::TooLittle { median, high })
    }

    /// Sets the verdict of every unit to leave.
    fn nothing(&mut self, reason: NoGain) -> Decision {
        for unit in &mut self.units {
            unit.verdict = match unit.verdict {
                Some(Why::Pays | Why::Spare | Why::Budget) | None => Some(Why::Nothing),
                kept => kept,
            };
        }
        Decision::Nothing(reason)
    }
}
